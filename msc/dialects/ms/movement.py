"""Moving elements without computing: transposing, joining, cutting, repeating. Basic; any element type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def, var_operand_def, var_result_def

from msc.dialects.ms.base import BasicOp, BasicTensorOp
from msc.dialects.ms.elementwise import operand_read, pointwise_statement
from msc.dialects.ms.properties import int_property, ints_property, required_ints
from msc.dialects.ms.shapes import (
    UNKNOWN,
    Shape,
    broadcast_shapes,
    known,
    normal_axes,
    normal_axis,
    same_shape,
    same_size,
    shape_text,
    tensor_type,
)
from msc.ir.errors import InvalidAttribute, ShapeConflict
from msc.poly.compute import Statement, affine_map, dims
from msc.poly.scalar import Read


def copy_statement(
    extents: Sequence[int],
    write: Sequence[AffineExpr | int],
    read: Sequence[AffineExpr | int],
    dtype: str,
    operand: int = 0,
) -> Statement:
    """`result[write] = operand[read]` over a box."""
    rank = len(extents)
    body = Read(operand, affine_map(rank, read), dtype)
    return Statement(tuple(extents), tuple(f"i{k}" for k in range(rank)), affine_map(rank, write), body)


@irdl_op_definition
class TransposeOp(BasicTensorOp):
    """Axes in another order: axis i of the result is axis `perm[i]` of x; an empty `perm` turns them round.

    MindSpore Transpose, ONNX Transpose.
    """

    name = "ms.transpose"
    EXAMPLE: ClassVar[str] = "2x3x4xT {perm = [0, 2, 1]}"
    x = operand_def(TensorType)
    perm = ints_property()

    def permutation(self) -> tuple[int, ...]:
        """The order of axes. Raises InvalidAttribute unless `perm` names each axis once."""
        rank = len(self.shape(0))
        if not self.ints("perm"):
            return tuple(reversed(range(rank)))
        perm = normal_axes(self.name, self.ints("perm"), rank, "perm")
        if len(perm) != rank:
            raise InvalidAttribute(f"ms.transpose: perm has {len(perm)} entries, for a tensor of rank {rank}")
        return perm

    def infer(self) -> Sequence[TensorType[Attribute]]:
        return (tensor_type(self.dtype(0), [self.shape(0)[axis] for axis in self.permutation()]),)

    def compute(self) -> Sequence[Statement]:
        shape, perm = self.result_shape(), self.permutation()
        d = dims(len(shape))
        return (copy_statement(shape, d, [d[perm.index(axis)] for axis in range(len(shape))], self.dtype(0)),)


@irdl_op_definition
class BroadcastToOp(BasicTensorOp):
    """x broadcast to `shape` as in NumPy; an entry of -1 keeps the size of x. MindSpore BroadcastTo, ONNX Expand."""

    name = "ms.broadcast_to"
    EXAMPLE: ClassVar[str] = "3x1xT {shape = [2, -1, 4]}"
    x = operand_def(TensorType)
    new_shape = required_ints("shape")

    def infer(self) -> Sequence[TensorType[Attribute]]:
        x, target = self.shape(0), self.ints("shape")
        offset = len(target) - len(x)
        if any(n < -1 or (n == -1 and i < offset) for i, n in enumerate(target)):
            raise InvalidAttribute(f"ms.broadcast_to: shape [{', '.join(map(str, target))}] has negative entries")
        shape = tuple(x[i - offset] if n == -1 else n for i, n in enumerate(target))
        if offset < 0 or not same_shape(broadcast_shapes(self.name, x, shape), shape):
            raise ShapeConflict(f"ms.broadcast_to: {shape_text(x)} does not broadcast to {shape_text(shape)}")
        return (tensor_type(self.dtype(0), shape),)

    def compute(self) -> Sequence[Statement]:
        shape = self.result_shape()
        return (pointwise_statement(shape, operand_read(self, 0, shape)),)


@irdl_op_definition
class ConcatOp(BasicTensorOp):
    """One or more tensors joined along `axis`; their other axes and element types agree. MindSpore, ONNX Concat."""

    name = "ms.concat"
    EXAMPLE: ClassVar[str] = "2x3xT 2x1xT {axis = 1}"
    inputs = var_operand_def(TensorType)
    axis = int_property(0)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        shapes = operand_shapes(self)
        axis = normal_axis(self.name, self.int_("axis"), len(shapes[0]))
        for shape in shapes:
            if len(shape) != len(shapes[0]) or not same_shape(_without(shape, axis), _without(shapes[0], axis)):
                raise ShapeConflict(
                    f"ms.concat: {shape_text(shapes[0])} and {shape_text(shape)} differ outside axis {axis}"
                )
        sizes = [shape[axis] for shape in shapes]
        total = sum(sizes) if known(sizes) else UNKNOWN
        rest = _agreed(shapes)
        return (tensor_type(self.expect_one_dtype(), (*rest[:axis], total, *rest[axis + 1 :])),)

    def compute(self) -> Sequence[Statement]:
        statements: list[Statement] = []
        start, axis = 0, self.int_("axis") % len(self.shape(0))
        for index in range(len(self.operands)):
            shape = self.shape(index)
            d = dims(len(shape))
            write = [e + start if i == axis else e for i, e in enumerate(d)]
            statements.append(copy_statement(shape, write, d, self.dtype(0), index))
            start += shape[axis]
        return statements


def operand_shapes(op: BasicOp) -> list[Shape]:
    """The shapes of all operands, of which there is one at least; raises ShapeConflict."""
    if not op.operands:
        raise ShapeConflict(f"{op.name} needs one operand or more")
    return [op.shape(i) for i in range(len(op.operands))]


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def _agreed(shapes: Sequence[Shape]) -> Shape:
    """Each size as far as one of the shapes knows it."""
    return tuple(max(sizes) for sizes in zip(*shapes, strict=True))


@irdl_op_definition
class StackOp(BasicTensorOp):
    """One or more tensors of one type along a new axis, at place `axis` of the result.

    MindSpore Stack, ONNX SequenceConstruct and ConcatFromSequence with new_axis=1.
    """

    name = "ms.stack"
    EXAMPLE: ClassVar[str] = "2x3xT 2x3xT {axis = 0}"
    inputs = var_operand_def(TensorType)
    axis = int_property(0)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        shapes = operand_shapes(self)
        axis = normal_axis(self.name, self.int_("axis"), len(shapes[0]) + 1)
        for shape in shapes:
            if not same_shape(shape, shapes[0]):
                raise ShapeConflict(f"ms.stack: shapes {shape_text(shapes[0])} and {shape_text(shape)} differ")
        agreed = _agreed(shapes)
        return (tensor_type(self.expect_one_dtype(), (*agreed[:axis], len(shapes), *agreed[axis:])),)

    def compute(self) -> Sequence[Statement]:
        shape = self.shape(0)
        axis, d = self.int_("axis") % (len(shape) + 1), dims(len(shape))
        return [
            copy_statement(shape, (*d[:axis], index, *d[axis:]), d, self.dtype(0), index)
            for index in range(len(self.operands))
        ]


@irdl_op_definition
class SplitOp(BasicOp):
    """One result for each of `sizes`, which add up to the size of `axis`: consecutive parts of x.

    MindSpore SplitWithSize and Split, ONNX Split.
    """

    name = "ms.split"
    EXAMPLE: ClassVar[str] = "2x4xT {axis = 1, sizes = [1, 3]}"
    x = operand_def(TensorType)
    axis = int_property(0)
    sizes = required_ints()
    parts = var_result_def(TensorType)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        shape, sizes = self.shape(0), self.ints("sizes")
        axis = normal_axis(self.name, self.int_("axis"), len(shape))
        if not sizes or any(size < 0 for size in sizes):
            raise InvalidAttribute(f"ms.split: sizes [{', '.join(map(str, sizes))}] must be one or more, none negative")
        if not same_size(sum(sizes), shape[axis]):
            raise ShapeConflict(
                f"ms.split: sizes [{', '.join(map(str, sizes))}] add up to {sum(sizes)}, but axis {axis} of "
                f"{shape_text(shape)} has size {shape[axis]}"
            )
        return [tensor_type(self.dtype(0), (*shape[:axis], size, *shape[axis + 1 :])) for size in sizes]

    def compute(self) -> Sequence[Statement]:
        statements: list[Statement] = []
        start, rank = 0, len(self.shape(0))
        axis, d = self.int_("axis") % rank, dims(rank)
        for result, size in enumerate(self.ints("sizes")):
            read = affine_map(rank, [e + start if i == axis else e for i, e in enumerate(d)])
            extents, names = self.result_shape(result), tuple(f"i{k}" for k in range(rank))
            statements.append(
                Statement(extents, names, affine_map(rank, d), Read(0, read, self.dtype(0)), result=result)
            )
            start += size
        return statements


@irdl_op_definition
class SliceOp(BasicTensorOp):
    """Elements from `begin` up to but without `end`, every `strides`-th, in each axis: Python's `x[begin:end:stride]`.

    One entry an axis; no `strides` are all 1. Negative places count from the end, and what lies outside is cut off; so
    with a negative stride an `end` below -size includes the first element. MindSpore StridedSlice, ONNX Slice.
    """

    name = "ms.slice"
    EXAMPLE: ClassVar[str] = "4x6xT {begin = [1, 0], end = [3, 6], strides = [1, 2]}"
    x = operand_def(TensorType)
    begin = required_ints()
    end = required_ints()
    strides = ints_property()

    def ranges(self) -> tuple[range | None, ...]:
        """The places taken of each axis; None where the size is not known. Raises InvalidAttribute."""
        shape = self.shape(0)
        lists = self.ints("begin"), self.ints("end"), self.ints("strides") or (1,) * len(shape)
        if any(len(entries) != len(shape) for entries in lists) or 0 in lists[2]:
            raise InvalidAttribute(
                f"ms.slice: begin, end and strides must have {len(shape)} entries each, and no stride may be 0"
            )
        entries = zip(shape, *lists, strict=True)
        return tuple(None if n == UNKNOWN else range(*slice(*place).indices(n)) for n, *place in entries)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        shape = [UNKNOWN if places is None else len(places) for places in self.ranges()]
        return (tensor_type(self.dtype(0), shape),)

    def compute(self) -> Sequence[Statement]:
        d = dims(len(self.shape(0)))
        read = [e * r.step + r.start for e, r in zip(d, self.ranges(), strict=True) if r is not None]
        return (copy_statement(self.result_shape(), d, read, self.dtype(0)),)


@irdl_op_definition
class TileOp(BasicTensorOp):
    """x repeated `multiples` times along each axis; more entries than axes add axes in front. MindSpore, ONNX Tile."""

    name = "ms.tile"
    EXAMPLE: ClassVar[str] = "2x4xT {multiples = [2, 3]}"
    x = operand_def(TensorType)
    multiples = required_ints()

    def padded_shape(self) -> Shape:
        """The shape of x with axes of size 1 in front, as many as `multiples` has. Raises InvalidAttribute."""
        shape, multiples = self.shape(0), self.ints("multiples")
        if len(multiples) < len(shape) or any(m < 0 for m in multiples):
            text = ", ".join(map(str, multiples))
            raise InvalidAttribute(f"ms.tile: multiples [{text}] must have {len(shape)} entries or more, none negative")
        return (1,) * (len(multiples) - len(shape)) + shape

    def infer(self) -> Sequence[TensorType[Attribute]]:
        sizes = zip(self.padded_shape(), self.ints("multiples"), strict=True)
        return (tensor_type(self.dtype(0), [n if n == UNKNOWN else n * m for n, m in sizes]),)

    def compute(self) -> Sequence[Statement]:
        shape, multiples = self.padded_shape(), self.ints("multiples")
        d = dims(2 * len(shape))
        inner = d[1::2]
        axes = zip(d[0::2], inner, shape, multiples, strict=True)
        write = [i if m == 1 else r * n + i for r, i, n, m in axes]
        extents = [size for pair in zip(multiples, shape, strict=True) for size in pair]
        return (copy_statement(extents, write, inner[len(shape) - len(self.shape(0)) :], self.dtype(0)),)


@irdl_op_definition
class ReverseOp(BasicTensorOp):
    """Elements in opposite order along each axis of `axis`. MindSpore ReverseV2, ONNX Slice with stride -1."""

    name = "ms.reverse"
    EXAMPLE: ClassVar[str] = "2x3xT {axis = 1}"
    x = operand_def(TensorType)
    axis = required_ints()

    def infer(self) -> Sequence[TensorType[Attribute]]:
        normal_axes(self.name, self.ints("axis"), len(self.shape(0)))
        return (tensor_type(self.dtype(0), self.shape(0)),)

    def compute(self) -> Sequence[Statement]:
        shape = self.shape(0)
        return (copy_statement(shape, dims(len(shape)), self.source_index(), self.dtype(0)),)

    def source_index(self) -> list[AffineExpr]:
        """The index into the operand for an index of the result."""
        shape = self.shape(0)
        axes = normal_axes(self.name, self.ints("axis"), len(shape))
        return [
            e * -1 + (n - 1) if i in axes else e for i, (e, n) in enumerate(zip(dims(len(shape)), shape, strict=True))
        ]
