"""Basic comparisons and bit operations on two tensors, with NumPy broadcasting; both operands have one element type."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from msc.dialects.ms.elementwise import BinaryOp


class ComparisonOp(BinaryOp):
    """Base of comparisons: the result is i1; NaN is equal to nothing, and neither less nor greater."""

    def result_type_for(self, dtype: str) -> str:
        return "i1"


@irdl_op_definition
class EqualOp(ComparisonOp):
    """Whether both are equal. MindSpore Equal, ONNX Equal."""

    name = "ms.equal"
    DTYPES: ClassVar[str] = "any"
    SCALAR: ClassVar[str] = "eq"


@irdl_op_definition
class NotEqualOp(ComparisonOp):
    """Whether the two differ. MindSpore NotEqual."""

    name = "ms.not_equal"
    DTYPES: ClassVar[str] = "any"
    SCALAR: ClassVar[str] = "ne"


@irdl_op_definition
class LessOp(ComparisonOp):
    """Whether lhs < rhs. MindSpore Less, ONNX Less."""

    name = "ms.less"
    DTYPES: ClassVar[str] = "a number"
    SCALAR: ClassVar[str] = "lt"


@irdl_op_definition
class LessEqualOp(ComparisonOp):
    """Whether lhs <= rhs. MindSpore LessEqual, ONNX LessOrEqual."""

    name = "ms.less_equal"
    DTYPES: ClassVar[str] = "a number"
    SCALAR: ClassVar[str] = "le"


@irdl_op_definition
class GreaterOp(ComparisonOp):
    """Whether lhs > rhs. MindSpore Greater, ONNX Greater."""

    name = "ms.greater"
    DTYPES: ClassVar[str] = "a number"
    SCALAR: ClassVar[str] = "gt"


@irdl_op_definition
class GreaterEqualOp(ComparisonOp):
    """Whether lhs >= rhs. MindSpore GreaterEqual, ONNX GreaterOrEqual."""

    name = "ms.greater_equal"
    DTYPES: ClassVar[str] = "a number"
    SCALAR: ClassVar[str] = "ge"


@irdl_op_definition
class LogicalAndOp(BinaryOp):
    """Whether both are true. MindSpore LogicalAnd, ONNX And."""

    name = "ms.logical_and"
    DTYPES: ClassVar[str] = "a boolean"
    SCALAR: ClassVar[str] = "and"


@irdl_op_definition
class LogicalOrOp(BinaryOp):
    """Whether one or both are true. MindSpore LogicalOr, ONNX Or."""

    name = "ms.logical_or"
    DTYPES: ClassVar[str] = "a boolean"
    SCALAR: ClassVar[str] = "or"


@irdl_op_definition
class LogicalXorOp(BinaryOp):
    """Whether exactly one is true. MindSpore LogicalXor, ONNX Xor."""

    name = "ms.logical_xor"
    DTYPES: ClassVar[str] = "a boolean"
    SCALAR: ClassVar[str] = "xor"


@irdl_op_definition
class BitwiseAndOp(BinaryOp):
    """Bits that both have. MindSpore BitwiseAnd, ONNX BitwiseAnd."""

    name = "ms.bitwise_and"
    DTYPES: ClassVar[str] = "an integer"
    SCALAR: ClassVar[str] = "and"


@irdl_op_definition
class BitwiseOrOp(BinaryOp):
    """Bits that one or both have. MindSpore BitwiseOr, ONNX BitwiseOr."""

    name = "ms.bitwise_or"
    DTYPES: ClassVar[str] = "an integer"
    SCALAR: ClassVar[str] = "or"


@irdl_op_definition
class BitwiseXorOp(BinaryOp):
    """Bits that exactly one has. MindSpore BitwiseXor, ONNX BitwiseXor."""

    name = "ms.bitwise_xor"
    DTYPES: ClassVar[str] = "an integer"
    SCALAR: ClassVar[str] = "xor"


@irdl_op_definition
class ShiftLeftOp(BinaryOp):
    """lhs moved left by rhs bits (less than its width). MindSpore LeftShift, ONNX BitShift LEFT."""

    name = "ms.shift_left"
    DTYPES: ClassVar[str] = "an integer"
    SCALAR: ClassVar[str] = "shl"


@irdl_op_definition
class ShiftRightOp(BinaryOp):
    """lhs moved right by rhs bits (less than its width); signed ones keep the sign.

    MindSpore RightShift, ONNX BitShift RIGHT.
    """

    name = "ms.shift_right"
    DTYPES: ClassVar[str] = "an integer"
    SCALAR: ClassVar[str] = "shr"
