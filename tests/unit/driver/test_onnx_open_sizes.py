"""ONNX models for a range of sizes: the first tokens of sequences of any length, as classifiers take them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import msc
from msc.support.diagnostics import MscError

SIZES = {"batch": (1, 3), "tokens": (2, 8)}


def gather(place: int, folder: Path) -> str:
    """One place along the open second axis."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "tokens", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])
    index = helper.make_tensor("place", TensorProto.INT64, [], [place])
    node = helper.make_node("Gather", ["x", "place"], ["y"], axis=1)
    graph = helper.make_graph([node], "first", [x], [y], [index])
    path = folder / "first.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    path.write_bytes(model.SerializeToString())
    return str(path)


@pytest.mark.parametrize("place", [0, 1])
def test_a_place_that_every_size_has(place: int, tmp_path: Path) -> None:
    model = msc.compile(gather(place, tmp_path), dims=SIZES, use_cache=False)
    for batch, tokens in ((1, 2), (3, 8), (2, 5)):
        x = np.random.default_rng(tokens).standard_normal((batch, tokens, 4)).astype(np.float32)
        np.testing.assert_array_equal(model(x), x[:, place])


@pytest.mark.parametrize("place", [5, -1])
def test_a_place_that_depends_on_the_size_is_refused(place: int, tmp_path: Path) -> None:
    with pytest.raises(MscError) as caught:
        msc.compile(gather(place, tmp_path), dims=SIZES, use_cache=False)
    assert [d.code for d in caught.value.diagnostics] == ["MSC0208"]
