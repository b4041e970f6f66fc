"""Element-wise operations with NumPy broadcasting: their bases, and those of them that are of no one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def

from msc.dialects.element_types import BYTES, ELEMENT_TYPES, dtype_name
from msc.dialects.ms.base import BasicOp, BasicTensorOp, MsOp
from msc.dialects.ms.properties import dtype_property
from msc.dialects.ms.shapes import broadcast_shapes, tensor_type
from msc.ir.errors import DtypeConflict, InvalidAttribute
from msc.poly.compute import Statement, affine_map, broadcast_map, dims, integer_range
from msc.poly.scalar import OPERATORS, Apply, Cast, Constant, Read, Scalar, ScalarOperator, apply


def pointwise_statement(shape: tuple[int, ...], body: Scalar) -> Statement:
    """One statement that writes every element of a tensor of `shape`."""
    return Statement(shape, tuple(f"i{k}" for k in range(len(shape))), affine_map(len(shape), dims(len(shape))), body)


def constant(value: float, dtype: str) -> Constant:
    """A literal in the Python type that belongs to its element type."""
    if dtype == "i1":
        return Constant(bool(value), dtype)
    return Constant(float(value), dtype) if dtype[0] in "fb" else Constant(int(value), dtype)


def check_representable(op: MsOp, name: str, dtype: str) -> None:
    """Raise InvalidAttribute if the real property `name` is not a value of an integer element type or of i1."""
    value = op.plain(name)
    if dtype[0] in "fb" or not isinstance(value, float):
        return
    low, high = (0, 1) if dtype == "i1" else integer_range(dtype)
    if not value.is_integer() or not low <= value <= high:
        raise InvalidAttribute(f"{op.name}: {name} is {value}, which is not a value of element type {dtype}")


def operand_read(op: BasicOp, index: int, shape: tuple[int, ...]) -> Read:
    """The read of operand `index`, broadcast, at a point of a tensor of `shape`."""
    return Read(index, broadcast_map(op.shape(index), shape), op.dtype(index))


class ElementwiseOp(BasicTensorOp):
    """Base: all operands broadcast against each other; `SCALAR` names the scalar operator if `name` does not."""

    SCALAR: ClassVar[str] = ""
    DTYPES: ClassVar[str] = "any"
    """The family of element types of the operands."""

    def infer(self) -> Sequence[TensorType[Attribute]]:
        dtype = self.expect_one_dtype(self.DTYPES)
        shape = broadcast_shapes(self.name, *(self.shape(i) for i in range(len(self.operands))))
        return (tensor_type(self.result_type_for(dtype), shape),)

    @classmethod
    def operator(cls) -> ScalarOperator | None:
        """The scalar operator that is the whole body, or None."""
        return OPERATORS.get(cls.SCALAR or cls.name.removeprefix("ms."))

    def result_type_for(self, dtype: str) -> str:
        """Element type of the result for operands of element type `dtype`."""
        operator = self.operator()
        return "i1" if operator is not None and operator.boolean else dtype

    def scalar(self, *args: Scalar) -> Scalar:
        """The scalar body on the operands' elements."""
        return Apply(self.SCALAR or self.name.removeprefix("ms."), args)

    def compute(self) -> Sequence[Statement]:
        shape = self.result_shape()
        args = [operand_read(self, i, shape) for i in range(len(self.operands))]
        return (pointwise_statement(shape, self.scalar(*args)),)


class UnaryOp(ElementwiseOp):
    """Base of element-wise operations on one tensor."""

    EXAMPLE: ClassVar[str] = "2x3xT"

    x = operand_def(TensorType)


class BinaryOp(ElementwiseOp):
    """Base of element-wise operations on two tensors."""

    EXAMPLE: ClassVar[str] = "2x3xT 3xT"

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)


@irdl_op_definition
class IdentityOp(UnaryOp):
    """The tensor itself, of any element type. MindSpore Identity, ONNX Identity."""

    name = "ms.identity"

    def scalar(self, *args: Scalar) -> Scalar:
        return args[0]


@irdl_op_definition
class StopGradientOp(UnaryOp):
    """The tensor itself, which counts as a constant where a gradient is taken. MindSpore StopGradient."""

    name = "ms.stop_gradient"

    def scalar(self, *args: Scalar) -> Scalar:
        return args[0]


@irdl_op_definition
class CastOp(UnaryOp):
    """Conversion to another element type: `{dtype = f16}`; any to any, same shape.

    Floats round to nearest even, float to integer truncates, integers wrap, a number is true unless it is zero.
    MindSpore Cast, ONNX Cast.
    """

    name = "ms.cast"
    EXAMPLE: ClassVar[str] = "2x3xT {dtype = f16}"
    target = dtype_property()

    def result_type_for(self, dtype: str) -> str:
        return named_dtype(self.name, self.plain("dtype"))

    def scalar(self, *args: Scalar) -> Scalar:
        return Cast(args[0], self.result_dtype())


@irdl_op_definition
class BitCastOp(UnaryOp):
    """The same bits read as another element type of the same width: `{dtype = i32}`; same shape.

    A boolean is the byte 0 or 1; any other byte is true. The payload of a NaN of 16 bits is not kept.
    MindSpore BitCast, ONNX BitCast.
    """

    name = "ms.bit_cast"
    EXAMPLE: ClassVar[str] = "4xf32 {dtype = i32}"
    target = dtype_property()

    def result_type_for(self, dtype: str) -> str:
        target = named_dtype(self.name, self.plain("dtype"))
        if BYTES[dtype] != BYTES[target]:
            raise DtypeConflict(f"{self.name}: {dtype} and {target} are not of the same width")
        return target

    def scalar(self, *args: Scalar) -> Scalar:
        return Cast(args[0], self.result_dtype(), bits=True)


@irdl_op_definition
class SelectOp(BasicTensorOp):
    """Elements of `a` where `condition` (i1) is true, of `b` elsewhere.

    All three broadcast; a and b have one element type. MindSpore Select, ONNX Where.
    """

    name = "ms.select"
    EXAMPLE: ClassVar[str] = "2x3xi1 2x3xT T"
    condition = operand_def(TensorType)
    a = operand_def(TensorType)
    b = operand_def(TensorType)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        self.expect_dtype(0, "a boolean")
        if self.dtype(1) != self.dtype(2):
            raise DtypeConflict(
                f"ms.select: operands have element types {self.dtype(1)} and {self.dtype(2)}",
                help="convert one with ms.cast",
            )
        shape = broadcast_shapes(self.name, self.shape(0), self.shape(1), self.shape(2))
        return (tensor_type(self.dtype(1), shape),)

    def compute(self) -> Sequence[Statement]:
        shape = self.result_shape()
        return (pointwise_statement(shape, apply("select", *(operand_read(self, i, shape) for i in range(3)))),)


def named_dtype(op: str, value: object) -> str:
    """The name of an element type that is a property. Raises InvalidAttribute if msc does not compute on it."""
    name = dtype_name(value) if isinstance(value, Attribute) else None
    if name is None or name not in ELEMENT_TYPES:
        raise InvalidAttribute(f"{op}: dtype is {value}, not one of {', '.join(ELEMENT_TYPES)}")
    return name
