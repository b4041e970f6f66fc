"""Writing the operations of an ONNX model; those on known arrays are evaluated at once instead, by the interpreter."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.ir import Block, SSAValue

from msc.dialects.element_types import is_float
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.building import GraphBuilder
from msc.dialects.ms.movement import BroadcastToOp
from msc.dialects.ms.properties import PlainValue
from msc.importers.failures import failure
from msc.importers.onnx.values import OnnxValue
from msc.interp import evaluate_op

MAXIMUM_OPERATIONS = 200_000
"""Written or evaluated at import; a loop, a recurrence or a window of absurd length asks for more."""

Operand: TypeAlias = OnnxValue | float | bool


class Builder(GraphBuilder[OnnxValue]):
    """Writes the entry function of a model, up to a number of operations.

    One that `has_open_sizes` must have the same operations at all sizes.
    """

    def __init__(self, entry: Block, *, has_open_sizes: bool = False) -> None:
        super().__init__(entry, OnnxValue, evaluate_op)
        self.has_open_sizes = has_open_sizes
        self._emitted = 0

    def emit(
        self,
        operation: type[MsOp],
        *operands: OnnxValue | SSAValue | float | bool | None,
        **properties: PlainValue | None,
    ) -> tuple[OnnxValue, ...]:
        """The results of an operation. Raises MSC0714 for a model that has too many when it is unrolled."""
        self._emitted += 1
        if self._emitted > MAXIMUM_OPERATIONS:
            raise failure("MSC0714", f"the model has more than {MAXIMUM_OPERATIONS} operations when it is unrolled")
        if operation is BroadcastToOp and self.has_open_sizes:  # of reals: what is small would be none at other sizes
            operands = tuple(self.ssa(x) if isinstance(x, OnnxValue) and is_float(x.dtype) else x for x in operands)
        return super().emit(operation, *operands, **properties)
