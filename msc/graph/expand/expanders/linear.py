"""The dense layer as a matrix product."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from msc.analysis.constancy import is_constant
from msc.dialects import ms
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander


@expander(ms.DenseOp)
def _dense(op: ms.DenseOp, emit: Emitter) -> SSAValue:
    """Rows of x times the weight, transposed at compile time if it is a parameter, plus the bias."""
    shape, (outputs, inputs) = emit.shape(op.x), emit.shape(op.weight)
    rows = emit.reshape(op.x, (math.prod(shape[:-1]), inputs))
    if is_constant(op.weight):
        y = emit(ms.MatmulOp, rows, emit(ms.TransposeOp, op.weight, perm=[1, 0]))
    else:
        y = emit(ms.MatmulOp, rows, op.weight, transpose_b=True)
    if op.bias is not None:
        y = emit(ms.AddOp, y, op.bias)
    return emit.reshape(y, (*shape[:-1], outputs))
