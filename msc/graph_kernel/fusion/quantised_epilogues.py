"""The epilogue of integer sums that the matrix unit computes: one scale, and f16 or bytes."""

from __future__ import annotations

from msc.analysis.rescaling import one_scale
from msc.dialects.ms.constants import splat_of
from msc.dialects.ms.quantisation import DequantizeOp, RequantizeOp
from msc.dialects.ms.unary import ReluOp
from msc.graph_kernel.fusion.areas import Area
from msc.poly.compute import integer_range

_BYTES = ("i8", "ui8")
_ZERO_POINTS = range(integer_range("i8")[0], integer_range("ui8")[1] + 1)


def is_quantised_epilogue(product: Area, consumer: Area) -> bool:
    """Whether a consumer is all that happens to the sums of a product until they are f16 or bytes, with one scale.

    Halves may pass a ReLU after that.
    """
    first, *after = consumer.ops
    last = product.ops[-1]
    if isinstance(last, DequantizeOp):
        return isinstance(first, ReluOp) and not after
    if (
        not isinstance(first, RequantizeOp | DequantizeOp)
        or first.x is not last.results[0]
        or not first.x.has_one_use()
    ):
        return False
    scale, zero = splat_of(first.scale), 0 if first.zero is None else splat_of(first.zero)
    if scale is None or zero is None or one_scale(float(str(scale))) is None:
        return False
    if isinstance(first, RequantizeOp):
        return not after and first.result_dtype() in _BYTES and int(str(zero)) in _ZERO_POINTS
    return first.zero is None and first.result_dtype() == "f16" and all(isinstance(op, ReluOp) for op in after)
