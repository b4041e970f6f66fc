"""Writing gradients: operations appended one after the other to a place that the caller chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Block, Operation, SSAValue

from msc.dialects.element_types import dtype_name
from msc.dialects.ms.arithmetic import AddOp
from msc.dialects.ms.building import OperationT
from msc.dialects.ms.movement import BroadcastToOp
from msc.dialects.ms.pipeline import mark_gradient
from msc.dialects.ms.reductions import ReduceSumOp
from msc.dialects.ms.shapes import Shape, shape_of
from msc.graph.emitter import Emitter
from msc.ir.locations import set_location
from msc.ir.typed import tensor_type


class GradientEmitter(Emitter):
    """Writes gradients through `sink`, which puts an operation behind those that were written before.

    `op` is the operation whose gradient is being written: new operations get its location, and errors name it.
    """

    def __init__(self, op: Operation, sink: Callable[[Operation], object]) -> None:
        super().__init__(op)
        self._sink = sink
        self.wanted: frozenset[int] = frozenset()
        """The numbers of the operands of `op` whose gradients are asked for."""

    def wants(self, index: int) -> bool:
        """Whether the gradient of operand `index` is asked for."""
        return index in self.wanted

    def insert(self, op: OperationT) -> OperationT:
        """Put an operation behind those that were written before."""
        set_location(op, self.op.location)
        mark_gradient(op, self.op)
        self._sink(op)
        return op

    def within(self, block: Block) -> GradientEmitter:
        """An emitter at the end of a block inside: constants of one block are not those of another."""
        return GradientEmitter(self.op, block.add_op)

    def zeros(self, type_: Attribute) -> SSAValue:
        """A tensor of zeros."""
        tensor = tensor_type(type_)
        return self.filled(0.0, shape_of(tensor), dtype_name(tensor.element_type) or "f32")

    def filled(self, value: float, shape: Sequence[int], dtype: str) -> SSAValue:
        """A tensor of one number."""
        scalar = self.scalar(value, dtype)
        return self(BroadcastToOp, scalar, shape=list(shape)) if shape else scalar

    def sum_to(self, value: SSAValue, shape: Shape) -> SSAValue:
        """The adjoint of broadcasting to the shape that `value` has: the sum of what was repeated."""
        have = self.shape(value)
        if have == shape:
            return value
        extra = len(have) - len(shape)
        axes = [k for k in range(len(have)) if k < extra or (shape[k - extra] == 1 and have[k] != 1)]
        summed = self(ReduceSumOp, value, axis=axes, keep_dims=False) if axes else value
        return self.reshape(summed, shape)

    def added(self, a: SSAValue | None, b: SSAValue) -> SSAValue:
        """Their sum; None counts as zero."""
        return b if a is None else self(AddOp, a, b)
