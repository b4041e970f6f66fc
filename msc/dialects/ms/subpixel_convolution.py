"""Convolution to an image finer than its input: what is left of a transposed one without the products with zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def

from msc.dialects.ms.accumulation import AccumulatingOp
from msc.dialects.ms.properties import int_property, required_ints
from msc.dialects.ms.shapes import UNKNOWN, Shape, known, shape_text, tensor_type
from msc.dialects.ms.windows import AXIS_NAMES
from msc.ir.errors import InvalidAttribute, ShapeConflict
from msc.poly.compute import Statement, affine_map, dims
from msc.poly.scalar import Read, apply


@irdl_op_definition
class SubpixelConvOp(AccumulatingOp):
    """Sub-pixel convolution: a kernel of its own for each place between the elements of x.

    x `[n, ic, spatial...]`, weight `[finer..., oc, ic / group, kernel...]` -> `[n, oc, (positions, finer)...]`: a pair
    for each of up to three spatial axes, which together are an axis `finer` times as long. What is at position i and
    place p of it is the sum over a window of x that begins at i + (p + begin) / finer, rounded down; `begin` is below
    `finer`. One number type. Transposed convolution with strides is this one (Shi et al. 2016).
    """

    name = "ms.subpixel_conv"
    EXAMPLE: ClassVar[str] = "2x3x4x5xT 2x3x4x3x2x2xT {begin = [1, 2]}"
    x = operand_def(TensorType)
    weight = operand_def(TensorType)
    begin = required_ints()
    group = int_property(1)

    @property
    def axes(self) -> int:
        """How many spatial axes there are."""
        return len(self.shape(0)) - 2

    def finer(self) -> Shape:
        """How many times finer the result is along each axis."""
        return self.shape(1)[: self.axes]

    def infer(self) -> Sequence[TensorType[Attribute]]:
        dtype = self.result_type_for(self.expect_one_dtype("a number"))
        self._check()
        n, outputs = self.shape(0)[0], self.shape(1)[self.axes]
        pairs = (size for pair in zip(self._positions(), self.finer(), strict=True) for size in pair)
        return (tensor_type(dtype, (n, outputs, *pairs)),)

    def _check(self) -> None:
        x, weight = self.shape(0), self.shape(1)
        if not 1 <= self.axes <= len(AXIS_NAMES) or len(weight) != 2 * self.axes + 2:
            raise ShapeConflict(f"{self.name}: x of {shape_text(x)} and a weight of {shape_text(weight)} do not fit")
        begin, finer, group = self.ints("begin"), self.finer(), self.int_("group")
        if len(begin) != self.axes or any(
            b < 0 or (f != UNKNOWN and b >= f) for b, f in zip(begin, finer, strict=True)
        ):
            raise InvalidAttribute(f"{self.name}: begin {list(begin)} must have entries below {shape_text(finer)}")
        outputs, inputs = weight[self.axes : self.axes + 2]
        fits = UNKNOWN in (x[1], inputs) or x[1] == inputs * group
        if group < 1 or not fits or (outputs != UNKNOWN and outputs % group):
            raise ShapeConflict(
                f"{self.name}: x of {shape_text(x)} and a weight of {shape_text(weight)} in {group} groups do not fit"
            )

    def _positions(self) -> Shape:
        """Raises ShapeConflict where no window fits."""
        axes = zip(self.shape(0)[2:], self.finer(), self.ints("begin"), self.shape(1)[self.axes + 2 :], strict=True)
        found = tuple(n - k + 1 - (f - 1 + b) // f if known((n, f, k)) else UNKNOWN for n, f, b, k in axes)
        if any(n != UNKNOWN and n < 1 for n in found):
            raise ShapeConflict(f"{self.name}: no window fits into x of {shape_text(self.shape(0))}")
        return found

    def compute(self) -> Sequence[Statement]:
        box = self._box()
        index = dict(zip(box, dims(len(box)), strict=True))
        places, positions, taps = ([index[prefix + axis] for axis in AXIS_NAMES[-self.axes :]] for prefix in "pok")
        group, (outputs, inputs) = index.get("g", AffineExpr.constant(0)), self._group_channels()
        channel = group * outputs + index["oc"]
        first = self._first(places)
        read = [o + f + k for o, f, k in zip(positions, first, taps, strict=True)]
        x = Read(0, affine_map(len(box), (index["n"], group * inputs + index["ic"], *read)), self.dtype(0))
        weight = Read(1, affine_map(len(box), (*places, channel, index["ic"], *taps)), self.dtype(1))
        pairs = (e for pair in zip(positions, places, strict=True) for e in pair)
        write = affine_map(len(box), (index["n"], channel, *pairs))
        return (Statement(tuple(box.values()), tuple(box), write, self.term(apply("mul", x, weight)), "add"),)

    def _box(self) -> dict[str, int]:
        """The loops with their extents: over n, places, channels, positions, and what is summed."""
        spatial, (outputs, inputs) = AXIS_NAMES[-self.axes :], self._group_channels()
        groups = {"g": self.int_("group")} if self.int_("group") > 1 else {}
        places, positions, taps = (
            {prefix + axis: n for axis, n in zip(spatial, sizes, strict=True)}
            for prefix, sizes in (("p", self.finer()), ("o", self._positions()), ("k", self.shape(1)[self.axes + 2 :]))
        )
        return {"n": self.shape(0)[0], **places, **groups, "oc": outputs, **positions, "ic": inputs, **taps}

    def _group_channels(self) -> tuple[int, int]:
        """Output and input channels of a group."""
        outputs, inputs = self.shape(1)[self.axes : self.axes + 2]
        return outputs // self.int_("group"), inputs

    def _first(self, places: Sequence[AffineExpr]) -> list[AffineExpr]:
        """Where in x the windows of a place begin; without a division where there is a linear form."""
        found: list[AffineExpr] = []
        for place, finer, begin in zip(places, self.finer(), self.ints("begin"), strict=True):
            steps = [(p + begin) // finer for p in range(finer)]
            linear = steps[-1] if finer == 2 else 0
            found.append(place * linear if steps == [p * linear for p in range(finer)] else (place + begin) // finer)
        return found
