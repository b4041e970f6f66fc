"""ONNX models for a range of sizes: the first tokens of sequences of any length, as classifiers take them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import msc
from msc.driver.artifacts.model_on_call import ModelOnCall
from msc.support.diagnostics import MscError
from tests.unit.importers.models import model, node, tensor

X, Y = tensor("x", ["n", 3]), tensor("y", None)
SIZES = {"batch": (1, 3), "tokens": (2, 8)}


def gather(place: int, folder: Path) -> str:
    """One place along the open second axis."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "tokens", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])
    index = helper.make_tensor("place", TensorProto.INT64, [], [place])
    chosen = helper.make_node("Gather", ["x", "place"], ["y"], axis=1)
    graph = helper.make_graph([chosen], "first", [x], [y], [index])
    path = folder / "first.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    return str(path)


@pytest.mark.parametrize("place", [0, 1])
def test_a_place_that_every_size_has(place: int, tmp_path: Path) -> None:
    function = msc.compile(gather(place, tmp_path), dims=SIZES, use_cache=False)
    for batch, tokens in ((1, 2), (3, 8), (2, 5)):
        x = np.random.default_rng(tokens).standard_normal((batch, tokens, 4)).astype(np.float32)
        np.testing.assert_array_equal(function(x), x[:, place])


@pytest.mark.parametrize("place", [-1])
def test_a_place_that_depends_on_the_size_is_found_at_the_call(place: int, tmp_path: Path) -> None:
    function = msc.compile(gather(place, tmp_path), dims=SIZES, use_cache=False)
    x = np.random.default_rng(1).standard_normal((2, 5, 4)).astype(np.float32)
    np.testing.assert_array_equal(function(x), x[:, place])


def test_a_place_that_not_every_size_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MscError, match="index 5 is outside an axis of 2 elements"):
        msc.compile(gather(5, tmp_path), dims=SIZES, use_cache=False)


NUMBERS: dict[str, tuple[ModelProto, Callable[[Any], Any]]] = {
    "ArgMax": (model([node("ArgMax", ["x"], ["y"], axis=0, keepdims=0)], [X], [Y]), lambda x: x.argmax(0)),
    "Shape": (model([node("Shape", ["x"], ["y"])], [X], [Y]), lambda x: np.array(x.shape)),
    "Size": (model([node("Size", ["x"], ["y"])], [X], [Y]), lambda x: np.array(x.size)),
    "one size": (model([node("Shape", ["x"], ["y"], end=1)], [X], [Y]), lambda x: np.array([len(x)])),
    "filled": (
        model([node("Shape", ["x"], ["s"]), node("ConstantOfShape", ["s"], ["y"])], [X], [Y]),
        lambda x: np.zeros(x.shape, np.float32),
    ),
    "no elements": (
        model([node("Split", ["x", "parts"], ["y", "z"], axis=1)], [X], [Y], {"parts": np.array([0, 3])}),
        lambda x: x[:, :0],
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_open_tensors_are_those_of_the_call(name: str, tmp_path: Path) -> None:
    """One library: also a size as a result, and results that no input bounds."""
    made, meaning = NUMBERS[name]
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    function = msc.compile(tmp_path / "m.onnx", dims={"n": (1, 8)}, use_cache=False)
    assert not isinstance(function, ModelOnCall)
    for n in (1, 3, 8):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        found, expected = np.asarray(function(x)), meaning(x)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
