"""Reductions over axes (an empty `axis` means all), and what selects or accumulates along one axis.

`keep_dims` leaves reduced axes with size 1. The element type stays, so integers wrap; reducing nothing gives the
neutral element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def

from msc.dialects.ms.accumulation import AccumulatingOp
from msc.dialects.ms.base import BasicTensorOp, MsOp, TensorOp
from msc.dialects.ms.properties import flag_property, int_property, ints_property
from msc.dialects.ms.shapes import Shape, normal_axes, normal_axis, tensor_type
from msc.ir.errors import ShapeConflict
from msc.poly.compute import Combine, Statement, affine_map, dims
from msc.poly.scalar import Read, Scalar


def reduced_axes(op: MsOp) -> tuple[int, ...]:
    """The axes that an operation's `axis` list names, counted from the front and sorted; all if it is empty."""
    rank = len(op.shape(0))
    return tuple(sorted(normal_axes(op.name, op.ints("axis"), rank))) or tuple(range(rank))


def reduced_shape(op: MsOp, axes: Sequence[int]) -> Shape:
    """The operand's shape without `axes`, or with size 1 there if `keep_dims`."""
    keep = op.flag("keep_dims")
    return tuple(1 if i in axes else n for i, n in enumerate(op.shape(0)) if keep or i not in axes)


class ReductionOp(BasicTensorOp):
    """Base of basic reductions: `COMBINE` is the combiner."""

    COMBINE: ClassVar[Combine]
    EXAMPLE: ClassVar[str] = "2x3x4xT {axis = 1}"
    DTYPES: ClassVar[str] = "a number"

    x = operand_def(TensorType)
    axis = ints_property()
    keep_dims = flag_property(False)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        dtype = self.result_type_for(self.expect_dtype(0, self.DTYPES))
        return (tensor_type(dtype, reduced_shape(self, reduced_axes(self))),)

    def result_type_for(self, dtype: str) -> str:
        """Element type of the result for an operand of element type `dtype`."""
        return dtype

    def compute(self) -> Sequence[Statement]:
        shape, axes, keep = self.shape(0), reduced_axes(self), self.flag("keep_dims")
        d = dims(len(shape))
        write = [0 if i in axes else d[i] for i in range(len(shape)) if keep or i not in axes]
        names = tuple(f"r{i}" if i in axes else f"i{i}" for i in range(len(shape)))
        body = self.term(Read(0, affine_map(len(shape), d), self.dtype(0)))
        return (Statement(shape, names, affine_map(len(shape), write), body, self.COMBINE),)

    def term(self, body: Scalar) -> Scalar:
        """What is combined."""
        return body


@irdl_op_definition
class ReduceSumOp(AccumulatingOp, ReductionOp):
    """Sum; of f16 and bf16 with `dtype = f32` not rounded. MindSpore ReduceSum, ONNX ReduceSum."""

    name = "ms.reduce_sum"
    COMBINE: ClassVar[Combine] = "add"


@irdl_op_definition
class ReduceProdOp(AccumulatingOp, ReductionOp):
    """Product; of f16 and bf16 with `dtype = f32` not rounded. MindSpore ReduceProd, ONNX ReduceProd."""

    name = "ms.reduce_prod"
    COMBINE: ClassVar[Combine] = "mul"


@irdl_op_definition
class ReduceMaxOp(ReductionOp):
    """Largest element, NaN if there is one. MindSpore ReduceMax, ONNX ReduceMax.

    Equal ones share the gradient; with `to_first` the first of them, in the order of the elements, has all of it.
    """

    name = "ms.reduce_max"
    to_first = flag_property(False)
    COMBINE: ClassVar[Combine] = "max"


@irdl_op_definition
class ReduceMinOp(ReductionOp):
    """Smallest element, NaN if there is one. MindSpore ReduceMin, ONNX ReduceMin.

    Equal ones share the gradient; with `to_first` the first of them, in the order of the elements, has all of it.
    """

    name = "ms.reduce_min"
    to_first = flag_property(False)
    COMBINE: ClassVar[Combine] = "min"


@irdl_op_definition
class ReduceAllOp(ReductionOp):
    """Whether all are true. MindSpore ReduceAll."""

    name = "ms.reduce_all"
    COMBINE: ClassVar[Combine] = "and"
    DTYPES: ClassVar[str] = "a boolean"


@irdl_op_definition
class ReduceAnyOp(ReductionOp):
    """Whether any is true. MindSpore ReduceAny."""

    name = "ms.reduce_any"
    COMBINE: ClassVar[Combine] = "or"
    DTYPES: ClassVar[str] = "a boolean"


@irdl_op_definition
class ReduceMeanOp(TensorOp):
    """Arithmetic mean over `axis`, of floats. Composite. MindSpore ReduceMean, ONNX ReduceMean."""

    name = "ms.reduce_mean"
    EXAMPLE: ClassVar[str] = "2x3x4xT {axis = [1, 2], keep_dims = true}"
    x = operand_def(TensorType)
    axis = ints_property()
    keep_dims = flag_property(False)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        return (tensor_type(self.expect_dtype(0, "a float"), reduced_shape(self, reduced_axes(self))),)


class ArgExtremeOp(TensorOp):
    """Base: where along `axis` the extreme stands, as i64: the first place or, with `select_last`, the last one."""

    EXAMPLE: ClassVar[str] = "2x4xT {axis = 1}"

    x = operand_def(TensorType)
    axis = int_property(-1)
    keep_dims = flag_property(False)
    select_last = flag_property(False)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        self.expect_dtype(0, "a number")
        axis = normal_axis(self.name, self.int_("axis"), len(self.shape(0)))
        if self.shape(0)[axis] == 0:
            raise ShapeConflict(f"{self.name}: axis {axis} is empty, there is nothing to choose from")
        return (tensor_type("i64", reduced_shape(self, (axis,))),)


@irdl_op_definition
class ArgmaxOp(ArgExtremeOp):
    """Position of the largest element along `axis`; the first NaN counts as such. MindSpore Argmax, ONNX ArgMax."""

    name = "ms.argmax"


@irdl_op_definition
class ArgminOp(ArgExtremeOp):
    """Position of the smallest element along `axis`; the first NaN counts as such. MindSpore Argmin, ONNX ArgMin."""

    name = "ms.argmin"


@irdl_op_definition
class CumsumOp(TensorOp):
    """Sums of the elements up to each one along `axis`; without itself if `exclusive`; from the end if `reverse`.

    Any number type, same shape; composite, since its domain is a triangle. MindSpore CumSum, ONNX CumSum.
    """

    name = "ms.cumsum"
    EXAMPLE: ClassVar[str] = "2x4xT {axis = 1}"
    x = operand_def(TensorType)
    axis = int_property(-1)
    exclusive = flag_property(False)
    reverse = flag_property(False)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        normal_axis(self.name, self.int_("axis"), len(self.shape(0)))
        return (tensor_type(self.expect_dtype(0, "a number"), self.shape(0)),)
