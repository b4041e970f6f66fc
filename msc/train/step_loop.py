"""The loop of a sink's steps. It is read as a user's code is, so that `while` becomes a loop of the graph."""

from __future__ import annotations

from collections.abc import Sequence

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell


class StepLoop(Cell):
    """The steps of stacked batches [steps, batch, ...]: the loss of the last one."""

    def __init__(self, step: Cell) -> None:
        super().__init__(auto_prefix=False)
        self.step = step

    def construct(self, steps: Tensor, *stacks: Tensor) -> Tensor:
        i, loss = Tensor(0, dtypes.int64), Tensor(0.0, dtypes.float32)
        while i < steps:
            loss = self._loss(i, stacks)
            i = i + 1
        return loss

    def _loss(self, i: Tensor, stacks: Sequence[Tensor]) -> Tensor:
        loss: Tensor = self.step(*[apply("extract_slice", stack, i) for stack in stacks])
        return (loss if loss.ndim == 0 else loss.mean()).astype(dtypes.float32)
