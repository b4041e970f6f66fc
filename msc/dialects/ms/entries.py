"""Entries along the first axis at a computed index: how a loop reads what it scans and writes what it collects.

An entry lies in one piece of memory, so that reading and writing one are no work of their own: kernels are given its
address. Negative indices count from the end; one outside the axis is cut to the nearest place in compiled code, and
refused by the interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from msc.dialects.ms.base import MsOp
from msc.dialects.ms.shapes import Shape, same_shape, shape_text, tensor_type
from msc.ir.errors import DtypeConflict, ShapeConflict


class EntryAccessOp(MsOp):
    """Base: x of any element type with an entry at least, and an index into its first axis, a signed integer."""

    x = operand_def(TensorType)
    index = operand_def(TensorType)

    def entry_shape(self) -> Shape:
        """The shape of x without its first axis. Raises ShapeConflict, DtypeConflict."""
        self.expect_dtype(1, "a signed integer")
        self.expect_rank(1, 0)
        shape = self.shape(0)
        if not shape or shape[0] == 0:
            raise ShapeConflict(f"{self.name}: operand 0 is {shape_text(shape)}; it has no entries")
        return shape[1:]


@irdl_op_definition
class EntryOp(EntryAccessOp):
    """The entry of x at an index: x[i]. MindSpore Gather, ONNX Scan inputs."""

    name = "ms.entry"
    EXAMPLE: ClassVar[str] = "3x4xT i64"
    result = result_def(TensorType)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        return (tensor_type(self.dtype(0), self.entry_shape()),)


@irdl_op_definition
class SetEntryOp(EntryAccessOp):
    """x with `value` as its entry at an index. MindSpore TensorScatterUpdate, ONNX Scan outputs."""

    name = "ms.set_entry"
    EXAMPLE: ClassVar[str] = "3x4xT i64 4xT"
    x = operand_def(TensorType)
    index = operand_def(TensorType)
    value = operand_def(TensorType)
    result = result_def(TensorType)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        if not same_shape(self.shape(2), self.entry_shape()):
            raise ShapeConflict(
                f"{self.name}: the value is {shape_text(self.shape(2))}, but an entry of {shape_text(self.shape(0))} "
                f"is {shape_text(self.entry_shape())}"
            )
        if self.dtype(2) != self.dtype(0):
            raise DtypeConflict(
                f"{self.name}: the value has element type {self.dtype(2)}, but the entries have {self.dtype(0)}",
                help="convert it with ms.cast",
            )
        return (tensor_type(self.dtype(0), self.shape(0)),)
