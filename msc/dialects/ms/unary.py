"""Basic element-wise operations on one tensor; the result has its shape and, if not said otherwise, element type."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from msc.dialects.ms.elementwise import UnaryOp, constant
from msc.dialects.ms.properties import flag_property
from msc.poly.scalar import Scalar, apply


class FloatUnaryOp(UnaryOp):
    """Base of the operations on floats."""

    DTYPES: ClassVar[str] = "a float"


@irdl_op_definition
class NegOp(UnaryOp):
    """The negative. MindSpore Neg, ONNX Neg."""

    name = "ms.neg"
    DTYPES: ClassVar[str] = "a signed number"


@irdl_op_definition
class AbsOp(UnaryOp):
    """The absolute value; the smallest signed integer stays what it is. MindSpore Abs, ONNX Abs."""

    name = "ms.abs"
    DTYPES: ClassVar[str] = "a number"


@irdl_op_definition
class SignOp(UnaryOp):
    """-1, 0 or 1; NaN stays NaN. MindSpore Sign, ONNX Sign."""

    name = "ms.sign"
    DTYPES: ClassVar[str] = "a number"


@irdl_op_definition
class ExpOp(FloatUnaryOp):
    """e to the x. MindSpore Exp, ONNX Exp."""

    name = "ms.exp"


@irdl_op_definition
class Expm1Op(FloatUnaryOp):
    """e to the x, minus 1, exact near 0. MindSpore Expm1."""

    name = "ms.expm1"


@irdl_op_definition
class LogOp(FloatUnaryOp):
    """The natural logarithm. MindSpore Log, ONNX Log."""

    name = "ms.log"


@irdl_op_definition
class Log1pOp(FloatUnaryOp):
    """The natural logarithm of 1 + x, exact near 0. MindSpore Log1p."""

    name = "ms.log1p"


@irdl_op_definition
class SqrtOp(FloatUnaryOp):
    """The square root. MindSpore Sqrt, ONNX Sqrt.

    With `flat` its derivative at 0 counts as 0: of a sum of squares, the root is a length, with 0 as a subgradient.
    """

    name = "ms.sqrt"
    flat = flag_property(False)


@irdl_op_definition
class RsqrtOp(FloatUnaryOp):
    """1 by the square root. MindSpore Rsqrt."""

    name = "ms.rsqrt"


@irdl_op_definition
class ReciprocalOp(FloatUnaryOp):
    """1 by x. MindSpore Reciprocal, ONNX Reciprocal."""

    name = "ms.reciprocal"

    def scalar(self, *args: Scalar) -> Scalar:
        return apply("div", constant(1, args[0].dtype), args[0])


@irdl_op_definition
class SquareOp(UnaryOp):
    """x times x. MindSpore Square."""

    name = "ms.square"
    DTYPES: ClassVar[str] = "a number"

    def scalar(self, *args: Scalar) -> Scalar:
        return apply("mul", args[0], args[0])


@irdl_op_definition
class SinOp(FloatUnaryOp):
    """The sine of an angle in radians. MindSpore Sin, ONNX Sin."""

    name = "ms.sin"


@irdl_op_definition
class CosOp(FloatUnaryOp):
    """The cosine of an angle in radians. MindSpore Cos, ONNX Cos."""

    name = "ms.cos"


@irdl_op_definition
class TanOp(FloatUnaryOp):
    """The tangent of an angle in radians. MindSpore Tan, ONNX Tan."""

    name = "ms.tan"


@irdl_op_definition
class AsinOp(FloatUnaryOp):
    """The inverse sine, in radians. MindSpore Asin, ONNX Asin."""

    name = "ms.asin"


@irdl_op_definition
class AcosOp(FloatUnaryOp):
    """The inverse cosine, in radians. MindSpore ACos, ONNX Acos."""

    name = "ms.acos"


@irdl_op_definition
class AtanOp(FloatUnaryOp):
    """The inverse tangent, in radians. MindSpore Atan, ONNX Atan."""

    name = "ms.atan"


@irdl_op_definition
class SinhOp(FloatUnaryOp):
    """The hyperbolic sine. MindSpore Sinh, ONNX Sinh."""

    name = "ms.sinh"


@irdl_op_definition
class CoshOp(FloatUnaryOp):
    """The hyperbolic cosine. MindSpore Cosh, ONNX Cosh."""

    name = "ms.cosh"


@irdl_op_definition
class TanhOp(FloatUnaryOp):
    """The hyperbolic tangent. MindSpore Tanh, ONNX Tanh."""

    name = "ms.tanh"


@irdl_op_definition
class AsinhOp(FloatUnaryOp):
    """The inverse hyperbolic sine. MindSpore Asinh, ONNX Asinh."""

    name = "ms.asinh"


@irdl_op_definition
class AcoshOp(FloatUnaryOp):
    """The inverse hyperbolic cosine. MindSpore Acosh, ONNX Acosh."""

    name = "ms.acosh"


@irdl_op_definition
class AtanhOp(FloatUnaryOp):
    """The inverse hyperbolic tangent. MindSpore Atanh, ONNX Atanh."""

    name = "ms.atanh"


@irdl_op_definition
class ErfOp(FloatUnaryOp):
    """The error function. MindSpore Erf, ONNX Erf."""

    name = "ms.erf"


@irdl_op_definition
class SigmoidOp(FloatUnaryOp):
    """1 / (1 + e^-x). MindSpore Sigmoid, ONNX Sigmoid."""

    name = "ms.sigmoid"


@irdl_op_definition
class SoftplusOp(FloatUnaryOp):
    """log(1 + e^x). MindSpore Softplus, ONNX Softplus."""

    name = "ms.softplus"


@irdl_op_definition
class FloorOp(FloatUnaryOp):
    """The largest whole number not above x. MindSpore Floor, ONNX Floor."""

    name = "ms.floor"


@irdl_op_definition
class CeilOp(FloatUnaryOp):
    """The smallest whole number not below x. MindSpore Ceil, ONNX Ceil."""

    name = "ms.ceil"


@irdl_op_definition
class RoundOp(FloatUnaryOp):
    """The nearest whole number, halves to even. MindSpore Rint, ONNX Round."""

    name = "ms.round"


@irdl_op_definition
class TruncOp(FloatUnaryOp):
    """The nearest whole number towards zero. MindSpore Trunc."""

    name = "ms.trunc"


@irdl_op_definition
class ReluOp(UnaryOp):
    """The larger of x and 0; NaN stays NaN. MindSpore ReLU, ONNX Relu."""

    name = "ms.relu"
    DTYPES: ClassVar[str] = "a number"

    def scalar(self, *args: Scalar) -> Scalar:
        return apply("max", args[0], constant(0, args[0].dtype))


@irdl_op_definition
class LogicalNotOp(UnaryOp):
    """False for true. MindSpore LogicalNot, ONNX Not."""

    name = "ms.logical_not"
    DTYPES: ClassVar[str] = "a boolean"
    SCALAR: ClassVar[str] = "not"


@irdl_op_definition
class BitwiseNotOp(UnaryOp):
    """Every bit inverted. MindSpore Invert, ONNX BitwiseNot."""

    name = "ms.bitwise_not"
    DTYPES: ClassVar[str] = "an integer"
    SCALAR: ClassVar[str] = "not"


@irdl_op_definition
class IsNanOp(FloatUnaryOp):
    """Whether x is NaN, as i1. MindSpore IsNan, ONNX IsNaN."""

    name = "ms.is_nan"
    SCALAR: ClassVar[str] = "isnan"

    def result_type_for(self, dtype: str) -> str:
        return "i1"


@irdl_op_definition
class IsInfOp(FloatUnaryOp):
    """Whether x is infinite of either sign, as i1. MindSpore IsInf, ONNX IsInf."""

    name = "ms.is_inf"
    SCALAR: ClassVar[str] = "isinf"

    def result_type_for(self, dtype: str) -> str:
        return "i1"
