"""The epilogue of integer sums that the matrix unit computes: one scale, and f16 or bytes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from msc.analysis.rescaling import one_scale
from msc.dialects.ms.arithmetic import AddOp, MaximumOp, MinimumOp, MulOp
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.constants import splat_of
from msc.dialects.ms.elementwise import CastOp
from msc.dialects.ms.unary import ReluOp, RoundOp
from msc.graph_kernel.fusion.areas import Area
from msc.poly.compute import integer_range

_BYTES = ("i8", "ui8")
_ZERO_POINTS = range(integer_range("i8")[0], integer_range("ui8")[1] + 1)


def is_quantised_epilogue(product: Area, consumer: Area) -> bool:
    """Whether a consumer is all that happens to the sums of a product until they are f16 or bytes, with one scale."""
    value, steps = product.ops[-1].results[0], list[tuple[Operation, float]]()
    while value.has_one_use() and len(steps) < len(consumer.ops):
        op = next(iter(value.uses)).operation
        if op not in consumer.ops:
            break
        literal = _literal(op, value)
        if literal is None:
            return False
        steps.append((op, literal))
        value = op.results[0]
    return len(steps) == len(consumer.ops) and _fits(steps)


def _literal(op: Operation, value: SSAValue) -> float | None:
    """The number that an operation takes beside a value, 0 if it takes the value alone; None for another operation."""
    if isinstance(op, CastOp | RoundOp | ReluOp):
        return 0.0
    if not isinstance(op, AddOp | MulOp | MaximumOp | MinimumOp):
        return None
    other = splat_of(next((operand for operand in op.operands if operand is not value), value))
    return None if other is None else float(str(other))


def _fits(steps: Sequence[tuple[Operation, float]]) -> bool:
    """A conversion to f32, scales, maybe a ReLU; then f16, or rounded, a zero point, cut to a byte's range, a byte.

    Integers may be rounded again.
    """
    kinds = [type(op) for op, _ in steps]
    if kinds[:1] != [CastOp] or kinds[-1:] != [CastOp] or _dtype(steps[0][0]) != "f32":
        return False
    middle, result = list(steps[1:-1]), _dtype(steps[-1][0])
    scales = list[float]()
    while middle and isinstance(middle[0][0], MulOp):
        scales.append(middle.pop(0)[1])
    if not scales or one_scale(*scales) is None:
        return False
    if middle and (isinstance(middle[0][0], ReluOp) or (isinstance(middle[0][0], MaximumOp) and middle[0][1] == 0)):
        middle.pop(0)
    if result == "f16":
        return not middle
    if result not in _BYTES or not middle or not isinstance(middle.pop(0)[0], RoundOp):
        return False
    if middle and isinstance(middle[0][0], AddOp):
        zero = middle.pop(0)[1]
        if zero not in _ZERO_POINTS:
            return False
    low, high = integer_range(result)
    bounds = [(type(op), literal) for op, literal in middle if not isinstance(op, RoundOp)]
    return sorted(bounds, key=lambda bound: bound[1]) == [(MaximumOp, low), (MinimumOp, high)]


def _dtype(op: Operation) -> str:
    assert isinstance(op, MsOp)
    return op.result_dtype()
