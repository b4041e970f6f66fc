"""Adding elements: around a tensor and between its elements. Basic: each part is a statement over a box of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def

from msc.dialects.ms.base import BasicTensorOp
from msc.dialects.ms.elementwise import check_representable, constant, pointwise_statement
from msc.dialects.ms.movement import copy_statement
from msc.dialects.ms.properties import choice_property, real_property, required_ints
from msc.dialects.ms.shapes import UNKNOWN, shape_text, tensor_type
from msc.ir.errors import InvalidAttribute, ShapeConflict
from msc.poly.compute import Statement, affine_map, dims

Part = tuple[int, int, int, int]
"""A part of one axis: extent, first place in the result, factor and offset of the place in the operand."""


@irdl_op_definition
class PadOp(BasicTensorOp):
    """Elements added around x; `pad` has the number before each axis, then the number after each.

    `mode`: "constant" (`value`, rounded to the element type), "edge" (the nearest element), "reflect" (mirrored, the
    edge not repeated; fewer than the axis has) or "wrap" (from the other end; at most as many as the axis has).
    MindSpore Pad and MirrorPad, ONNX Pad.
    """

    name = "ms.pad"
    EXAMPLE: ClassVar[str] = "2x3xT {pad = [1, 0, 0, 2], value = 1.0}"
    x = operand_def(TensorType)
    pad = required_ints()
    mode = choice_property("constant")
    value = real_property(0.0)
    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {"mode": ("constant", "edge", "reflect", "wrap")}

    def amounts(self) -> tuple[tuple[int, int], ...]:
        """Begin and end padding of each axis. Raises InvalidAttribute."""
        pad, rank = self.ints("pad"), len(self.shape(0))
        if len(pad) != 2 * rank or any(p < 0 for p in pad):
            text = ", ".join(map(str, pad))
            raise InvalidAttribute(
                f"ms.pad: pad [{text}] must have {2 * rank} entries of 0 or more: before each axis, then after"
            )
        return tuple(zip(pad[:rank], pad[rank:], strict=True))

    def infer(self) -> Sequence[TensorType[Attribute]]:
        check_representable(self, "value", self.dtype(0))
        shape, amounts = self.shape(0), self.amounts()
        for axis, (n, most) in enumerate(zip(shape, map(max, amounts), strict=True)):
            limit = {"edge": most if n else 0, "reflect": n - 1, "wrap": n}.get(self.word("mode"), most)
            if n != UNKNOWN and most > max(limit, 0):
                raise ShapeConflict(
                    f"ms.pad: {most} elements beside axis {axis} of {shape_text(shape)}; mode {self.word('mode')!r} "
                    f"has {max(limit, 0)} at most"
                )
        sizes = zip(shape, amounts, strict=True)
        return (tensor_type(self.dtype(0), [n if n == UNKNOWN else n + b + e for n, (b, e) in sizes]),)

    def compute(self) -> Sequence[Statement]:
        if self.word("mode") == "constant":
            copy = self._copy([(n, b, 1, 0) for n, (b, _) in zip(self.shape(0), self.amounts(), strict=True)])
            return (*self.border(), copy)
        axes = [list(self._parts(n, b, e)) for n, (b, e) in zip(self.shape(0), self.amounts(), strict=True)]
        return [self._copy(parts) for parts in product(*axes)]

    def border(self) -> list[Statement]:
        """What writes the constant around x: a slab at each padded end, without the corners of earlier axes."""
        slabs: list[Statement] = []
        places = [(0, size) for size in self.result_shape()]
        for axis, (n, (begin, end)) in enumerate(zip(self.shape(0), self.amounts(), strict=True)):
            for first, extent in ((0, begin), (begin + n, end)):
                if extent:
                    slabs.append(self._slab([*places[:axis], (first, extent), *places[axis + 1 :]]))
            places[axis] = (begin, n)
        return slabs

    def _slab(self, places: Sequence[tuple[int, int]]) -> Statement:
        """The constant in a box: first place and extent along each axis."""
        d = dims(len(places))
        names = tuple(f"i{k}" for k in range(len(places)))
        write = affine_map(len(places), [e + first for e, (first, _) in zip(d, places, strict=True)])
        return Statement(
            tuple(extent for _, extent in places), names, write, constant(self.real("value"), self.dtype(0))
        )

    def _parts(self, n: int, begin: int, end: int) -> Iterator[Part]:
        """The parts of one axis that are not empty: the operand itself, what is before, what is after."""
        sources = {
            "edge": ((0, 0), (0, n - 1)),
            "reflect": ((-1, begin), (-1, n - 2)),
            "wrap": ((1, n - begin), (1, 0)),
        }
        before, after = sources[self.word("mode")]
        parts = (n, begin, 1, 0), (begin, 0, *before), (end, begin + n, *after)
        return (part for part in parts if part[0])

    def _copy(self, parts: Sequence[Part]) -> Statement:
        d = dims(len(parts))
        write = [e + place for e, (_, place, _, _) in zip(d, parts, strict=True)]
        read = [_source(e, factor, offset) for e, (_, _, factor, offset) in zip(d, parts, strict=True)]
        return copy_statement([extent for extent, *_ in parts], write, read, self.dtype(0))


def _source(e: AffineExpr, factor: int, offset: int) -> AffineExpr | int:
    return e * factor + offset if factor else offset


@irdl_op_definition
class DilateOp(BasicTensorOp):
    """`interior` zeros between neighbours along each axis. What transposed convolution expands to."""

    name = "ms.dilate"
    EXAMPLE: ClassVar[str] = "2x3xT {interior = [1, 0]}"
    x = operand_def(TensorType)
    interior = required_ints()

    def infer(self) -> Sequence[TensorType[Attribute]]:
        shape, interior = self.shape(0), self.ints("interior")
        if len(interior) != len(shape) or any(i < 0 for i in interior):
            text = ", ".join(map(str, interior))
            raise InvalidAttribute(f"ms.dilate: interior [{text}] must have {len(shape)} entries of 0 or more")
        sizes = [n if n == UNKNOWN else max((n - 1) * (i + 1) + 1, 0) for n, i in zip(shape, interior, strict=True)]
        return (tensor_type(self.dtype(0), sizes),)

    def compute(self) -> Sequence[Statement]:
        fill = pointwise_statement(self.result_shape(), constant(0, self.dtype(0)))
        d = dims(len(self.shape(0)))
        write = [e * (i + 1) for e, i in zip(d, self.ints("interior"), strict=True)]
        return fill, copy_statement(self.shape(0), write, d, self.dtype(0))
