"""Basic element-wise functions of logarithms that are defined, and smooth, where their terms are not."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from msc.dialects.ms.elementwise import BinaryOp, UnaryOp, constant
from msc.poly.scalar import Scalar, apply


@irdl_op_definition
class XlogyOp(BinaryOp):
    """lhs log(rhs), 0 where lhs is 0. MindSpore Xlogy."""

    name = "ms.xlogy"
    DTYPES: ClassVar[str] = "a float"

    def scalar(self, *args: Scalar) -> Scalar:
        zero = constant(0, args[0].dtype)
        return apply("select", apply("eq", args[0], zero), zero, apply("mul", args[0], apply("log", args[1])))


@irdl_op_definition
class LogAddExpOp(BinaryOp):
    """log(e^lhs + e^rhs), without overflow; of two equal infinities the same. NumPy logaddexp."""

    name = "ms.log_add_exp"
    DTYPES: ClassVar[str] = "a float"

    def scalar(self, *args: Scalar) -> Scalar:
        distance = apply("sub", apply("min", *args), apply("max", *args))
        distance = apply("select", apply("eq", *args), constant(0, args[0].dtype), distance)
        return apply("add", apply("max", *args), apply("log1p", apply("exp", distance)))


@irdl_op_definition
class LogitOp(UnaryOp):
    """log(x / (1 - x)), the inverse of the sigmoid. MindSpore Logit."""

    name = "ms.logit"
    DTYPES: ClassVar[str] = "a float"

    def scalar(self, *args: Scalar) -> Scalar:
        (x,) = args
        return apply("log", apply("div", x, apply("sub", constant(1, x.dtype), x)))


@irdl_op_definition
class BinaryCrossEntropyOp(BinaryOp):
    """-(rhs log(lhs) + (1 - rhs) log(1 - lhs)) of chances and labels; a logarithm is at least -100.

    MindSpore BinaryCrossEntropy without weights and reduction.
    """

    name = "ms.binary_cross_entropy"
    DTYPES: ClassVar[str] = "a float"

    def scalar(self, *args: Scalar) -> Scalar:
        chance, label = args
        one, least = (constant(v, chance.dtype) for v in (1, -100))
        if_true = apply("mul", label, apply("max", apply("log", chance), least))
        other = apply("max", apply("log", apply("sub", one, chance)), least)
        return apply("neg", apply("add", if_true, apply("mul", apply("sub", one, label), other)))
