"""Gradients of matrix products: matrix products."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.ms.linear import MatrixProductOp
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.registry import Contributions, gradient


@gradient(ms.MatmulOp, ms.BatchMatmulOp)
def _matrix_product(op: MatrixProductOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """Of y = a b: ga = g b^T and gb = a^T g, each as the operand lies; batches that were repeated are summed."""
    a, b = (emit.cast(v, emit.dtype(g)) for v in op.operands)
    ta, tb = op.flag("transpose_a"), op.flag("transpose_b")
    ga = gb = None
    if emit.wants(0):
        ga = _product(op, b, g, tb, True, emit) if ta else _product(op, g, b, False, not tb, emit)
    if emit.wants(1):
        gb = _product(op, g, a, True, ta, emit) if tb else _product(op, a, g, not ta, False, emit)
    return [None if v is None else _as_operand(op, k, v, emit) for k, v in enumerate((ga, gb))]


def _product(op: MatrixProductOp, a: SSAValue, b: SSAValue, ta: bool, tb: bool, emit: GradientEmitter) -> SSAValue:
    return emit(type(op), a, b, transpose_a=ta, transpose_b=tb)


def _as_operand(op: MatrixProductOp, index: int, value: SSAValue, emit: GradientEmitter) -> SSAValue:
    return emit.cast(emit.sum_to(value, op.shape(index)), op.dtype(index))


@gradient(ms.DenseOp)
def _dense(op: ms.DenseOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """The product of the rows with the weight; what the axes before the last have in common is summed."""
    (*_, inputs), (outputs, _) = op.shape(0), op.shape(1)
    rows = emit.reshape(g, (prod(emit.shape(g)[:-1]), outputs))
    x = emit.reshape(op.x, (prod(op.shape(0)[:-1]), inputs))
    found: list[SSAValue | None] = [None] * len(op.operands)
    if emit.wants(0):
        found[0] = emit.reshape(emit(ms.MatmulOp, rows, op.weight), op.shape(0))
    if emit.wants(1):
        found[1] = emit(ms.MatmulOp, rows, x, transpose_a=True)
    if emit.wants(2):
        found[2] = emit(ms.ReduceSumOp, rows, axis=[0])
    return found
