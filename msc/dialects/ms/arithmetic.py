"""Basic arithmetic on two tensors of one element type, which is the result's, with NumPy broadcasting."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from msc.dialects.ms.elementwise import BinaryOp, constant
from msc.dialects.ms.properties import flag_property
from msc.poly.scalar import Scalar, apply


class ArithmeticOp(BinaryOp):
    """Base of arithmetic on numbers of any type."""

    DTYPES: ClassVar[str] = "a number"


@irdl_op_definition
class AddOp(ArithmeticOp):
    """Sum. MindSpore Add, ONNX Add."""

    name = "ms.add"


@irdl_op_definition
class SubOp(ArithmeticOp):
    """Difference. MindSpore Sub, ONNX Sub."""

    name = "ms.sub"


@irdl_op_definition
class MulOp(ArithmeticOp):
    """Product. MindSpore Mul, ONNX Mul."""

    name = "ms.mul"


@irdl_op_definition
class MulNoNanOp(BinaryOp):
    """Product, but 0 where lhs is 0, even if rhs is infinite or NaN. MindSpore MulNoNan, with the factors exchanged."""

    name = "ms.mul_no_nan"
    DTYPES: ClassVar[str] = "a float"

    def scalar(self, *args: Scalar) -> Scalar:
        zero = constant(0, args[0].dtype)
        return apply("select", apply("eq", args[0], zero), zero, apply("mul", *args))


@irdl_op_definition
class DivOp(ArithmeticOp):
    """Quotient; integers truncate towards zero. MindSpore Div (RealDiv), ONNX Div."""

    name = "ms.div"


@irdl_op_definition
class FloorDivOp(ArithmeticOp):
    """Floor of the quotient (for floats, of the rounded quotient). MindSpore FloorDiv."""

    name = "ms.floor_div"

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
class ModOp(ArithmeticOp):
    """Remainder with the divisor's sign, as Python's `%`. MindSpore FloorMod, ONNX Mod with fmod=0."""

    name = "ms.mod"


@irdl_op_definition
class RemOp(ArithmeticOp):
    """Remainder with the dividend's sign, as C's `%` and fmod. MindSpore TruncateMod, ONNX Mod with fmod=1."""

    name = "ms.rem"


@irdl_op_definition
class PowOp(ArithmeticOp):
    """lhs to the power of rhs. MindSpore Pow, ONNX Pow. With `flat` its derivative at lhs = 0 counts as 0."""

    name = "ms.pow"
    flat = flag_property(False)


@irdl_op_definition
class MaximumOp(ArithmeticOp):
    """The larger; NaN if one is. MindSpore Maximum, ONNX Max.

    Equal operands have half the gradient each; with `to_first` lhs has all of it.
    """

    name = "ms.maximum"
    to_first = flag_property(False)
    SCALAR: ClassVar[str] = "max"


@irdl_op_definition
class MinimumOp(ArithmeticOp):
    """The smaller; NaN if one is. MindSpore Minimum, ONNX Min.

    Equal operands have half the gradient each; with `to_first` lhs has all of it.
    """

    name = "ms.minimum"
    to_first = flag_property(False)
    SCALAR: ClassVar[str] = "min"


@irdl_op_definition
class Atan2Op(BinaryOp):
    """The angle of the point (rhs, lhs), in radians. MindSpore Atan2."""

    name = "ms.atan2"
    DTYPES: ClassVar[str] = "a float"


def _rounds_up(a: Scalar, b: Scalar) -> Scalar:
    """Whether truncation of a / b rounds up: the division leaves a remainder, and its sign is not the divisor's."""
    remainder = apply("rem", a, b)
    zero = constant(0, remainder.dtype)
    opposite = apply("xor", apply("lt", remainder, zero), apply("lt", b, zero))
    return apply("and", apply("ne", remainder, zero), opposite)
