"""Basic comparisons and bit operations on two tensors, with NumPy broadcasting; both operands have one element type."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from msc.dialects.ms.elementwise import BinaryOp


class ComparisonOp(BinaryOp):
    """Base of comparisons: the result is i1; NaN is equal to nothing, and neither less nor greater."""

    DTYPES: ClassVar[str] = "a number"


class LogicalOp(BinaryOp):
    """Base of operations on truth values."""

    DTYPES: ClassVar[str] = "a boolean"


class BitwiseOp(BinaryOp):
    """Base of operations on the bits of integers."""

    DTYPES: ClassVar[str] = "an integer"


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
    SCALAR: ClassVar[str] = "lt"


@irdl_op_definition
class LessEqualOp(ComparisonOp):
    """Whether lhs <= rhs. MindSpore LessEqual, ONNX LessOrEqual."""

    name = "ms.less_equal"
    SCALAR: ClassVar[str] = "le"


@irdl_op_definition
class GreaterOp(ComparisonOp):
    """Whether lhs > rhs. MindSpore Greater, ONNX Greater."""

    name = "ms.greater"
    SCALAR: ClassVar[str] = "gt"


@irdl_op_definition
class GreaterEqualOp(ComparisonOp):
    """Whether lhs >= rhs. MindSpore GreaterEqual, ONNX GreaterOrEqual."""

    name = "ms.greater_equal"
    SCALAR: ClassVar[str] = "ge"


@irdl_op_definition
class LogicalAndOp(LogicalOp):
    """Whether both are true. MindSpore LogicalAnd, ONNX And."""

    name = "ms.logical_and"
    SCALAR: ClassVar[str] = "and"


@irdl_op_definition
class LogicalOrOp(LogicalOp):
    """Whether one or both are true. MindSpore LogicalOr, ONNX Or."""

    name = "ms.logical_or"
    SCALAR: ClassVar[str] = "or"


@irdl_op_definition
class LogicalXorOp(LogicalOp):
    """Whether exactly one is true. MindSpore LogicalXor, ONNX Xor."""

    name = "ms.logical_xor"
    SCALAR: ClassVar[str] = "xor"


@irdl_op_definition
class BitwiseAndOp(BitwiseOp):
    """Bits that both have. MindSpore BitwiseAnd, ONNX BitwiseAnd."""

    name = "ms.bitwise_and"
    SCALAR: ClassVar[str] = "and"


@irdl_op_definition
class BitwiseOrOp(BitwiseOp):
    """Bits that one or both have. MindSpore BitwiseOr, ONNX BitwiseOr."""

    name = "ms.bitwise_or"
    SCALAR: ClassVar[str] = "or"


@irdl_op_definition
class BitwiseXorOp(BitwiseOp):
    """Bits that exactly one has. MindSpore BitwiseXor, ONNX BitwiseXor."""

    name = "ms.bitwise_xor"
    SCALAR: ClassVar[str] = "xor"


@irdl_op_definition
class ShiftLeftOp(BitwiseOp):
    """lhs moved left by rhs bits (less than its width). MindSpore LeftShift, ONNX BitShift LEFT."""

    name = "ms.shift_left"
    SCALAR: ClassVar[str] = "shl"


@irdl_op_definition
class ShiftRightOp(BitwiseOp):
    """lhs moved right by rhs bits (less than its width); signed ones keep the sign.

    MindSpore RightShift, ONNX BitShift RIGHT.
    """

    name = "ms.shift_right"
    SCALAR: ClassVar[str] = "shr"
