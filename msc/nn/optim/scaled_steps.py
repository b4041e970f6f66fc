"""A step of training with a scaled loss, which leaves out updates whose gradients overflow."""

from __future__ import annotations

from typing import Any

from msc import ops
from msc.frontend.errors import ApiTypeError
from msc.frontend.parallel import shares_gradients
from msc.frontend.parameter import Parameter, ParameterTuple
from msc.frontend.transforms.api import GradOperation, value_and_grad
from msc.nn.cell import Cell
from msc.nn.optim.loss_scale import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell, all_finite
from msc.nn.optim.optimizer import Optimizer
from msc.nn.optim.steps import TrainOneStepCell, taken_together, with_loss
from msc.ops import Tensor

__all__ = ["TrainOneStepWithLossScaleCell"]


class TrainOneStepWithLossScaleCell(Cell):
    """One step: loss, gradient of the loss times the scale, its overflow, the update unless it overflows.

    `scale_sense` is the cell that updates the scale, or a tensor or number, the scale. Gives the loss, whether the
    gradients overflowed, and the scale; the loss alone unless `returns_state`. Raises MSC0882.
    """

    MEMBERS = TrainOneStepCell.MEMBERS

    def __init__(self, network: Cell, optimizer: Optimizer, scale_sense: Any, *, returns_state: bool = True) -> None:
        super().__init__(auto_prefix=False)
        if isinstance(scale_sense, Tensor | int | float) and not isinstance(scale_sense, bool):
            scale_sense = FixedLossScaleUpdateCell(float(scale_sense))
        if not isinstance(scale_sense, DynamicLossScaleUpdateCell | FixedLossScaleUpdateCell):
            what = type(scale_sense).__name__
            raise ApiTypeError("MSC0882", f"scale_sense is a {what}; it is a cell that updates a scale, or a number")
        self.network, self.optimizer, self.loss_scaling_manager = network, optimizer, scale_sense
        self.weights: ParameterTuple = optimizer.parameters
        self.returns_state = returns_state
        self._differentiated = value_and_grad(network, None, optimizer.parameters, sens_param=True)
        self.grad = GradOperation(get_by_list=True, sens_param=True)
        self.reducer_flag = shares_gradients()

    # What subclasses with a `construct` of their own call.

    @property
    def scale_sense(self) -> Parameter:
        """The scale."""
        return self.loss_scaling_manager.scale

    def set_sense_scale(self, sens: Tensor | float) -> None:
        """Set the scale."""
        self.scale_sense.set_data(sens)

    def grad_reducer(self, gradients: Any) -> Any:
        """The gradients of all ranks taken together."""
        return taken_together(gradients)

    def start_overflow_check(self, pre_cond: Any, compute_input: Any) -> tuple[Any, Any]:
        """What `get_overflow_status` takes, and the input: overflow is seen in gradients, and nothing needs a start."""
        return pre_cond, compute_input

    def get_overflow_status(self, status: Any, compute_output: Any) -> Tensor:
        """Whether a number in some tensors is infinite or none."""
        del status
        return ops.logical_not(all_finite(compute_output))

    def process_loss_scale(self, overflow: Tensor) -> Tensor:
        """Adjust the scale by whether gradients overflowed, and give that back."""
        return self.loss_scaling_manager(self.scale_sense.value(), overflow)

    def construct(self, *inputs: Any) -> Any:
        scale = self.loss_scaling_manager.scale.value()
        loss, gradients = with_loss(*self._differentiated(*inputs, scale))
        gradients = [g * (1 / scale).astype(g.dtype) for g in gradients]
        finite = all_finite(gradients)
        overflow = ops.logical_not(finite)
        states = list(self.optimizer.get_parameters())
        before = [state.value() for state in states]
        self.optimizer(tuple(gradients))
        for state, value in zip(states, before, strict=True):
            state.replace(ops.select(finite, state.value(), value).content)
        self.loss_scaling_manager(scale, overflow)
        return (loss, overflow, scale) if self.returns_state else loss
