"""Writing the operations that replace a composite one, close to how the mathematics is written."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from msc.dialects.element_types import dtype_name, element_type
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.building import OperationBuilder, OperationT
from msc.dialects.ms.constants import scalar_array
from msc.dialects.ms.elementwise import CastOp
from msc.dialects.ms.movement import SliceOp
from msc.dialects.ms.padding import PadOp
from msc.dialects.ms.properties import PlainValue
from msc.dialects.ms.rounding import Properties, RoundedOnce
from msc.dialects.ms.shapes import Shape, shape_of
from msc.dialects.ms.values import Value
from msc.dialects.ms.views import ReshapeOp
from msc.ir.locations import source_location
from msc.ir.typed import tensor_type
from msc.support.diagnostics import Diagnostic, MscError


class Emitter(OperationBuilder[Value]):
    """Collects the operations that replace `op`. Call it with a class and operands to append an operation.

    A number as operand is a constant of rank 0 of the element type of the last tensor among the operands.
    """

    def __init__(self, op: Operation) -> None:
        super().__init__(Value)
        self.op = op
        self.ops: list[Operation] = []

    def __call__(self, operation: type[MsOp], *operands: SSAValue | float, **properties: PlainValue | None) -> SSAValue:
        """Append an operation of one result, and give that."""
        return self.ssa(self.emit(operation, *operands, **properties)[0])

    def insert(self, op: OperationT) -> OperationT:
        """Append an operation."""
        self.ops.append(op)
        return op

    def insert_constant(self, op: OperationT) -> OperationT:
        """Append a constant: it stands in front of what is appended later."""
        op.results[0].name_hint = "c"
        return self.insert(op)

    def scalar(self, value: float, dtype: str) -> SSAValue:
        """A constant of rank 0."""
        return self.ssa(self.known(scalar_array(value, dtype)))

    def shape(self, value: SSAValue) -> Shape:
        """The shape of a value, all sizes known. Raises MSC0404 where one is not."""
        shape = shape_of(tensor_type(value))
        if -1 in shape:
            message = f"{self.op.name} is expanded for known sizes only, but meets a {value.type}"
            raise MscError(
                Diagnostic("MSC0404", message, source_location(self.op), help="fix the dimensions: --dim NAME=8")
            )
        return shape

    def dtype(self, value: SSAValue) -> str:
        """The name of a value's element type."""
        return dtype_name(tensor_type(value).element_type) or "f32"

    def cast(self, value: SSAValue, dtype: str) -> SSAValue:
        """The value in another element type; itself if it has that one."""
        return value if self.dtype(value) == dtype else self(CastOp, value, dtype=element_type(dtype))

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The value under another shape; itself if it has that one."""
        return value if shape_of(tensor_type(value)) == tuple(shape) else self(ReshapeOp, value, shape=list(shape))

    def along_channels(self, value: SSAValue, rank: int) -> SSAValue:
        """A vector `[c]` as it broadcasts along axis 1 of a tensor of `rank`: `[c, 1...]`."""
        return self.reshape(value, (*self.shape(value), *(1 for _ in range(rank - 2))))

    def pad_spatial(self, x: SSAValue, amounts: Sequence[tuple[int, int]], value: float = 0.0) -> SSAValue:
        """A tensor `[n, c, spatial...]` with constant elements added around; negative amounts cut off."""
        x = self._cut_spatial(x, amounts)
        before, after = zip(*((max(b, 0), max(a, 0)) for b, a in amounts), strict=True)
        if not any(before) and not any(after):
            return x
        return self(PadOp, x, pad=[0, 0, *before, 0, 0, *after], value=float(value))

    def _cut_spatial(self, x: SSAValue, amounts: Sequence[tuple[int, int]]) -> SSAValue:
        if all(b >= 0 and a >= 0 for b, a in amounts):
            return x
        n, c, *spatial = self.shape(x)
        begin = [max(-b, 0) for b, _ in amounts]
        end = [size - max(-a, 0) for size, (_, a) in zip(spatial, amounts, strict=True)]
        return self(SliceOp, x, begin=[0, 0, *begin], end=[n, c, *end])


class CompositeEmitter(Emitter):
    """Writes what a composite operation is: of f16 and bf16, what rounds inside is computed in f32 (`RoundedOnce`)."""

    def __init__(self, op: MsOp) -> None:
        super().__init__(op)
        self._once: RoundedOnce[SSAValue] = RoundedOnce(self._write, self.dtype, lambda: None)

    def __call__(self, operation: type[MsOp], *operands: SSAValue | float, **properties: PlainValue | None) -> SSAValue:
        """Append an operation of one result, and give that; what it reads may be computed anew in f32 before."""
        return self._once(operation, operands, properties)[0]

    def _write(
        self, operation: type[MsOp], operands: Sequence[SSAValue | float | None], properties: Properties
    ) -> Sequence[SSAValue]:
        given = [operand for operand in operands if operand is not None]
        return (super().__call__(operation, *given, **properties),)

    def finished(self, *values: SSAValue) -> list[Operation]:
        """The operations that compute values; the others are erased."""
        for op in reversed(self.ops):
            if op.results[0] not in values and not any(result.first_use for result in op.results):
                op.erase()
        self.ops = [op for op in self.ops if op.results]
        return self.ops
