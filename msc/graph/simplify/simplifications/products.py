"""Matrix products of transposed operands read them the other way round, which is exact: the same sums in one order."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.analysis.constancy import is_constant
from msc.dialects import ms
from msc.dialects.ms.linear import MatrixProductOp
from msc.graph.emitter import Emitter
from msc.graph.simplify.simplifications.arithmetic import defined_by
from msc.graph.simplify.simplifications.registry import simplification


@simplification(ms.MatmulOp, ms.BatchMatmulOp)
def _transposed_operand(op: MatrixProductOp, emit: Emitter) -> SSAValue | None:
    """A transposition of the last two axes becomes `transpose_a` or `transpose_b`; one of a weight is done before."""
    a, b = _untransposed(op.a), _untransposed(op.b)
    if a is None and b is None:
        return None
    flags = {
        "transpose_a": op.flag("transpose_a") != (a is not None),
        "transpose_b": op.flag("transpose_b") != (b is not None),
    }
    return emit(type(op), a or op.a, b or op.b, dtype=op.plain("dtype"), **flags)


def _untransposed(value: SSAValue) -> SSAValue | None:
    """What a transposition of the last two axes is of; None for other values and for constants."""
    inner = defined_by(value, ms.TransposeOp)
    if not isinstance(inner, ms.TransposeOp) or is_constant(value):
        return None
    perm = inner.permutation()
    rank = len(perm)
    swapped = (*range(rank - 2), rank - 1, rank - 2)
    return inner.x if rank >= 2 and perm == swapped else None
