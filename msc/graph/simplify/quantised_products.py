"""Pass `quantised-products`."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import OpResult, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.constancy import is_constant
from msc.analysis.properties import REWRITES_GRAPH
from msc.analysis.target import target_of
from msc.dialects import ms
from msc.dialects.element_types import BYTES, element_type
from msc.dialects.ms.accumulation import NARROW_INTEGERS
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.constants import splat_of
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.quantisation import DequantizeOp, QuantizeOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.emitter import Emitter
from msc.graph.graph_loops import put_in_place
from msc.poly.compute import integer_range
from msc.targets.machine import Machine

_MOST_TERMS = (1 << 31) // (255 * 128)
"""Sums of so many products of bytes fit into i32."""

_WORD = 4
"""Bytes of a word."""

_MOVES = (
    *(ms.ReshapeOp, ms.FlattenOp, ms.SqueezeOp, ms.ExpandDimsOp, ms.TransposeOp, ms.SliceOp),
    *(ms.MaxPool1dOp, ms.MaxPool2dOp, ms.MaxPool3dOp, ms.GlobalMaxPoolOp),
)
"""Operations that give elements of their operand, the largest among them."""


@dataclass(frozen=True)
class QuantisedProducts(ModulePass):
    """Compute dequantise - product - quantise in integers.

    Takes: a graph. Gives: in place of a convolution or matrix product of a dequantised tensor and weights, one of
    bytes with sums of i32, dequantised; what quantises that becomes `ms.requantize`. The zero point of x is what
    pads an image, and is folded into the bias, as is a bias of reals, rounded to the scale of the sums. ReLU and
    limits between become limits of the integers: rounding is monotone. Views and transpositions move integers. Products
    of bytes that were widened to i32 (QLinearConv, MatMulInteger) become such of the bytes, with the same sums.
    Left in f32: weights with a zero point, that are no constants or have a scale for other than output channels; x with
    several scales; sums that may leave i32; models whose sizes a call decides. Without `always`, so is all on machines
    that have room for f32 weights and no instruction that sums four products of bytes: there f32 is faster.
    A product of packed weights that rounds its input becomes one of words of bytes where such an instruction is, else
    one of the rounded reals.
    Keeps: results but for one step of the scale where a sum of floats lies next to a tie: a sum of integers is exact.
    """

    name = "quantised-products"
    contract = REWRITES_GRAPH
    always: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = target_of(op).cores
        words = isinstance(machine, Machine) and _sums_bytes(machine)
        for each in [each for each in op.walk() if isinstance(each, ms.PackedMatmulOp) and each.flag("rounds")]:
            emit = Emitter(each)
            put_in_place(emit, _rounded(each, emit, words), "packed_matmul")
        pays = isinstance(machine, Machine) and (machine.flash > 0 or _sums_bytes(machine))
        if has_open_sizes(op) or not (self.always or pays):
            return
        for each in list(op.walk()):
            if isinstance(each, MsOp) and each.parent is not None:
                _rewrite(each, words)


def _sums_bytes(machine: Machine) -> bool:
    """Whether an instruction of full vectors sums products of bytes and weights at least twice as fast as of f32."""
    lanes = machine.lanes(BYTES["f32"])
    units = (unit for unit in machine.units if unit.in_registers and unit.shape.n == lanes)
    return any(unit.order("ui8", "i8", "i32") is not None and 2 * unit.cycles <= unit.shape.k for unit in units)


def _rewrite(op: MsOp, words: bool) -> None:
    """Put integers in the place of one operation, if its operands are dequantised."""
    emit = Emitter(op)
    match op:
        case MatrixProductOp() | ConvolutionOp():
            value = _product(op, emit, words)
        case ms.AddOp():
            value = _with_bias(op, emit)
        case QuantizeOp():
            value = _requantized(op, emit)
        case _ if isinstance(op, _MOVES):
            value = _moved(op, emit)
        case _:
            return
    if value is not None:
        put_in_place(emit, value, op.name.removeprefix("ms."))
        return
    for made in reversed(emit.ops):
        made.erase()


def _rounded(op: ms.PackedMatmulOp, emit: Emitter, words: bool) -> SSAValue:
    """Blocks of rows on 255 numbers, and the product of these bytes, or of the reals that they stand for."""
    (m, k), (panels, blocks, size, width) = op.shape(0), op.shape(1)
    apart = emit(ms.ReshapeOp, op.x, shape=(m, blocks, k // blocks))
    most = emit(ms.ReduceMaxOp, emit(ms.AbsOp, apart), axis=[2], keep_dims=True)
    scale = emit(ms.MaximumOp, emit(ms.DivOp, most, 127.0), float(np.finfo(np.float32).tiny))
    whole = emit(QuantizeOp, apart, scale, dtype=element_type("i8"))
    bits = op.int_("bits")
    if not words or size % _WORD or not is_constant(op.codes):
        real = emit(ms.ReshapeOp, emit(DequantizeOp, whole, scale), shape=(m, k))
        return emit(ms.PackedMatmulOp, real, *op.operands[1:], bits=bits)
    sums = emit(ms.ReduceSumOp, emit.cast(whole, "i32"), axis=[2])
    by_column = emit(ms.ReshapeOp, op.codes, shape=(panels, blocks, size // _WORD, _WORD, width))
    codes = _joined_bytes(emit(ms.TransposeOp, by_column, perm=[0, 1, 2, 4, 3]), emit)
    x = _joined_bytes(emit(ms.ReshapeOp, whole, shape=(m, k // _WORD, _WORD)), emit)
    return emit(
        ms.PackedDotOp, x, emit(ms.ReshapeOp, scale, shape=(m, blocks)), sums, codes, *op.operands[2:], bits=bits
    )


def _joined_bytes(value: SSAValue, emit: Emitter) -> SSAValue:
    """The bytes of the last axis as words, the first in the lowest bits."""
    places = emit.ssa(emit.known(np.arange(0, 8 * _WORD, 8, dtype=np.int32)))
    bits = emit(ms.BitwiseAndOp, emit.cast(value, "i32"), 255)
    return emit(ms.ReduceSumOp, emit(ms.ShiftLeftOp, bits, places), axis=[len(emit.shape(value)) - 1])


def _dequantized(value: SSAValue) -> DequantizeOp | None:
    return value.op if isinstance(value, OpResult) and isinstance(value.op, DequantizeOp) else None


def _moved(op: MsOp, emit: Emitter) -> SSAValue | None:
    """The same of integers of one scale."""
    real = _dequantized(op.operands[0])
    if real is None or is_constant(real.x) or not _has_one_scale(real, emit):
        return None
    moved = op.clone({op.operands[0]: real.x})
    moved.set_result_types(moved.infer())
    emit.insert(moved)
    return emit(DequantizeOp, moved.results[0], *real.operands[1:])


def _has_one_scale(real: DequantizeOp, emit: Emitter) -> bool:
    return all(prod(emit.shape(each)) == 1 and not emit.shape(each) for each in real.operands[1:])


def _product(op: MatrixProductOp | ConvolutionOp, emit: Emitter, words: bool) -> SSAValue | None:
    """Sums of products of bytes, times both scales where reals are multiplied."""
    if op.result_dtype() == "i32":
        return _integer_product(op, emit, words)
    x, w = _dequantized(op.operands[0]), _dequantized(op.operands[1])
    if x is None or w is None or op.result_dtype() != "f32" or not _has_one_scale(x, emit):
        return None
    zero = 0 if x.zero is None else splat_of(x.zero)
    by_channel = _scale_of_channels(op, w, emit)
    symmetric = w.zero is None or splat_of(w.zero) == 0
    if zero is None or by_channel is None or not symmetric:
        return None
    sums = _sums(op, x.x, int(str(zero)), w.x, emit, words)
    if sums is None:
        return None
    real = emit(DequantizeOp, sums, emit(ms.MulOp, x.scale, by_channel))
    if isinstance(op, ConvolutionOp) and op.bias is not None:
        return _biased(real, emit.along_channels(op.bias, op.SPATIAL + 2), emit)
    return real


def _integer_product(op: MatrixProductOp | ConvolutionOp, emit: Emitter, words: bool) -> SSAValue | None:
    """A product of bytes that were widened, less their zero points, as one of the bytes themselves."""
    x, w = (_widened(operand) for operand in op.operands[:2])
    if x is None or w is None or w[1] != 0:
        return None
    sums = _sums(op, *x, w[0], emit, words)
    if sums is None or not isinstance(op, ConvolutionOp) or op.bias is None:
        return sums
    return emit(ms.AddOp, sums, emit.along_channels(op.bias, op.SPATIAL + 2))


def _widened(value: SSAValue) -> tuple[SSAValue, int] | None:
    """The bytes that i32 were made of, and the zero point that was taken from them."""
    zero = 0
    if isinstance(value, OpResult) and isinstance(value.op, ms.SubOp):
        taken, value = _uncast(value.op.operands[1]), value.op.operands[0]
        known = splat_of(taken)
        if known is None:
            return None
        zero = int(str(known))
    source = _uncast(value)
    return None if source is value else (source, zero)


def _uncast(value: SSAValue) -> SSAValue:
    return value.op.operands[0] if isinstance(value, OpResult) and isinstance(value.op, ms.CastOp) else value


def _sums(
    op: MatrixProductOp | ConvolutionOp, x: SSAValue, shift: int, w: SSAValue, emit: Emitter, words: bool
) -> SSAValue | None:
    """The sums of `(x - shift) w`; None if x and w are no bytes, w no constant, or sums may leave i32.

    For instructions that take `words` of an image's channels, channels fill these up.
    """
    if not is_constant(w) or is_constant(x) or emit.dtype(x) not in NARROW_INTEGERS or emit.dtype(w) != "i8":
        return None
    if _terms(op, emit) > _MOST_TERMS:
        return None
    wide, whole = element_type("i32"), w
    if isinstance(op, ConvolutionOp):
        channels = emit.shape(w)[1]
        more = -channels % _WORD if words and op.int_("group") == 1 else 0
        if 0 < more <= channels:
            x, w = _with_channels(x, more, emit), _with_channels(w, more, emit)
        image = emit.pad_spatial(x, op.padding(), float(shift))
        sizes = {"stride": op.ints("stride"), "dilation": op.ints("dilation"), "group": op.int_("group")}
        sums = emit(type(op), image, w, **sizes, dtype=wide)
    else:
        sizes = {name: op.flag(name) for name in ("transpose_a", "transpose_b")}
        sums = emit(type(op), x, w, **sizes, dtype=wide)
    return emit(ms.AddOp, sums, emit(ms.MulOp, _sums_of_weights(op, whole, emit), -shift)) if shift else sums


def _with_channels(value: SSAValue, more: int, emit: Emitter) -> SSAValue:
    """An image or weights with more channels, of zeros."""
    rank = len(emit.shape(value))
    return emit(ms.PadOp, value, pad=(*([0] * rank), 0, more, *([0] * (rank - 2))))


def _terms(op: MatrixProductOp | ConvolutionOp, emit: Emitter) -> int:
    weights = emit.shape(op.operands[1])
    if isinstance(op, ConvolutionOp):
        return prod(weights[1:])
    return weights[-1] if op.flag("transpose_b") else weights[-2]


def _scale_of_channels(op: MatrixProductOp | ConvolutionOp, w: DequantizeOp, emit: Emitter) -> SSAValue | None:
    """The scale of weights as it broadcasts to the result; None if it has one for other than output channels."""
    weights, scale = emit.shape(w.x), emit.shape(w.scale)
    if not scale or prod(scale) == 1:
        return emit.reshape(w.scale, ())
    full = (*(1 for _ in range(len(weights) - len(scale))), *scale)
    channels = 0 if isinstance(op, ConvolutionOp) else len(weights) - (2 if op.flag("transpose_b") else 1)
    if any(size != 1 for axis, size in enumerate(full) if axis != channels):
        return None
    after = op.SPATIAL if isinstance(op, ConvolutionOp) else 0
    return emit.reshape(w.scale, (full[channels], *(1 for _ in range(after))))


def _sums_of_weights(op: MatrixProductOp | ConvolutionOp, weights: SSAValue, emit: Emitter) -> SSAValue:
    """The sums that the zero point is multiplied by, as they broadcast to the result."""
    rank, whole = len(emit.shape(weights)), emit.cast(weights, "i32")
    if isinstance(op, ConvolutionOp):
        sums = emit(ms.ReduceSumOp, whole, axis=list(range(1, rank)))
        return emit.reshape(sums, (*emit.shape(sums), *(1 for _ in range(op.SPATIAL))))
    sums = emit(ms.ReduceSumOp, whole, axis=[rank - 1 if op.flag("transpose_b") else rank - 2])
    shape = emit.shape(sums)
    return emit.reshape(sums, (*shape[:-1], 1, shape[-1])) if len(shape) > 1 else sums


def _with_bias(op: ms.AddOp, emit: Emitter) -> SSAValue | None:
    """Sums with a constant behind them, of either order."""
    for value, bias in (op.operands, op.operands[::-1]):
        if emit.shape(value) == op.result_shape() and is_constant(bias):
            return _biased(value, bias, emit)
    return None


def _biased(value: SSAValue, bias: SSAValue, emit: Emitter) -> SSAValue | None:
    """Sums of integers and a bias that is rounded to their scale, cut to what f32 holds of i32."""
    real = _dequantized(value)
    if real is None or real.zero is not None or emit.dtype(real.x) != "i32" or emit.dtype(bias) != "f32":
        return None
    if not is_constant(real.scale):
        return emit(ms.AddOp, value, bias)
    whole = emit(ms.RoundOp, emit(ms.DivOp, bias, real.scale))
    whole = emit(ms.MinimumOp, emit(ms.MaximumOp, whole, -(2.0**30)), 2.0**30)
    sums, total = real.x, emit.cast(whole, "i32")
    if isinstance(sums, OpResult) and isinstance(sums.op, ms.AddOp) and is_constant(sums.op.rhs):
        sums, total = sums.op.lhs, emit(ms.AddOp, total, sums.op.rhs)
    return emit(DequantizeOp, emit(ms.AddOp, sums, total), real.scale)


def _requantized(op: QuantizeOp, emit: Emitter) -> SSAValue | None:
    """The sums, or integers of the same scale, by one factor; limits in front of it are limits of the result."""
    if (
        isinstance(op.x, OpResult)
        and isinstance(op.x.op, ms.ConcatOp)
        and all(not emit.shape(v) for v in op.operands[1:])
    ):
        return _joined(op, op.x.op, emit)
    limits, value = list[tuple[type[MsOp], float]](), op.x
    while isinstance(value, OpResult) and isinstance(value.op, ms.ReluOp | ms.Relu6Op | ms.ClipOp):
        limits[:0] = _limits(value.op)
        value = value.op.operands[0]
    real = _dequantized(value)
    if real is None or op.result_dtype() not in NARROW_INTEGERS:
        return None
    target = op.properties["dtype"]
    if emit.dtype(real.x) == "i32" and real.zero is None and emit.dtype(real.scale) == emit.dtype(op.scale) == "f32":
        factor = emit(ms.DivOp, real.scale, op.scale)
        given = [] if op.zero is None else [op.zero]
        result = emit(ms.RequantizeOp, real.x, factor, *given, dtype=target)
    elif _is_same(real, op):
        result = real.x
    else:
        return None
    for operation, limit in limits:
        if operation is ms.MaximumOp and _is_least(op, limit):
            continue
        number = emit(QuantizeOp, emit.scalar(limit, "f32"), *op.operands[1:], dtype=target)
        result = emit(operation, result, number)
    return result


def _is_least(op: QuantizeOp, limit: float) -> bool:
    """Whether a limit is zero, and the zero point the least integer of the type: nothing is below that."""
    zero = 0 if op.zero is None else splat_of(op.zero)
    return limit == 0.0 and zero is not None and int(str(zero)) == integer_range(op.result_dtype())[0]


def _joined(op: QuantizeOp, joined: ms.ConcatOp, emit: Emitter) -> SSAValue | None:
    """Each part quantised, then joined: elements stay what they are where they go."""
    if not op.x.has_one_use():
        return None
    made = [emit.insert(QuantizeOp(part, *op.operands[1:], dtype=op.properties["dtype"])) for part in joined.operands]
    parts = [_requantized(each, emit) or each.result for each in made]
    return emit(ms.ConcatOp, *parts, axis=joined.int_("axis"))


def _is_same(real: DequantizeOp, op: QuantizeOp) -> bool:
    """Whether integers are quantised as they were: by equal literals."""
    if real.result_dtype() != "f32" or real.x.type != op.result.type or len(real.operands) != len(op.operands):
        return False
    pairs = zip(real.operands[1:], op.operands[1:], strict=True)
    return all(
        a is b or (splat_of(a) is not None and a.type == b.type and splat_of(a) == splat_of(b)) for a, b in pairs
    )


def _limits(op: MsOp) -> list[tuple[type[MsOp], float]]:
    """The operations that cut what passes, in order."""
    low = 0.0 if not isinstance(op, ms.ClipOp) else op.plain("min")
    high = 6.0 if isinstance(op, ms.Relu6Op) else op.plain("max") if isinstance(op, ms.ClipOp) else None
    found: list[tuple[type[MsOp], float]] = []
    if isinstance(low, float):
        found.append((ms.MaximumOp, low))
    if isinstance(high, float):
        found.append((ms.MinimumOp, high))
    return found
