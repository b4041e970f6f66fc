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


def scan(direction: int, stacked: int, folder: Path) -> str:
    """Running sums over the open first axis, and their stack."""
    state = helper.make_tensor_value_info("s", TensorProto.FLOAT, [3])
    entry = helper.make_tensor_value_info("e", TensorProto.FLOAT, [3])
    after = helper.make_tensor_value_info("t", TensorProto.FLOAT, [3])
    kept = helper.make_tensor_value_info("k", TensorProto.FLOAT, [3])
    nodes = [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["k"])]
    body = helper.make_graph(nodes, "body", [state, entry], [after, kept])
    flags: dict[str, Any] = {"scan_input_directions": [direction], "scan_output_directions": [stacked]}
    node = helper.make_node("Scan", ["start", "x"], ["last", "all"], body=body, num_scan_inputs=1, **flags)
    start = helper.make_tensor("start", TensorProto.FLOAT, [3], [0.0, 1.0, 2.0])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("last", "all")]
    graph = helper.make_graph([node], "scan", [x], results, [start])
    path = folder / "scan.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    return str(path)


@pytest.mark.parametrize("direction", [0, 1])
@pytest.mark.parametrize("stacked", [0, 1])
def test_a_scan_runs_as_often_as_the_call_says(direction: int, stacked: int, tmp_path: Path) -> None:
    function = msc.compile(scan(direction, stacked, tmp_path), dims={"n": (1, 9)}, use_cache=False)
    assert not isinstance(function, ModelOnCall)
    for n in (1, 2, 5, 9):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        sums = np.cumsum(np.vstack([[0.0, 1.0, 2.0], x[::-1] if direction else x]), axis=0)[1:]
        last, stack = function(x)
        np.testing.assert_allclose(last, sums[-1], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(stack, sums[::-1] if stacked else sums, rtol=1e-5, atol=1e-5)


def test_a_recurrence_takes_sequences_of_any_length(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {"w": rng.standard_normal((1, 16, 3)), "r": rng.standard_normal((1, 16, 4)) * 0.3}
    given = [helper.make_tensor(n, TensorProto.FLOAT, a.shape, a.astype(np.float32).ravel()) for n, a in arrays.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2, 3])
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", "h")]
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y", "h"], hidden_size=4)
    graph = helper.make_graph([node], "lstm", [x], results, given)
    path = tmp_path / "lstm.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    function = msc.compile(path, dims={"n": (1, 8)}, use_cache=False)
    assert not isinstance(function, ModelOnCall)
    for n in (1, 3, 8):
        fixed = msc.compile(path, dims={"n": n}, use_cache=False)
        sequence = rng.standard_normal((n, 2, 3)).astype(np.float32)
        for one, other in zip(function(sequence), fixed(sequence), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cut", [(2, 2**62, 1), (0, -2, 1), (-2, 2**62, 1), (-2, -(2**62), -1), (1, -1, 1)])
def test_a_slice_is_right_where_little_is_left(cut: tuple[int, int, int], tmp_path: Path) -> None:
    """What is cut at the tensor's ends is not linear in its size there."""
    given = [helper.make_tensor(k, TensorProto.INT64, [1], [v]) for k, v in zip("set", cut, strict=True)]
    given.append(helper.make_tensor("a", TensorProto.INT64, [1], [0]))
    node = helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "cut", [x], [y], given)
    path = tmp_path / "cut.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    function = msc.compile(path, dims={"n": (1, 6)}, use_cache=False)
    for n in (1, 2, 3, 6):
        rows = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        begin = max(cut[0], -n)  # the standard clamps to the first element for either sign of the step
        end = None if cut[2] < 0 and cut[1] < -n else cut[1]
        np.testing.assert_array_equal(function(rows), rows[begin : end : cut[2]])


def test_elements_of_merged_dimensions_are_not_moved_as_if_they_lay_together(tmp_path: Path) -> None:
    """Rows of an open length lie as far apart as the longest: a reversal of all elements counts those of the call."""
    numbers = {"all": [-1], "last": [-1], "before": [-(2**62)], "axis": [0], "step": [-1]}
    given = [helper.make_tensor(k, TensorProto.INT64, [1], v) for k, v in numbers.items()]
    nodes = [node("Reshape", ["x", "all"], ["f"]), node("Slice", ["f", "last", "before", "axis", "step"], ["y"])]
    graph = helper.make_graph(nodes, "merged", [tensor("x", [2, "n"])], [Y], given)
    path = tmp_path / "merged.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    function = msc.compile(path, dims={"n": (1, 5)}, use_cache=False)
    for n in (1, 3):
        x = np.arange(2 * n, dtype=np.float32).reshape(2, n)
        np.testing.assert_array_equal(function(x), x.reshape(-1)[::-1])


def test_a_gather_from_an_output_reads_only_elements_of_the_call(tmp_path: Path) -> None:
    """The memory of an output holds as many elements as the call has, not as many as the largest has."""
    axis = [helper.make_tensor("axis", TensorProto.INT64, [], [0])]
    nodes = [node("CumSum", ["x", "axis"], ["s"]), node("Concat", ["x", "s"], ["y"], axis=0)]
    sums = helper.make_tensor_value_info("s", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "sums", [tensor("x", ["n"])], [Y, sums], axis)
    path = tmp_path / "sums.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    function = msc.compile(path, dims={"n": (1, 5)}, use_cache=False)
    assert not isinstance(function, ModelOnCall)
    for n in (1, 2, 5):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(function(x)[0], np.concatenate([x, np.cumsum(x)]))


BACKWARDS = {"from": np.array([-2]), "to": np.array([-(2**40)]), "axis": np.array([0]), "step": np.array([-1])}
"""All rows but the last, backwards; of a single row that one, as a start before the first place is moved there."""


@pytest.mark.parametrize("as_number", [False, True], ids=["shape", "number"])
def test_a_size_that_is_cut_off_at_the_smallest_size_is_not_taken_for_linear(as_number: bool, tmp_path: Path) -> None:
    """It is one less than n for all n from 2, and 1 for n = 1: as the shape of the result, and as a factor."""
    nodes = [node("Slice", ["x", "from", "to", "axis", "step"], ["some"]), node("Shape", ["some"], ["s"])]
    filled = [node("ConstantOfShape", ["s"], ["y"])]
    factor = [
        node("Cast", ["s"], ["f"], to=TensorProto.FLOAT),
        node("ReduceSum", ["x"], ["t"]),
        node("Mul", ["t", "f"], ["y"]),
    ]
    made = model([*nodes, *(factor if as_number else filled)], [X], [Y], BACKWARDS)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    function = msc.compile(tmp_path / "m.onnx", dims={"n": (1, 8)}, use_cache=False)
    for n in (1, 2, 5):
        x = np.ones((n, 3), np.float32)
        rows = max(n - 1, 1)
        expected = np.array([[rows * 3 * n, 3 * 3 * n]]) if as_number else np.zeros((rows, 3))
        np.testing.assert_array_equal(function(x), expected)
