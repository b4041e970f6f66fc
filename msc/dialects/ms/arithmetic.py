"""Basic arithmetic on two tensors of one element type, which is the result's, with NumPy broadcasting."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from msc.dialects.ms.elementwise import BinaryOp, constant
from msc.poly.scalar import Scalar, apply


@irdl_op_definition
class AddOp(BinaryOp):
    """Sum. MindSpore Add, ONNX Add."""

    name = "ms.add"
    DTYPES: ClassVar[str] = "a number"
    SCALAR: ClassVar[str] = "add"


@irdl_op_definition
class SubOp(BinaryOp):
    """Difference. MindSpore Sub, ONNX Sub."""

    name = "ms.sub"
    DTYPES: ClassVar[str] = "a number"
    SCALAR: ClassVar[str] = "sub"


@irdl_op_definition
class MulOp(BinaryOp):
    """Product. MindSpore Mul, ONNX Mul."""

    name = "ms.mul"
    DTYPES: ClassVar[str] = "a number"
    SCALAR: ClassVar[str] = "mul"


@irdl_op_definition
class DivOp(BinaryOp):
    """Quotient; integers truncate towards zero. MindSpore Div (RealDiv), ONNX Div."""

    name = "ms.div"
    DTYPES: ClassVar[str] = "a number"
    SCALAR: ClassVar[str] = "div"


@irdl_op_definition
class FloorDivOp(BinaryOp):
    """Floor of the quotient (for floats, of the rounded quotient). MindSpore FloorDiv."""

    name = "ms.floor_div"
    DTYPES: ClassVar[str] = "a number"

    def scalar(self, *args: Scalar) -> Scalar:
        quotient = apply("div", *args)
        match args[0].dtype[0]:
            case "f" | "b":
                return apply("floor", quotient)
            case "u":
                return quotient
            case _:
                return apply("select", _rounds_up(*args), apply("sub", quotient, constant(1, quotient.dtype)), quotient)


@irdl_op_definition
class ModOp(BinaryOp):
    """Remainder with the divisor's sign, as Python's `%`. MindSpore FloorMod, ONNX Mod with fmod=0."""

    name = "ms.mod"
    DTYPES: ClassVar[str] = "a number"
    SCALAR: ClassVar[str] = "mod"


@irdl_op_definition
class RemOp(BinaryOp):
    """Remainder with the dividend's sign, as C's `%` and fmod. MindSpore TruncateMod, ONNX Mod with fmod=1."""

    name = "ms.rem"
    DTYPES: ClassVar[str] = "a number"
    SCALAR: ClassVar[str] = "rem"


@irdl_op_definition
class PowOp(BinaryOp):
    """lhs to the power of rhs. MindSpore Pow, ONNX Pow."""

    name = "ms.pow"
    DTYPES: ClassVar[str] = "a number"
    SCALAR: ClassVar[str] = "pow"


@irdl_op_definition
class MaximumOp(BinaryOp):
    """The larger; NaN if one is. MindSpore Maximum, ONNX Max."""

    name = "ms.maximum"
    DTYPES: ClassVar[str] = "a number"
    SCALAR: ClassVar[str] = "max"


@irdl_op_definition
class MinimumOp(BinaryOp):
    """The smaller; NaN if one is. MindSpore Minimum, ONNX Min."""

    name = "ms.minimum"
    DTYPES: ClassVar[str] = "a number"
    SCALAR: ClassVar[str] = "min"


@irdl_op_definition
class Atan2Op(BinaryOp):
    """The angle of the point (rhs, lhs), in radians. MindSpore Atan2."""

    name = "ms.atan2"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "atan2"


def _rounds_up(a: Scalar, b: Scalar) -> Scalar:
    """Whether truncation of a / b rounds up: the division leaves a remainder, and its sign is not the divisor's."""
    remainder = apply("rem", a, b)
    zero = constant(0, remainder.dtype)
    opposite = apply("xor", apply("lt", remainder, zero), apply("lt", b, zero))
    return apply("and", apply("ne", remainder, zero), opposite)
