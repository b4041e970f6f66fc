"""Elements chosen by indices, and tensors that are made of indices. Basic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def

from msc.dialects.ms.base import BasicTensorOp, TensorOp
from msc.dialects.ms.elementwise import check_representable, constant, named_dtype, pointwise_statement
from msc.dialects.ms.properties import dtype_property, int_property, real_property, required_int, required_ints
from msc.dialects.ms.shapes import normal_axis, same_shape, shape_text, tensor_type
from msc.ir.errors import DtypeConflict, InvalidAttribute, ShapeConflict
from msc.poly.compute import Statement, affine_map, dims
from msc.poly.scalar import Cast, Index, Read, Scalar, apply


def place(index: Scalar, size: int) -> Scalar:
    """An index as a place in an axis of `size`: negative ones count from the end, those outside are cut to the nearest.

    The interpreter refuses an index outside the axis; compiled code never reads outside its buffers.
    """
    wide = index if index.dtype == "i64" else Cast(index, "i64")
    zero = constant(0, "i64")
    counted = apply("select", apply("lt", wide, zero), apply("add", wide, constant(size, "i64")), wide)
    return apply("min", apply("max", counted, zero), constant(size - 1, "i64"))


def _numbered(dim: AffineExpr, dtype: str) -> Scalar:
    return Index(dim) if dtype == "i64" else Cast(Index(dim), dtype)


class GatheringOp(BasicTensorOp):
    """Base: x of any element type, indices of a signed integer type, and an axis of x that the indices count."""

    x = operand_def(TensorType)
    indices = operand_def(TensorType)
    axis = int_property(0)

    def checked_axis(self) -> int:
        """The axis counted from the front. Raises DtypeConflict, InvalidAttribute, ShapeConflict."""
        self.expect_dtype(1, "a signed integer")
        axis = normal_axis(self.name, self.int_("axis"), len(self.shape(0)))
        if self.shape(0)[axis] == 0 and 0 not in self.shape(1):
            raise ShapeConflict(f"{self.name}: axis {axis} of {shape_text(self.shape(0))} is empty")
        return axis

    def gathered(
        self, axis: int, index: Sequence[AffineExpr | int], indices: Sequence[AffineExpr | int], rank: int
    ) -> Scalar:
        """Read x at `index`, where the value of the indices at `indices` is the place in `axis`; of `rank` loops."""
        chosen = place(Read(1, affine_map(rank, indices), self.dtype(1)), self.shape(0)[axis])
        return Read(0, affine_map(rank, index), self.dtype(0), ((axis, chosen),))


@irdl_op_definition
class GatherOp(GatheringOp):
    """Slices of x along `axis`, one for each index: the shape of the indices takes the place of that axis.

    Negative indices count from the end. MindSpore Gather, ONNX Gather.
    """

    name = "ms.gather"
    EXAMPLE: ClassVar[str] = "5x4xT 2xi64 {axis = 0}"

    def infer(self) -> Sequence[TensorType[Attribute]]:
        x, axis = self.shape(0), self.checked_axis()
        return (tensor_type(self.dtype(0), (*x[:axis], *self.shape(1), *x[axis + 1 :])),)

    def compute(self) -> Sequence[Statement]:
        shape, axis, count = self.result_shape(), self.checked_axis(), len(self.shape(1))
        d = dims(len(shape))
        index = (*d[:axis], 0, *d[axis + count :])
        return (pointwise_statement(shape, self.gathered(axis, index, d[axis : axis + count], len(d))),)


@irdl_op_definition
class GatherElementsOp(GatheringOp):
    """y[i, j] = x[i, indices[i, j]] for `axis` 1, and so on: the result has the shape of the indices.

    Along other axes the indices have at most the size of x. Negative indices count from the end.
    MindSpore GatherD, ONNX GatherElements.
    """

    name = "ms.gather_elements"
    EXAMPLE: ClassVar[str] = "3x4xT 3x2xi64 {axis = 1}"

    def infer(self) -> Sequence[TensorType[Attribute]]:
        x, indices, axis = self.shape(0), self.shape(1), self.checked_axis()
        within = (i == axis or -1 in (n, m) or m <= n for i, (n, m) in enumerate(zip(x, indices, strict=False)))
        if len(x) != len(indices) or not all(within):
            raise ShapeConflict(
                f"ms.gather_elements: indices of {shape_text(indices)} do not fit x of {shape_text(x)}, axis {axis}"
            )
        return (tensor_type(self.dtype(0), indices),)

    def compute(self) -> Sequence[Statement]:
        shape, axis = self.result_shape(), self.checked_axis()
        d = dims(len(shape))
        index = (*d[:axis], 0, *d[axis + 1 :])
        return (pointwise_statement(shape, self.gathered(axis, index, d, len(d))),)


@irdl_op_definition
class ScatterAddOp(TensorOp):
    """x with the rows of `updates` added to its entries at `indices`, one after the other; of one element type.

    Indices of any shape, signed integers, negative ones from the end; updates `[indices..., entry of x...]`. Composite:
    a loop. The gradient of a gather. MindSpore TensorScatterAdd, ONNX ScatterND with reduction "add".
    """

    name = "ms.scatter_add"
    EXAMPLE: ClassVar[str] = "5x4xT 3xi64 3x4xT"
    x = operand_def(TensorType)
    indices = operand_def(TensorType)
    updates = operand_def(TensorType)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        dtype = self.expect_dtype(0, "a number")
        self.expect_dtype(1, "a signed integer")
        x, rows = self.shape(0), (*self.shape(1), *self.shape(0)[1:])
        if not x or x[0] == 0:
            raise ShapeConflict(f"ms.scatter_add: operand 0 is {shape_text(x)}; it has no entries")
        if not same_shape(self.shape(2), rows):
            raise ShapeConflict(
                f"ms.scatter_add: updates of {shape_text(self.shape(2))} do not fit x of {shape_text(x)} at "
                f"{shape_text(self.shape(1))} places, which take {shape_text(rows)}"
            )
        if self.dtype(2) != dtype:
            raise DtypeConflict(
                f"ms.scatter_add: the updates have element type {self.dtype(2)}, but the entries have {dtype}",
                help="convert them with ms.cast",
            )
        return (tensor_type(dtype, x),)


@irdl_op_definition
class OneHotOp(BasicTensorOp):
    """Along a new axis of size `depth`, `on_value` at the index and `off_value` elsewhere; an index outside gives none.

    Indices of an integer type; the result has element type `dtype`, and the new axis at place `axis`.
    MindSpore OneHot, ONNX OneHot.
    """

    name = "ms.one_hot"
    EXAMPLE: ClassVar[str] = "4xi64 {depth = 10, dtype = f32}"
    indices = operand_def(TensorType)
    depth = required_int()
    axis = int_property(-1)
    on_value = real_property(1.0)
    off_value = real_property(0.0)
    target = dtype_property()

    def new_axis(self) -> int:
        """Where the new axis stands in the result."""
        return normal_axis(self.name, self.int_("axis"), len(self.shape(0)) + 1)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        self.expect_dtype(0, "an integer")
        shape, axis, depth = self.shape(0), self.new_axis(), self.int_("depth")
        if depth < 0:
            raise InvalidAttribute(f"ms.one_hot: depth is {depth}; it must not be negative")
        dtype = named_dtype(self.name, self.plain("dtype"))
        check_representable(self, "on_value", dtype)
        check_representable(self, "off_value", dtype)
        return (tensor_type(dtype, (*shape[:axis], depth, *shape[axis:])),)

    def compute(self) -> Sequence[Statement]:
        shape, axis, dtype = self.result_shape(), self.new_axis(), self.result_dtype()
        d = dims(len(shape))
        index = Read(0, affine_map(len(d), (*d[:axis], *d[axis + 1 :])), self.dtype(0))
        # Vectors of i32 are half as long as those of i64.
        common = "i32" if index.dtype in ("i8", "i16", "i32", "u8", "u16") and shape[axis] <= 2**31 else "i64"
        hit = apply("eq", index if index.dtype == common else Cast(index, common), _numbered(d[axis], common))
        on, off = (constant(self.real(name), dtype) for name in ("on_value", "off_value"))
        return (pointwise_statement(shape, apply("select", hit, on, off)),)


@irdl_op_definition
class IotaOp(BasicTensorOp):
    """A tensor of `shape` and element type `dtype` whose elements are their own place along `axis`: 0, 1, 2, ...

    MindSpore Range, ONNX Range.
    """

    name = "ms.iota"
    EXAMPLE: ClassVar[str] = "{shape = [2, 3], axis = 1, dtype = i64}"
    new_shape = required_ints("shape")
    axis = int_property(0)
    target = dtype_property()

    def infer(self) -> Sequence[TensorType[Attribute]]:
        shape, dtype = self.ints("shape"), named_dtype(self.name, self.plain("dtype"))
        normal_axis(self.name, self.int_("axis"), len(shape))
        if any(n < 0 for n in shape) or dtype == "i1":
            raise InvalidAttribute(
                f"ms.iota: shape [{', '.join(map(str, shape))}] of {dtype}: sizes must not be negative, nor dtype i1"
            )
        return (tensor_type(dtype, shape),)

    def compute(self) -> Sequence[Statement]:
        shape, dtype = self.result_shape(), self.result_dtype()
        index = Index(dims(len(shape))[self.int_("axis") % len(shape)])
        return (pointwise_statement(shape, index if dtype == "i64" else Cast(index, dtype)),)


class TriangleOp(BasicTensorOp):
    """Base: a triangle of each matrix in the last two axes is kept, the rest is zero."""

    x = operand_def(TensorType)
    diagonal = int_property(0)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        if len(self.shape(0)) < 2:
            raise ShapeConflict(f"{self.name}: operand 0 is {shape_text(self.shape(0))}; it must be of rank 2 or more")
        return (tensor_type(self.dtype(0), self.shape(0)),)

    def distance(self, row: AffineExpr, column: AffineExpr) -> AffineExpr:
        """An expression that is not negative exactly inside the triangle."""
        raise TypeError(f"{self.name} does not say which triangle it keeps")

    def compute(self) -> Sequence[Statement]:
        shape, dtype = self.shape(0), self.dtype(0)
        d = dims(len(shape))
        inside = apply("ge", Index(self.distance(d[-2], d[-1])), constant(0, "i64"))
        body = apply("select", inside, Read(0, affine_map(len(d), d), dtype), constant(0, dtype))
        return (pointwise_statement(shape, body),)


@irdl_op_definition
class TrilOp(TriangleOp):
    """The lower triangle: column - row <= `diagonal`. MindSpore Tril, ONNX Trilu with upper=0."""

    name = "ms.tril"
    EXAMPLE: ClassVar[str] = "4x4xT"

    def distance(self, row: AffineExpr, column: AffineExpr) -> AffineExpr:
        return row - column + self.int_("diagonal")


@irdl_op_definition
class TriuOp(TriangleOp):
    """The upper triangle: column - row >= `diagonal`. MindSpore Triu, ONNX Trilu with upper=1."""

    name = "ms.triu"
    EXAMPLE: ClassVar[str] = "4x4xT"

    def distance(self, row: AffineExpr, column: AffineExpr) -> AffineExpr:
        return column - row - self.int_("diagonal")
