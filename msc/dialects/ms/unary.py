"""Basic element-wise operations on one tensor; the result has its shape and, if not said otherwise, element type."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from msc.dialects.ms.elementwise import UnaryOp, constant
from msc.poly.scalar import Scalar, apply


@irdl_op_definition
class NegOp(UnaryOp):
    """The negative. MindSpore Neg, ONNX Neg."""

    name = "ms.neg"
    DTYPES: ClassVar[str] = "a signed number"
    SCALAR: ClassVar[str] = "neg"


@irdl_op_definition
class AbsOp(UnaryOp):
    """The absolute value; the smallest signed integer stays what it is. MindSpore Abs, ONNX Abs."""

    name = "ms.abs"
    DTYPES: ClassVar[str] = "a number"
    SCALAR: ClassVar[str] = "abs"


@irdl_op_definition
class SignOp(UnaryOp):
    """-1, 0 or 1; NaN stays NaN. MindSpore Sign, ONNX Sign."""

    name = "ms.sign"
    DTYPES: ClassVar[str] = "a number"
    SCALAR: ClassVar[str] = "sign"


@irdl_op_definition
class ExpOp(UnaryOp):
    """e to the x. MindSpore Exp, ONNX Exp."""

    name = "ms.exp"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "exp"


@irdl_op_definition
class Expm1Op(UnaryOp):
    """e to the x, minus 1, exact near 0. MindSpore Expm1."""

    name = "ms.expm1"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "expm1"


@irdl_op_definition
class LogOp(UnaryOp):
    """The natural logarithm. MindSpore Log, ONNX Log."""

    name = "ms.log"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "log"


@irdl_op_definition
class Log1pOp(UnaryOp):
    """The natural logarithm of 1 + x, exact near 0. MindSpore Log1p."""

    name = "ms.log1p"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "log1p"


@irdl_op_definition
class SqrtOp(UnaryOp):
    """The square root. MindSpore Sqrt, ONNX Sqrt."""

    name = "ms.sqrt"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "sqrt"


@irdl_op_definition
class RsqrtOp(UnaryOp):
    """1 by the square root. MindSpore Rsqrt."""

    name = "ms.rsqrt"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "rsqrt"


@irdl_op_definition
class ReciprocalOp(UnaryOp):
    """1 by x. MindSpore Reciprocal, ONNX Reciprocal."""

    name = "ms.reciprocal"
    DTYPES: ClassVar[str] = "a float"

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
class SinOp(UnaryOp):
    """The sine of an angle in radians. MindSpore Sin, ONNX Sin."""

    name = "ms.sin"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "sin"


@irdl_op_definition
class CosOp(UnaryOp):
    """The cosine of an angle in radians. MindSpore Cos, ONNX Cos."""

    name = "ms.cos"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "cos"


@irdl_op_definition
class TanOp(UnaryOp):
    """The tangent of an angle in radians. MindSpore Tan, ONNX Tan."""

    name = "ms.tan"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "tan"


@irdl_op_definition
class AsinOp(UnaryOp):
    """The inverse sine, in radians. MindSpore Asin, ONNX Asin."""

    name = "ms.asin"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "asin"


@irdl_op_definition
class AcosOp(UnaryOp):
    """The inverse cosine, in radians. MindSpore ACos, ONNX Acos."""

    name = "ms.acos"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "acos"


@irdl_op_definition
class AtanOp(UnaryOp):
    """The inverse tangent, in radians. MindSpore Atan, ONNX Atan."""

    name = "ms.atan"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "atan"


@irdl_op_definition
class SinhOp(UnaryOp):
    """The hyperbolic sine. MindSpore Sinh, ONNX Sinh."""

    name = "ms.sinh"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "sinh"


@irdl_op_definition
class CoshOp(UnaryOp):
    """The hyperbolic cosine. MindSpore Cosh, ONNX Cosh."""

    name = "ms.cosh"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "cosh"


@irdl_op_definition
class TanhOp(UnaryOp):
    """The hyperbolic tangent. MindSpore Tanh, ONNX Tanh."""

    name = "ms.tanh"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "tanh"


@irdl_op_definition
class AsinhOp(UnaryOp):
    """The inverse hyperbolic sine. MindSpore Asinh, ONNX Asinh."""

    name = "ms.asinh"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "asinh"


@irdl_op_definition
class AcoshOp(UnaryOp):
    """The inverse hyperbolic cosine. MindSpore Acosh, ONNX Acosh."""

    name = "ms.acosh"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "acosh"


@irdl_op_definition
class AtanhOp(UnaryOp):
    """The inverse hyperbolic tangent. MindSpore Atanh, ONNX Atanh."""

    name = "ms.atanh"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "atanh"


@irdl_op_definition
class ErfOp(UnaryOp):
    """The error function. MindSpore Erf, ONNX Erf."""

    name = "ms.erf"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "erf"


@irdl_op_definition
class SigmoidOp(UnaryOp):
    """1 / (1 + e^-x). MindSpore Sigmoid, ONNX Sigmoid."""

    name = "ms.sigmoid"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "sigmoid"


@irdl_op_definition
class SoftplusOp(UnaryOp):
    """log(1 + e^x). MindSpore Softplus, ONNX Softplus."""

    name = "ms.softplus"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "softplus"


@irdl_op_definition
class FloorOp(UnaryOp):
    """The largest whole number not above x. MindSpore Floor, ONNX Floor."""

    name = "ms.floor"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "floor"


@irdl_op_definition
class CeilOp(UnaryOp):
    """The smallest whole number not below x. MindSpore Ceil, ONNX Ceil."""

    name = "ms.ceil"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "ceil"


@irdl_op_definition
class RoundOp(UnaryOp):
    """The nearest whole number, halves to even. MindSpore Rint, ONNX Round."""

    name = "ms.round"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "round"


@irdl_op_definition
class TruncOp(UnaryOp):
    """The nearest whole number towards zero. MindSpore Trunc."""

    name = "ms.trunc"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "trunc"


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
class IsNanOp(UnaryOp):
    """Whether x is NaN, as i1. MindSpore IsNan, ONNX IsNaN."""

    name = "ms.is_nan"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "isnan"

    def result_type_for(self, dtype: str) -> str:
        return "i1"


@irdl_op_definition
class IsInfOp(UnaryOp):
    """Whether x is infinite of either sign, as i1. MindSpore IsInf, ONNX IsInf."""

    name = "ms.is_inf"
    DTYPES: ClassVar[str] = "a float"
    SCALAR: ClassVar[str] = "isinf"

    def result_type_for(self, dtype: str) -> str:
        return "i1"
