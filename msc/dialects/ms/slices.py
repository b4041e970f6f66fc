"""Slices along the first axis at a computed index: how a loop reads what it scans and writes what it collects.

A slice x[i] is contiguous, so reading or writing one costs nothing by itself: kernels are given its address. Negative
indices count from the end. Compiled code clamps an index to the axis; the interpreter refuses one outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def

from msc.dialects.ms.base import TensorOp
from msc.dialects.ms.shapes import Shape, same_shape, shape_text, tensor_type
from msc.ir.errors import DtypeConflict, ShapeConflict


class SliceAccessOp(TensorOp):
    """Base: x of any element type and a first axis of at least one, and an index into that axis, a signed integer."""

    x = operand_def(TensorType)
    index = operand_def(TensorType)

    def slice_shape(self) -> Shape:
        """The shape of x without its first axis. Raises ShapeConflict, DtypeConflict."""
        self.expect_dtype(1, "a signed integer")
        self.expect_rank(1, 0)
        shape = self.shape(0)
        if not shape or shape[0] == 0:
            raise ShapeConflict(f"{self.name}: operand 0 is {shape_text(shape)}; it has no slices")
        return shape[1:]


@irdl_op_definition
class ExtractSliceOp(SliceAccessOp):
    """The slice x[i] along the first axis, without that axis. MindSpore Gather, ONNX Scan inputs."""

    name = "ms.extract_slice"
    EXAMPLE: ClassVar[str] = "3x4xT i64"

    def infer(self) -> Sequence[TensorType[Attribute]]:
        return (tensor_type(self.dtype(0), self.slice_shape()),)


@irdl_op_definition
class InsertSliceOp(SliceAccessOp):
    """x with the slice x[i] set to `value`. MindSpore TensorScatterUpdate, ONNX Scan outputs."""

    name = "ms.insert_slice"
    EXAMPLE: ClassVar[str] = "3x4xT i64 4xT"
    x = operand_def(TensorType)
    index = operand_def(TensorType)
    value = operand_def(TensorType)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        if not same_shape(self.shape(2), self.slice_shape()):
            raise ShapeConflict(
                f"{self.name}: the value is {shape_text(self.shape(2))}, but an entry of {shape_text(self.shape(0))} "
                f"is {shape_text(self.slice_shape())}"
            )
        if self.dtype(2) != self.dtype(0):
            raise DtypeConflict(
                f"{self.name}: the value has element type {self.dtype(2)}, but the entries have {self.dtype(0)}",
                help="convert it with ms.cast",
            )
        return (tensor_type(self.dtype(0), self.shape(0)),)
