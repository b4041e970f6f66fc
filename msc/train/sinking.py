"""Many steps in one compiled call: a loop over stacked batches, whose parameters and states stay in the graph."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from msc.dataset.values import Row
from msc.frontend import dtypes
from msc.frontend.jit import Jitted
from msc.frontend.modes import in_graph_mode
from msc.frontend.parallel import is_partitioned
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell
from msc.nn.optim.scaled_steps import TrainOneStepWithLossScaleCell
from msc.nn.optim.steps import TrainOneStepCell
from msc.support.diagnostics import MscError
from msc.train.step_loop import StepLoop

Converter: TypeAlias = Callable[[Row], tuple[Tensor, ...]]
"""From a batch to the tensors that a step takes."""

MOST_STEPS = 64
MOST_BYTES = 256 << 20
"""What one call is given at most: batches, and bytes of them, which are in memory at once."""
_FEWEST = 8
"""Steps for which a loop is compiled rather than calls made."""


class Sinks:
    """Runs the steps of a sink: compiled loops in graph mode where the step fits in one, single calls otherwise."""

    def __init__(self, step: Cell) -> None:
        self._step = step
        self.loop: Jitted[..., Any] | None = None
        """The compiled loop; None for a step that no loop can hold."""
        if _gives_a_loss(step):
            loop: Any = StepLoop(step)
            self.loop = Jitted(loop, fullgraph=True)

    def run(self, feed: Iterator[Row], steps: int, tensors: Converter) -> tuple[tuple[Tensor, ...], Any]:
        """Take `steps` batches: the inputs and the outputs of the last step."""
        inputs: tuple[Tensor, ...] = ()
        outputs: Any = None
        while steps:
            group = [next(feed)]
            loops = self.loop is not None and in_graph_mode() and not is_partitioned()
            size = chunk(steps, sum(value.nbytes for value in group[0])) if loops else 1
            group += [next(feed) for _ in range(size - 1)]
            alike = all([v.shape for v in row] == [v.shape for v in group[0]] for row in group)
            outputs = self._looped(group, tensors) if size > 1 and alike else None
            if outputs is not None:
                inputs = tensors(group[-1])
            for row in group if outputs is None else ():
                inputs = tensors(row)
                outputs = self._step(*inputs)
            steps -= size
        return inputs, outputs

    def _looped(self, group: list[Row], tensors: Converter) -> Tensor | None:
        """The loss of the last step of a loop; None if no loop can hold the step."""
        assert self.loop is not None
        stacks = tuple(np.stack(values) for values in zip(*group, strict=True))
        try:
            return self.loop(Tensor(len(group), dtypes.int64), *tensors(stacks))
        except MscError as error:
            if error.diagnostics[0].code != "MSC0610":  # of an index that is outside, single calls show in which step
                self.loop = None  # single calls show why, if they cannot be compiled either
            return None


def _gives_a_loss(step: Cell) -> bool:
    """Whether a step is one of the library's that gives the loss alone: what else others do, no loop may leave out."""
    if isinstance(step, TrainOneStepCell):
        return not step.return_grad
    return isinstance(step, TrainOneStepWithLossScaleCell) and not step.returns_state


def chunk(steps: int, size: int) -> int:
    """How many of `steps` steps with batches of `size` bytes a call makes: a divisor, so that one loop is compiled."""
    most = max(min(MOST_STEPS, MOST_BYTES // max(size, 1), steps), 1)
    best = max(n for n in range(1, most + 1) if steps % n == 0)
    if best >= _FEWEST:
        return best
    return most if most >= _FEWEST else 1
