"""Pass `narrow-products`."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import OpResult, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.constancy import Constancy
from msc.analysis.properties import REWRITES_GRAPH
from msc.analysis.tensor_ranges import TensorRanges
from msc.dialects.element_types import element_type
from msc.dialects.ms.arithmetic import AddOp, FloorDivOp, MaximumOp, MinimumOp, MulOp, SubOp
from msc.dialects.ms.constants import splat_of
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.elementwise import CastOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.movement import BroadcastToOp, TransposeOp
from msc.dialects.ms.reductions import ReduceSumOp
from msc.dialects.ms.unary import RoundOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.emitter import Emitter
from msc.graph.graph_loops import put_in_place
from msc.lowering.ascend.target import davinci_of

Product: TypeAlias = MatrixProductOp | ConvolutionOp

_LEAST, _MOST = -128, 127
_EXACT_SUM = 1 << 24
"""f32 holds all integers up to here."""


@dataclass(frozen=True)
class NarrowProducts(ModulePass):
    """Multiply integers of few values, as bytes with a zero point are, as bytes, with sums of i32.

    Takes: a graph. Gives: in place of a matrix product or a convolution of i32, whose operands have 256 values at
    most, one of i8 with `dtype = i32`, which matrix units have: `(a + s) b` is `a b` and s times the sums of b's
    columns. An image is padded with -s. A constant of up to 511 values becomes the sum of two of i8.
    Left alone: products of other integers, convolutions of each channel by itself; all where calls decide sizes, or
    where the machine has no way of i32 sums to memory.
    Keeps: the results, bit by bit: all integers wrap at 32 bits.
    Example: `(cast u8 -> i32) - 113` times a weight is `(u8 - 128)` times the weight and 15 times its columns' sums.
    """

    name = "narrow-products"
    contract = REWRITES_GRAPH

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if has_open_sizes(op) or not davinci_of(op).features.fixpipe_to_gm:
            return
        ranges, constancy = TensorRanges(op), Constancy()
        for product in [o for o in op.walk() if isinstance(o, MatrixProductOp | ConvolutionOp)]:
            if product.dtype(0) == "i32":
                _Narrowing(product, ranges, constancy).replace()


@dataclass(frozen=True)
class _Moved:
    """An operand by bytes: the sum of `parts`, and `shift`, which is the same along k."""

    value: SSAValue
    parts: tuple[SSAValue, ...]
    shift: SSAValue | int


class _Narrowing:
    """Writes products of bytes in the place of a product."""

    def __init__(self, product: Product, ranges: TensorRanges, constancy: Constancy) -> None:
        self.product, self.emit = product, Emitter(product)
        self._ranges, self._constancy = ranges, constancy

    def replace(self) -> None:
        """Put them there, if the operands have few values."""
        product = self.product
        a, b = (self._moved(number) for number in (0, 1))
        value = None
        if a is not None and b is not None:
            of_images = isinstance(product, ConvolutionOp)
            value = self._convolution(product, a, b) if of_images else self._matrices(product, a, b)
        if value is not None:
            put_in_place(self.emit, value, "product")
            return
        for op in reversed(self.emit.ops):
            op.erase()

    # Operands.

    def _moved(self, number: int) -> _Moved | None:
        """An operand as bytes; None where it has too many values."""
        value = self.product.operands[number]
        found = self._ranges.of(value)
        if found is None:
            return None
        if found[0] >= _LEAST and found[1] <= _MOST:
            return _Moved(value, (self._bytes(value, 0),), 0)
        if self._constancy.of(value):
            if found[0] < 2 * _LEAST or found[1] > 2 * _MOST:
                return None
            half = self.emit(FloorDivOp, value, 2)
            return _Moved(value, (self._bytes(half, 0), self._bytes(self.emit(SubOp, value, half), 0)), 0)
        if found[1] - found[0] <= _MOST - _LEAST:
            shift = found[0] - _LEAST
            return _Moved(value, (self._bytes(value, shift),), shift)
        return self._moved_by_data(value, number)

    def _moved_by_data(self, value: SSAValue, number: int) -> _Moved | None:
        """A difference of bytes and a zero point that is computed, the same for all of k."""
        op = value.op if isinstance(value, OpResult) else None
        if not isinstance(op, SubOp) or not self._same_along_k(op.operands[1], number):
            return None
        base, zero = op.operands
        found = self._ranges.of(base)
        if found is None or found[1] - found[0] > _MOST - _LEAST or self.emit.shape(base) != self.emit.shape(value):
            return None
        shift = 0 if found[0] >= _LEAST and found[1] <= _MOST else found[0] - _LEAST
        return _Moved(value, (self._bytes(base, shift),), self.emit(SubOp, self.emit.scalar(shift, "i32"), zero))

    def _same_along_k(self, zero: SSAValue, number: int) -> bool:
        """Whether a zero point is the same wherever sums run."""
        product, shape = self.product, self.emit.shape(zero)
        if prod(shape) == 1:
            return True
        if isinstance(product, ConvolutionOp) or product.flag("transpose_b" if number else "transpose_a"):
            return False
        return (1, *shape)[-2 if number else -1] == 1

    def _bytes(self, value: SSAValue, shift: int) -> SSAValue:
        """`value - shift` as i8; it must fit."""
        op = value.op if isinstance(value, OpResult) else None
        if isinstance(op, SubOp) and (zero := splat_of(op.operands[1])) is not None:
            base = op.operands[0]
            if self.emit.shape(base) == self.emit.shape(value):
                return self._bytes(base, shift + int(str(zero)))
        if isinstance(op, CastOp) and not shift and op.dtype(0) == "i8":
            return op.operands[0]
        moved = self.emit(SubOp, value, shift) if shift else value
        return self.emit.cast(moved, "i8")

    # Products.

    def _matrices(self, product: MatrixProductOp, a: _Moved, b: _Moved) -> SSAValue | None:
        turned = (product.flag("transpose_a"), product.flag("transpose_b"))
        corrections: list[SSAValue] = []
        for number, (moved, other) in enumerate(((a, b), (b, a))):
            if moved.shift != 0:
                sums = self._sums_along_k(other, 1 - number, bytes_alone=number == 1)
                if sums is None:
                    return None
                corrections.append(self._times(sums, moved.shift))
        left = [(part, turned[0]) for part in a.parts]
        right = [self._turned(part, turned[1], self._constancy.of(b.value)) for part in b.parts]
        terms = [
            self.emit(type(product), x, y, transpose_a=x_turned, transpose_b=y_turned, dtype=element_type("i32"))
            for x, x_turned in left
            for y, y_turned in right
        ]
        return self._total([terms[0], *corrections, *terms[1:]])

    def _turned(self, part: SSAValue, turned: bool, constant: bool) -> tuple[SSAValue, bool]:
        """A constant right operand lies with k along its rows: so loads do not turn it."""
        if turned or not constant:
            return part, turned
        rank = len(self.emit.shape(part))
        return self.emit(TransposeOp, part, perm=[*range(rank - 2), rank - 1, rank - 2]), True

    def _sums_along_k(self, moved: _Moved, number: int, bytes_alone: bool) -> SSAValue | None:
        """The sums of an operand along k, or of its bytes alone; None where f32 may not hold them."""
        assert isinstance(self.product, MatrixProductOp)
        shape = self.emit.shape(moved.value)
        rank, turned = len(shape), self.product.flag("transpose_b" if number else "transpose_a")
        along, across = (rank - 2, rank - 1) if bool(number) != turned else (rank - 1, rank - 2)
        if self._constancy.of(moved.value):
            sums = self.emit(ReduceSumOp, moved.value, axis=[along], keep_dims=True)
        elif shape[along] * -_LEAST > _EXACT_SUM or turned:
            return None
        else:
            real = self.emit.cast(moved.parts[0], "f32")
            real = self.emit(RoundOp, self.emit(ReduceSumOp, real, axis=[along], keep_dims=True))
            real = self.emit(MinimumOp, self.emit(MaximumOp, real, float(-_EXACT_SUM)), float(_EXACT_SUM))
            sums = self.emit.cast(real, "i32")
            if moved.shift != 0 and not bytes_alone:
                sums = self.emit(AddOp, sums, self._times(self.emit.scalar(shape[along], "i32"), moved.shift))
        order = (*shape[: rank - 2], 1, shape[across]) if number else (*shape[: rank - 2], shape[across], 1)
        return self.emit.reshape(sums, order)

    def _convolution(self, product: ConvolutionOp, a: _Moved, b: _Moved) -> SSAValue | None:
        group, weights = product.int_("group"), self.emit.shape(b.value)
        if b.shift != 0 or (group > 1 and weights[0] == group and weights[1] == 1):
            return None
        shape = {"stride": product.ints("stride"), "dilation": product.ints("dilation"), "group": group}
        padding = product.padding()
        image, bias, correction = a.parts[0], product.bias, None
        if isinstance(a.shift, int):
            image = self.emit.pad_spatial(image, padding, float(-a.shift))
            if a.shift:
                if not self._constancy.of(b.value):
                    return None
                sums = self.emit(ReduceSumOp, b.value, axis=list(range(1, len(weights))))
                sums = self._times(sums, a.shift)
                bias = sums if bias is None else self.emit(AddOp, bias, sums)
        else:
            if not self._constancy.of(b.value):
                return None
            image = self.emit.pad_spatial(image, padding)
            ones = self.emit(BroadcastToOp, self.emit.scalar(1, "i32"), shape=[1, *self.emit.shape(a.value)[1:]])
            inside = self.emit(type(product), self.emit.pad_spatial(ones, padding), b.value, **shape)
            correction = self._times(inside, self.emit.reshape(a.shift, ()))
        terms = [self.emit(type(product), image, part, **shape, dtype=element_type("i32")) for part in b.parts]
        if bias is not None:
            terms.insert(1, self.emit.along_channels(bias, product.SPATIAL + 2))
        return self._total(terms if correction is None else [*terms, correction])

    def _times(self, sums: SSAValue, shift: SSAValue | int) -> SSAValue:
        return self.emit(MulOp, sums, self.emit.scalar(shift, "i32") if isinstance(shift, int) else shift)

    def _total(self, terms: list[SSAValue]) -> SSAValue:
        total = terms[0]
        for term in terms[1:]:
            total = self.emit(AddOp, total, term)
        return total
