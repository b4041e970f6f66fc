"""Images: resizing, and blocks of pixels to channels and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def

from msc.dialects.ms.base import BasicTensorOp, TensorOp
from msc.dialects.ms.movement import copy_statement
from msc.dialects.ms.properties import choice_property, required_int, required_ints
from msc.dialects.ms.shapes import UNKNOWN, Shape, shape_text, tensor_type
from msc.ir.errors import InvalidAttribute, ShapeConflict
from msc.poly.compute import Statement


@irdl_op_definition
class ResizeNearestOp(BasicTensorOp):
    """The last axes of x in new sizes: place i takes the element floor(i * old / new); any element type.

    `size` has an entry for each axis that is resized.
    MindSpore ResizeNearestNeighborV2, ONNX Resize (asymmetric, floor).
    """

    name = "ms.resize_nearest"
    EXAMPLE: ClassVar[str] = "1x2x3x4xT {size = [6, 8]}"
    x = operand_def(TensorType)
    size = required_ints()

    def infer(self) -> Sequence[TensorType[Attribute]]:
        shape, size = self.shape(0), self.ints("size")
        text = f"[{', '.join(map(str, size))}]"
        if not size or any(n < 1 for n in size):
            raise InvalidAttribute(f"ms.resize_nearest: size {text} must have one entry or more, each 1 or more")
        kept = len(shape) - len(size)
        if kept < 0 or 0 in shape[kept:]:
            raise ShapeConflict(f"ms.resize_nearest: {shape_text(shape)} cannot be resized to {text}")
        return (tensor_type(self.dtype(0), (*shape[:kept], *size)),)

    def compute(self) -> Sequence[Statement]:
        extents: list[int] = []
        write: list[AffineExpr] = []
        read: list[AffineExpr] = []
        for old, new in zip(self.shape(0), self.result_shape(), strict=True):
            axis = _resized(old, new, len(extents))
            extents += axis[0]
            write.append(axis[1])
            read.append(axis[2])
        return (copy_statement(extents, write, read, self.dtype(0)),)


def _resized(old: int, new: int, first: int) -> tuple[list[int], AffineExpr, AffineExpr]:
    """Loop extents of one axis, and its places in result and operand; loops are numbered from `first`.

    A whole factor needs no division: two loops when the axis grows, one with a stride when it shrinks.
    """
    i, repeat = AffineExpr.dimension(first), AffineExpr.dimension(first + 1)
    if new == old:
        return [new], i, i
    if new % old == 0:
        return [old, new // old], i * (new // old) + repeat, i
    if old % new == 0:
        return [new], i, i * (old // new)
    return [new], i, (i * old) // new


class BlockOp(TensorOp):
    """Base: x `[n, c, h, w]`, blocks of `block_size` squared pixels; any element type; composite.

    In `mode` "DCR" the place in the block varies slower than the channel, in "CRD" faster.
    """

    x = operand_def(TensorType)
    block_size = required_int()
    mode = choice_property("DCR")
    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {"mode": ("DCR", "CRD")}

    def checked_block(self) -> int:
        """The size of a block. Raises InvalidAttribute unless it is 1 or more."""
        block = self.int_("block_size")
        if block < 1:
            raise InvalidAttribute(f"{self.name}: block_size is {block}; it must be 1 or more")
        return block

    def divided(self, axis: int, by: int) -> int:
        """The size of an axis over `by`. Raises ShapeConflict unless that is whole."""
        size = self.shape(0)[axis]
        if size == UNKNOWN:
            return UNKNOWN
        if size % by:
            raise ShapeConflict(f"{self.name}: axis {axis} of {shape_text(self.shape(0))} is not a multiple of {by}")
        return size // by


def _multiplied(size: int, by: int) -> int:
    return UNKNOWN if size == UNKNOWN else size * by


@irdl_op_definition
class DepthToSpaceOp(BlockOp):
    """Channels become blocks of pixels: `[n, c b b, h, w]` -> `[n, c, h b, w b]`. MindSpore, ONNX DepthToSpace."""

    name = "ms.depth_to_space"
    EXAMPLE: ClassVar[str] = "1x8x2x3xT {block_size = 2}"

    def infer(self) -> Sequence[TensorType[Attribute]]:
        n, _, h, w = self.expect_rank(0, 4)
        b = self.checked_block()
        shape: Shape = (n, self.divided(1, b * b), _multiplied(h, b), _multiplied(w, b))
        return (tensor_type(self.dtype(0), shape),)


@irdl_op_definition
class SpaceToDepthOp(BlockOp):
    """Blocks of pixels become channels: `[n, c, h b, w b]` -> `[n, c b b, h, w]`. MindSpore, ONNX SpaceToDepth."""

    name = "ms.space_to_depth"
    EXAMPLE: ClassVar[str] = "1x2x4x6xT {block_size = 2}"

    def infer(self) -> Sequence[TensorType[Attribute]]:
        n, c, _, _ = self.expect_rank(0, 4)
        b = self.checked_block()
        shape: Shape = (n, _multiplied(c, b * b), self.divided(2, b), self.divided(3, b))
        return (tensor_type(self.dtype(0), shape),)
