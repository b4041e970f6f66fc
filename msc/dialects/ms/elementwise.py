"""Element-wise operations with NumPy broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from msc.dialects.element_types import element_type
from msc.dialects.ms.base import BasicOp
from msc.ir.errors import DtypeConflict, ShapeConflict
from msc.poly.compute import Statement, affine_map, broadcast_map, dims
from msc.poly.scalar import Apply, Read, Scalar, apply


def broadcast_shapes(op: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's broadcast of shapes; -1 (unknown) yields to a known size. Raises ShapeConflict naming both shapes."""
    rank = max(map(len, shapes))
    result: list[int] = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        known = sizes - {-1}
        if len(known) > 1:
            text = " and ".join("x".join(map(str, shape)) or "scalar" for shape in shapes)
            raise ShapeConflict(f"{op}: shapes {text} do not broadcast: sizes {' and '.join(map(str, sorted(known)))} meet")
        result.append(known.pop() if known else -1 if sizes else 1)
    return tuple(result)


def pointwise_statement(shape: tuple[int, ...], body: Scalar) -> Statement:
    """One statement that writes every element of a tensor of `shape`."""
    return Statement(shape, tuple(f"i{k}" for k in range(len(shape))), affine_map(len(shape), dims(len(shape))), body)


class ElementwiseOp(BasicOp):
    """Base: all operands broadcast against each other; `SCALAR` names the scalar operator."""

    SCALAR: ClassVar[str]
    DTYPES: ClassVar[str] = "any"

    def infer(self) -> Sequence[TensorType[Attribute]]:
        dtypes = [self.dtype(i) for i in range(len(self.operands))]
        if len(set(dtypes)) > 1:
            raise DtypeConflict(f"{self.name}: operands have element types {' and '.join(dtypes)}; cast one (ms.cast)")
        shape = broadcast_shapes(self.name, *(self.shape(i) for i in range(len(self.operands))))
        return (TensorType(element_type(self.result_type_for(dtypes[0])), shape),)

    def result_type_for(self, dtype: str) -> str:
        """Element type of the result for operands of element type `dtype`."""
        return dtype

    def scalar(self, *args: Scalar) -> Scalar:
        """The scalar body on the operands' elements."""
        return Apply(self.SCALAR, args)

    def compute(self) -> Sequence[Statement]:
        shape = self.result_shape()
        args = [Read(i, broadcast_map(self.shape(i), shape), self.dtype(i)) for i in range(len(self.operands))]
        return (pointwise_statement(shape, self.scalar(*args)),)


class UnaryOp(ElementwiseOp):
    """Base of element-wise operations on one tensor."""

    x = operand_def(TensorType)
    result = result_def(TensorType)


class BinaryOp(ElementwiseOp):
    """Base of element-wise operations on two tensors."""

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)


@irdl_op_definition
class AddOp(BinaryOp):
    """Sum, with broadcasting. MindSpore Add, ONNX Add."""

    name = "ms.add"
    SCALAR: ClassVar[str] = "add"


@irdl_op_definition
class ExpOp(UnaryOp):
    """e to the x. MindSpore Exp, ONNX Exp."""

    name = "ms.exp"
    SCALAR: ClassVar[str] = "exp"
