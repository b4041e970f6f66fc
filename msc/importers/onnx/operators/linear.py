"""Matrix products."""

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
    from msc.importers.onnx.operators.determinant import determinant

    return determinant(node, node[0])
