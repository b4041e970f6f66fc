"""Writing the operations of one operator of the model: of f16 and bf16 it rounds once, and leaves nothing unused."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, OpResult

from msc.dialects.ms.base import MsOp
from msc.dialects.ms.rounding import Properties, RoundedOnce
from msc.importers.onnx.builder import Builder, Operand
from msc.importers.onnx.values import OnnxValue, Slot, TensorSequence


class Writing:
    """The operations that a node, or an operator that the standard defines by other nodes, is written as."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._written: list[Operation] = []
        self._once: RoundedOnce[OnnxValue] = RoundedOnce(self._write, lambda value: value.dtype, lambda: builder.block)

    def __call__(
        self, operation: type[MsOp], operands: Sequence[Operand | None], properties: Properties
    ) -> tuple[OnnxValue, ...]:
        """The results of an operation; what it reads may be computed anew in f32 before."""
        return tuple(self._once(operation, operands, properties))

    def _write(
        self, operation: type[MsOp], operands: Sequence[Operand | None], properties: Properties
    ) -> tuple[OnnxValue, ...]:
        results = self._builder.emit(operation, *operands, **properties)
        self._written += [v.ssa.op for v in results if isinstance(v.ssa, OpResult)]
        return results

    def finish(self, outputs: Sequence[Slot]) -> None:
        """Erase what was written and nothing uses in the end, the outputs excepted."""
        items = [v for slot in outputs for v in (slot.items if isinstance(slot, TensorSequence) else (slot,))]
        kept = {value.ssa for value in items if value is not None}
        kept |= {count.value.ssa for value in items if value is not None for count in value.counts.values()}
        for op in reversed(self._written):
            if not any(result in kept or result.first_use for result in op.results):
                op.detach()
                op.erase()
        self._written = []
