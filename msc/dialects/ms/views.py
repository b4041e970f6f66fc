"""Views: the same bytes in the same order under another shape. They compute nothing; any element type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition

from msc.dialects.ms.base import ViewOp
from msc.dialects.ms.properties import int_property, ints_property, required_ints
from msc.dialects.ms.shapes import UNKNOWN, Shape, known, normal_axes, product, same_size, shape_text, tensor_type
from msc.ir.errors import InvalidAttribute, ShapeConflict


@irdl_op_definition
class ReshapeOp(ViewOp):
    """Another shape of as many elements; one entry of `shape` may be -1: what is left. MindSpore, ONNX Reshape."""

    name = "ms.reshape"
    EXAMPLE: ClassVar[str] = "3x4xT {shape = [2, -1]}"
    new_shape = required_ints("shape")

    def infer(self) -> Sequence[TensorType[Attribute]]:
        return (tensor_type(self.dtype(0), resolved_shape(self.name, self.shape(0), self.ints("shape"))),)


def resolved_shape(op: str, old: Shape, new: Sequence[int]) -> Shape:
    """The shape that a reshape to `new` (one entry may be -1) gives. Raises ShapeConflict, InvalidAttribute."""
    if new.count(-1) > 1 or any(size < -1 for size in new):
        raise InvalidAttribute(f"{op}: shape [{', '.join(map(str, new))}] may have one -1, and no other negative entry")
    total, rest = product(old), product([size for size in new if size != -1])
    fits = total == UNKNOWN or (total == rest if -1 not in new else total == 0 or (rest > 0 and total % rest == 0))
    if not fits or (-1 in new and rest == 0):
        raise ShapeConflict(
            f"{op}: {shape_text(old)} has {total} elements, which do not fit shape [{', '.join(map(str, new))}]"
        )
    left = UNKNOWN if total == UNKNOWN else total // rest if rest else 0
    return tuple(left if size == -1 else size for size in new)


@irdl_op_definition
class FlattenOp(ViewOp):
    """A matrix: the axes before `axis` (default 1; negative ones count from the end) are its rows, the others columns.

    MindSpore Flatten, ONNX Flatten.
    """

    name = "ms.flatten"
    EXAMPLE: ClassVar[str] = "2x3x4xT"
    axis = int_property(1)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        shape, axis = self.shape(0), self.int_("axis")
        if not -len(shape) <= axis <= len(shape):
            raise InvalidAttribute(f"ms.flatten: axis {axis} is not between {-len(shape)} and {len(shape)}")
        split = axis if axis >= 0 else axis + len(shape)
        return (tensor_type(self.dtype(0), (product(shape[:split]), product(shape[split:]))),)


@irdl_op_definition
class SqueezeOp(ViewOp):
    """Without the axes that `axis` lists, which have size 1; without all axes of size 1 if it is empty.

    MindSpore Squeeze, ONNX Squeeze.
    """

    name = "ms.squeeze"
    EXAMPLE: ClassVar[str] = "1x3x1xT {axis = 0}"
    axis = ints_property()

    def infer(self) -> Sequence[TensorType[Attribute]]:
        shape = self.shape(0)
        axes = normal_axes(self.name, self.ints("axis"), len(shape)) or self._all_of_size_one(shape)
        for axis in axes:
            if not same_size(shape[axis], 1):
                raise ShapeConflict(f"ms.squeeze: axis {axis} of {shape_text(shape)} has size {shape[axis]}, not 1")
        return (tensor_type(self.dtype(0), [n for i, n in enumerate(shape) if i not in axes]),)

    def _all_of_size_one(self, shape: Shape) -> tuple[int, ...]:
        if not known(shape):
            raise ShapeConflict(f"ms.squeeze: which axes of {shape_text(shape)} have size 1 is not known; give axis")
        return tuple(i for i, n in enumerate(shape) if n == 1)


@irdl_op_definition
class ExpandDimsOp(ViewOp):
    """With new axes of size 1 at the places that `axis` lists, counted in the result.

    MindSpore ExpandDims, ONNX Unsqueeze.
    """

    name = "ms.expand_dims"
    EXAMPLE: ClassVar[str] = "3xT {axis = [0, -1]}"
    axis = required_ints()

    def infer(self) -> Sequence[TensorType[Attribute]]:
        shape, new = self.shape(0), self.ints("axis")
        rank = len(shape) + len(new)
        axes, rest = normal_axes(self.name, new, rank), iter(shape)
        return (tensor_type(self.dtype(0), [1 if i in axes else next(rest) for i in range(rank)]),)
