"""The operator Attention over long sequences: every form of it is one function that never has a matrix of scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import msc

HEADS, QUERIES, SIZE = 12, 384, 16
FORMS: dict[str, tuple[dict[str, Any], dict[str, tuple[int, ...]]]] = {
    "plain": ({}, {}),
    "causal": ({"is_causal": 1}, {}),
    "a cap": ({"softcap": 5.0, "is_causal": 1}, {}),
    "shared heads": ({"is_causal": 1}, {"k": (1, 3, QUERIES, SIZE), "v": (1, 3, QUERIES, SIZE)}),
    "a bias of each head": ({}, {"mask": (1, HEADS, QUERIES, QUERIES)}),
    "a mask of keys": ({"is_causal": 1}, {"mask": (1, 1, 1, QUERIES)}),
    "a cache": ({"is_causal": 1}, {"past_k": (1, HEADS, 192, SIZE), "past_v": (1, HEADS, 192, SIZE)}),
}
WINDOW = np.abs(np.subtract.outer(np.arange(QUERIES), np.arange(QUERIES))) < 50
MASKS = {
    "truths": WINDOW,
    "infinities": np.where(WINDOW, 0, -np.inf).astype(np.float32),
    "numbers": np.where(WINDOW, 0, np.finfo(np.float32).min).astype(np.float32),
}


def saved(path: Path, attributes: dict[str, Any], given: dict[str, tuple[int, ...]], mask: NDArray[Any] | None) -> Path:
    """A model of one node; what is not given is as large as the queries, or absent."""
    shape = (1, HEADS, QUERIES, SIZE)
    inputs = {"q": shape, "k": shape, "v": shape} | given
    names = [n if n in inputs or (n, mask is not None) == ("mask", True) else ""
             for n in ("q", "k", "v", "mask", "past_k", "past_v")]  # fmt: skip
    outputs = ["y", "present_k", "present_v"] if "past_k" in given else ["y"]
    node = helper.make_node("Attention", names, outputs, **attributes)
    graph = helper.make_graph(
        [node],
        "attention",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        [] if mask is None else [numpy_helper.from_array(mask, "mask")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    return path


def agrees(path: Path) -> None:
    """The same results as with whole scores, and less memory than these take."""
    blocks, whole = msc.compile(path), msc.compile(path, without=("block-attention",))
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(i.shape).astype(np.float32) for i in blocks.signature.inputs]
    found, expected = (np.asarray(p(*inputs)[0] if p.signature.outputs[1:] else p(*inputs)) for p in (blocks, whole))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert blocks.signature.workspace_bytes < HEADS * QUERIES * QUERIES * 4 / 2
    assert whole.signature.workspace_bytes >= HEADS * QUERIES * QUERIES * 4


@pytest.mark.parametrize("form", FORMS)
def test_scores_never_exist_whole(form: str, tmp_path: Path) -> None:
    attributes, given = FORMS[form]
    agrees(saved(tmp_path / "attention.onnx", attributes, given, None))


@pytest.mark.parametrize("mask", MASKS)
def test_masks_may_be_initializers(mask: str, tmp_path: Path) -> None:
    agrees(saved(tmp_path / "attention.onnx", {}, {}, MASKS[mask]))
