"""Matrix products, and determinants by elimination unrolled over the rows."""

from __future__ import annotations

from msc.dialects import ms
from msc.importers.onnx.node import Node
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue


@importer("MatMul")
def _matmul(node: Node) -> OnnxValue:
    return product(node, node[0], node[1])


def product(node: Node, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    """NumPy's matmul: vectors are rows and columns, axes before the last two broadcast."""
    row, column = a.rank == 1, b.rank == 1
    a = node(ms.ExpandDimsOp, a, axis=[0]) if row else a
    b = node(ms.ExpandDimsOp, b, axis=[1]) if column else b
    y = node(ms.MatmulOp if a.rank == b.rank == 2 else ms.BatchMatmulOp, a, b)
    axes = [axis for axis, drop in ((-2, row), (-1, column)) if drop]
    return node(ms.SqueezeOp, y, axis=axes) if axes else y


@importer("Gemm")
def _gemm(node: Node) -> OnnxValue:
    alpha, beta = node.real("alpha", 1.0), node.real("beta", 1.0)
    y = node(ms.MatmulOp, node[0], node[1], transpose_a=node.flag("transA"), transpose_b=node.flag("transB"))
    y = y if alpha == 1.0 else scaled(node, y, alpha)
    c = node.get(2)
    if c is None or beta == 0.0:
        return y
    return node(ms.AddOp, y, c if beta == 1.0 else scaled(node, c, beta))


def scaled(node: Node, x: OnnxValue, factor: float) -> OnnxValue:
    """X times a number; integers through float, since the factor may be a fraction."""
    if x.dtype[0] in "fb":
        return node(ms.MulOp, x, factor)
    return node.cast(node(ms.MulOp, node.cast(x, "f64"), factor), x.dtype)


@importer("Einsum")
def _einsum(node: Node) -> OnnxValue:
    from msc.importers.onnx.operators.einsum import einsum

    return einsum(node, node.word("equation", ""), node.tensors())


@importer("Det")
def _det(node: Node) -> OnnxValue:
    """By fraction-free elimination with the largest pivot of each column, unrolled over the rows."""
    return determinant(node, node[0])


def determinant(node: Node, x: OnnxValue) -> OnnxValue:
    """The determinants of the matrices in the last two axes, by elimination with the largest pivot of each column."""
    *lead, size, columns = node.shape_of(x)
    if size != columns or size > 32:
        raise node.failure("MSC0711", f"msc takes determinants of square matrices up to 32, not of {x.type}")
    result = node(ms.BroadcastToOp, node.scalar(1, x.dtype), shape=lead)
    for left in range(size, 0, -1):
        pivot, x = _step(node, x, lead, left)
        result = node(ms.MulOp, result, pivot)
    return result


def _step(node: Node, x: OnnxValue, lead: list[int], size: int) -> tuple[OnnxValue, OnnxValue]:
    """The pivot of the first column, with the sign of bringing it to the top, and the rest after eliminating it."""
    column = _cut(node, x, lead, (0, size), (0, 1))
    best = node(ms.ArgmaxOp, node(ms.AbsOp, column), axis=-2, keep_dims=True)
    pivot_row = node(ms.GatherElementsOp, x, node(ms.BroadcastToOp, best, shape=[*lead, 1, size]), axis=-2)
    pivot = node.reshape(_cut(node, pivot_row, lead, (0, 1), (0, 1)), lead)
    # The first row takes the pivot's place.
    first = _cut(node, x, lead, (0, 1), (0, size))
    place = node.reshape(node(ms.IotaOp, shape=[size], dtype=best.type.element_type), (size, 1))
    swapped = node(ms.SelectOp, node(ms.EqualOp, place, best), first, x)
    sign = node(
        ms.SelectOp, node(ms.EqualOp, node.reshape(best, lead), 0), node.scalar(1, x.dtype), node.scalar(-1, x.dtype)
    )
    rest = _cut(node, swapped, lead, (1, size), (0, size))
    divisor = node(ms.SelectOp, node(ms.EqualOp, pivot, 0), node.scalar(1, x.dtype), pivot)
    factors = node(ms.DivOp, _cut(node, rest, lead, (0, size - 1), (0, 1)), node.reshape(divisor, (*lead, 1, 1)))
    reduced = node(ms.SubOp, rest, node(ms.MulOp, factors, pivot_row))
    return node(ms.MulOp, pivot, sign), _cut(node, reduced, lead, (0, size - 1), (1, size))


def _cut(node: Node, x: OnnxValue, lead: list[int], rows: tuple[int, int], columns: tuple[int, int]) -> OnnxValue:
    begin = [*(0 for _ in lead), rows[0], columns[0]]
    return node(ms.SliceOp, x, begin=begin, end=[*lead, rows[1], columns[1]])
