"""Quantised values at the borders of kernels: epilogues of the matrix unit, and who makes reals of bytes."""

from __future__ import annotations

from xdsl.ir import Block

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


def dequantize_where_read(block: Block) -> None:
    """Give each reader of reals that bytes stand for an operation of its own, which its kernel takes."""
    for op in list(block.ops):
        if not isinstance(op, DequantizeOp) or op.dtype(0) not in _BYTES:
            continue
        for use in list(op.result.uses)[1:]:
            if use.operation.parent is block and use.operation.next_op is not None:
                own = op.clone()
                block.insert_op_before(own, use.operation)
                use.operation.operands[use.index] = own.result


def makes_reals_of_kept_bytes(area: Area) -> bool:
    """Whether an area only makes reals of bytes that others read too, for another kernel of this block."""
    op = area.anchor
    if len(area.ops) > 1 or not isinstance(op, DequantizeOp) or op.dtype(0) not in _BYTES or op.x.has_one_use():
        return False
    return all(use.operation.next_op is not None for use in op.result.uses)
