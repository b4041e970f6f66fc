"""Basic element-wise operations on one tensor; the result has its shape and, if not said otherwise, element type.

Those of scalar operators are made from the records (`msc/poly/operators.py`): `ms.exp` is `ExpOp`.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from msc.dialects.ms.elementwise import UnaryOp, constant
from msc.dialects.ms.properties import flag_property
from msc.poly.scalar import OPERATORS, Scalar, ScalarOperator, apply


class FloatUnaryOp(UnaryOp):
    """Base of the operations on floats."""

    DTYPES: ClassVar[str] = "a float"


@irdl_op_definition
class SqrtOp(FloatUnaryOp):
    """The square root. MindSpore Sqrt, ONNX Sqrt.

    With `flat` its derivative at 0 counts as 0: of a sum of squares, the root is a length, with 0 as a subgradient.
    """

    name = "ms.sqrt"
    flat = flag_property(False)


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


def _operation(tensor: str, operator: ScalarOperator) -> type[UnaryOp]:
    """The class of `ms.<tensor>`, which computes a scalar operator at each place."""
    class_name = "".join(word.capitalize() for word in tensor.split("_")) + "Op"
    body = {
        "__doc__": operator.doc, "__module__": __name__, "name": f"ms.{tensor}",
        "DTYPES": operator.dtypes, "SCALAR": operator.name,
        "__annotations__": {"DTYPES": ClassVar[str], "SCALAR": ClassVar[str]},
    }  # fmt: skip
    return irdl_op_definition(type(class_name, (UnaryOp,), body))


OF_SCALARS: dict[str, type[UnaryOp]] = {
    made.__name__: made
    for operator in OPERATORS.values()
    if operator.doc
    for made in [_operation(tensor, operator) for tensor in operator.tensors]
}
"""The classes made from records, by name."""


def __getattr__(name: str) -> type[UnaryOp]:
    if name not in OF_SCALARS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return OF_SCALARS[name]
