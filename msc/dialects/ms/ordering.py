"""The order of elements along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def

from msc.dialects.ms.base import TensorOp
from msc.dialects.ms.properties import flag_property, int_property
from msc.dialects.ms.shapes import UNKNOWN, normal_axis, shape_text, tensor_type
from msc.ir.errors import InvalidAttribute

ALL = -1
"""The `count` of an order that names all elements."""


@irdl_op_definition
class ArgsortOp(TensorOp):
    """The places of the elements along `axis` in ascending order, as i64; from the largest on if `descending`.

    Of any element type; the first `count` places, all if it is -1. Equal elements keep their order; NaN counts as
    infinity. Composite. MindSpore Sort and TopK, ONNX TopK.
    """

    name = "ms.argsort"
    EXAMPLE: ClassVar[str] = "2x5xT {count = 3, descending = true}"
    x = operand_def(TensorType)
    axis = int_property(-1)
    count = int_property(ALL)
    descending = flag_property(False)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        self.expect_dtype(0, "any")
        shape, count = self.shape(0), self.int_("count")
        axis = normal_axis(self.name, self.int_("axis"), len(shape))
        size = shape[axis]
        if count < ALL or (size != UNKNOWN and count > size):
            text = shape_text(shape)
            raise InvalidAttribute(f"ms.argsort: count is {count}; axis {axis} of {text} has {size} elements")
        return (tensor_type("i64", (*shape[:axis], size if count == ALL else count, *shape[axis + 1 :])),)
