"""The dense layer as a matrix product."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from msc.analysis.constancy import is_constant
from msc.dialects.ms.arithmetic import AddOp
from msc.dialects.ms.linear import DenseOp, MatmulOp
from msc.dialects.ms.movement import TransposeOp
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander


@expander(DenseOp)
def _dense(op: DenseOp, emit: Emitter) -> SSAValue:
    """Rows of x times the weight, transposed at compile time if it is a parameter, plus the bias."""
    shape, (outputs, inputs) = emit.shape(op.x), emit.shape(op.weight)
    rows = emit.reshape(op.x, (math.prod(shape[:-1]), inputs))
    if is_constant(op.weight):
        y = emit(MatmulOp, rows, emit(TransposeOp, op.weight, perm=[1, 0]))
    else:
        y = emit(MatmulOp, rows, op.weight, transpose_b=True)
    if op.bias is not None:
        y = emit(AddOp, y, op.bias)
    return emit.reshape(y, (*shape[:-1], outputs))
