"""Scattering into many places: updates in order, in place, by the interpreter and in C."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.importers.onnx import import_proto
from msc.interp import evaluate
from msc.ir.typed import shape
from tests.unit.importers.agreement import compile_imported
from tests.unit.importers.models import model, node, tensor

JOINS: dict[str, Callable[[Any, Any], Any]] = {
    "none": lambda old, new: new,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def scatter(operator: str, arrays: tuple[Array, Array, Array], reduction: str) -> ModelProto:
    nodes = [node(operator, ["x", "i", "u"], ["y"], reduction=reduction)]
    kinds = (TensorProto.FLOAT, TensorProto.INT64, TensorProto.FLOAT)
    inputs = [tensor(name, a.shape, kind) for name, a, kind in zip("xiu", arrays, kinds, strict=True)]
    return model(nodes, inputs, [tensor("y", None)], opset=18)


def wanted(arrays: tuple[Array, Array, Array], reduction: str, whole_rows: bool) -> Array:
    """One update after another."""
    data, indices, updates = arrays
    result, join = data.copy(), JOINS[reduction]
    for place in np.ndindex(indices.shape[:1] if whole_rows else indices.shape):
        row = int(indices[(*place, 0)] if whole_rows else indices[place])
        target = row if whole_rows else (row, *place[1:])
        result[target] = join(result[target], updates[place])
    return result


def arrays_of(rows: int, count: int, whole_rows: bool) -> tuple[Array, Array, Array]:
    """Many updates of one place, negative indices, fewer columns than the data has."""
    random = np.random.default_rng(rows)
    data = random.standard_normal((rows, 5)).astype(np.float32)
    indices = random.integers(-rows, rows, (count, 1 if whole_rows else 3))
    indices[: count // 2] //= 5
    return data, indices, random.standard_normal((count, 5 if whole_rows else 3)).astype(np.float32)


@pytest.mark.parametrize("reduction", list(JOINS))
@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
@pytest.mark.parametrize(("rows", "count"), [(60, 3), (7, 30)])
def test_updates_come_in_order(operator: str, reduction: str, rows: int, count: int) -> None:
    arrays = arrays_of(rows, count, operator == "ScatterND")
    imported = import_proto(scatter(operator, arrays, reduction))
    expected = wanted(arrays, reduction, operator == "ScatterND")
    (by_interpreter,) = evaluate(imported.module, arrays, imported.weights)
    np.testing.assert_allclose(by_interpreter, expected, rtol=1e-6)


def scatter_rows(arrays: tuple[Array, Array, Array], constant: bool, axis: int) -> ModelProto:
    """Indices of whole rows, a column, repeated along the columns as PyTorch's exporter writes `expand_as`."""
    data, indices, updates = arrays
    wide = np.broadcast_to(indices, updates.shape)
    shapes = {"x": data.shape, "u": updates.shape}
    inputs = [tensor(name, shape, TensorProto.FLOAT) for name, shape in shapes.items()]
    if constant:
        nodes, initial = [], {"wide": np.ascontiguousarray(wide)}
    else:
        inputs.insert(1, tensor("i", indices.shape, TensorProto.INT64))
        nodes, initial = [node("Expand", ["i", "shape"], ["wide"])], {"shape": np.array(updates.shape)}
    nodes.append(node("ScatterElements", ["x", "wide", "u"], ["y"], reduction="add", axis=axis))
    return model(nodes, inputs, [tensor("y", None)], initial, opset=18)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    ("data", "indices", "updates", "axis", "row"),
    [
        ((7, 5), (30, 1), (30, 5), 0, "5"),
        ((7, 3, 2), (30, 1, 1), (30, 3, 2), 0, "3x2"),
        ((4, 6, 5), (4, 9, 1), (4, 9, 5), 1, "5"),
        ((4, 6, 5), (1, 9, 1), (4, 9, 5), 1, "5"),
        ((7, 5), (30, 1), (30, 4), 0, ""),
        ((7, 5), (7, 5), (7, 5), 1, ""),
    ],
)
def test_indices_repeated_along_rows_move_whole_rows(
    data: tuple[int, ...], indices: tuple[int, ...], updates: tuple[int, ...], axis: int, row: str, constant: bool
) -> None:
    random = np.random.default_rng(0)
    numbers = random.integers(-data[axis], data[axis], indices)
    arrays = (
        random.standard_normal(data).astype(np.float32),
        numbers,
        random.standard_normal(updates).astype(np.float32),
    )
    imported = import_proto(scatter_rows(arrays, constant, axis))
    (inserted,) = (op for op in imported.module.walk() if isinstance(op, ms.InsertSliceOp))
    assert "x".join(map(str, shape(inserted.operands[2]))) == row
    expected = arrays[0].copy()
    places = np.ndindex(updates)
    wide = np.broadcast_to(numbers, updates)
    for place in places:
        target = (*place[:axis], wide[place], *place[axis + 1 :])
        expected[target] += arrays[2][place]
    given = (arrays[0], arrays[2]) if constant else arrays
    (found,) = evaluate(imported.module, given, imported.weights)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("operator", "reduction"), [("ScatterElements", "add"), ("ScatterND", "none")])
def test_many_into_many_in_c(operator: str, reduction: str) -> None:
    """Comparing every pair of these would take minutes."""
    arrays = arrays_of(200_000, 30_000, operator == "ScatterND")
    run = compile_imported(import_proto(scatter(operator, arrays, reduction)))
    (result,) = run(dict(zip("xiu", arrays, strict=True)))
    np.testing.assert_allclose(result, wanted(arrays, reduction, operator == "ScatterND"), rtol=1e-5, atol=1e-5)
