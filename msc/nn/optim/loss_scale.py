"""Scales of losses: f16 gradients of a loss times a large number do not vanish, and are divided by it afterwards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from msc import ops
from msc.frontend.dtypes import float32, int32
from msc.frontend.errors import ApiValueError
from msc.frontend.parameter import Parameter
from msc.nn.cell import Cell
from msc.ops import Tensor

__all__ = ["DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell"]


def all_finite(inputs: Any) -> Tensor:
    """Whether all elements of a tensor, or of tensors, are finite: a tensor of one boolean."""
    tensors = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    result = Tensor(True)
    for tensor in tensors:
        result = ops.logical_and(result, ops.all(ops.isfinite(tensor)))
    return result


def _positive(name: str, key: str, value: Any, *, whole: bool = False) -> float:
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not value > 0:
        what = "an integer" if whole else "a number"
        raise ApiValueError("MSC0882", f"{name}: {key} is {value!r}; it is {what} above 0")
    return value


def _mapped(inputs: Any, factor: Tensor) -> Any:
    if isinstance(inputs, Tensor):
        return inputs * factor.astype(inputs.dtype)
    return type(inputs)(_mapped(item, factor) for item in inputs)


class LossScaler(ABC):
    """`scale` a loss, `unscale` its gradients, and `adjust` the scale by whether these were finite."""

    scale_value: Any

    def scale(self, inputs: Any) -> Any:
        """A loss, or several, times the scale."""
        return _mapped(inputs, _value(self.scale_value))

    def unscale(self, inputs: Any) -> Any:
        """Gradients divided by the scale."""
        return _mapped(inputs, 1 / _value(self.scale_value))

    @abstractmethod
    def adjust(self, grads_finite: Tensor) -> bool:
        """Change the scale for the next step; whether it may have changed."""


def _value(scale: Any) -> Tensor:
    return scale.value() if isinstance(scale, Parameter) else Tensor(scale, float32)


class StaticLossScaler(LossScaler):
    """A scale that stays. Raises MSC0882."""

    def __init__(self, scale_value: float) -> None:
        self.scale_value = float(_positive("StaticLossScaler", "scale_value", scale_value))

    def adjust(self, grads_finite: Tensor) -> bool:
        return False


class DynamicLossScaler(LossScaler):
    """A scale that is divided by `scale_factor` where gradients overflow, and grows by it after `scale_window` steps.

    Its value and its counter are Parameters: in a compiled step they are states. Raises MSC0882.
    """

    def __init__(self, scale_value: float, scale_factor: float, scale_window: int) -> None:
        name = type(self).__name__
        value = float(_positive(name, "scale_value", scale_value))
        self.scale_value = Parameter(Tensor(value, float32), name="scale_value", requires_grad=False)
        self.counter = Parameter(Tensor(0, int32), name="counter", requires_grad=False)
        self.scale_factor = float(_positive(name, "scale_factor", scale_factor))
        self.scale_window = int(_positive(name, "scale_window", scale_window, whole=True))

    def adjust(self, grads_finite: Tensor) -> bool:
        _adjust(self.scale_value, self.counter, grads_finite, self.scale_factor, self.scale_window)
        return True


def _adjust(scale: Parameter, counter: Parameter, finite: Tensor, factor: float, window: int) -> None:
    """Larger after `window` finite steps, unless that is infinite; smaller, but 1 at least, after one that is not."""
    value = scale.value()
    grown = value * factor
    due = ops.logical_and(ops.equal(counter.value(), window - 1), ops.isfinite(grown))
    smaller = ops.maximum(value / factor, Tensor(1.0, float32))
    scale.replace(ops.select(finite, ops.select(due, grown, value), smaller).content)
    counter.replace((((counter.value() + 1) % window) * finite.astype(int32)).content)


class DynamicLossScaleUpdateCell(Cell):
    """The dynamic scale of a step: `update(scale, overflow)` adjusts it, `get_loss_scale()` is the first one."""

    def __init__(self, loss_scale_value: float, scale_factor: float, scale_window: int) -> None:
        super().__init__()
        name = type(self).__name__
        value = float(_positive(name, "loss_scale_value", loss_scale_value))
        self.scale_factor = float(_positive(name, "scale_factor", scale_factor))
        self.scale_window = int(_positive(name, "scale_window", scale_window, whole=True))
        self.loss_scale_value = value
        self.scale = Parameter(Tensor(value, float32), name="loss_scale", requires_grad=False)
        self.counter = Parameter(Tensor(0, int32), name="good_steps", requires_grad=False)

    def get_loss_scale(self) -> float:
        """The scale of the first step."""
        return self.loss_scale_value

    def construct(self, loss_scale: Tensor, overflow: Tensor) -> Tensor:
        _adjust(self.scale, self.counter, ops.logical_not(overflow), self.scale_factor, self.scale_window)
        return overflow


class FixedLossScaleUpdateCell(Cell):
    """A scale of steps that stays; steps whose gradients overflow are left out. Raises MSC0882."""

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        self.loss_scale_value = float(_positive(type(self).__name__, "loss_scale_value", loss_scale_value))
        self.scale = Parameter(Tensor(self.loss_scale_value, float32), name="loss_scale", requires_grad=False)

    def get_loss_scale(self) -> float:
        """The scale."""
        return self.loss_scale_value

    def construct(self, loss_scale: Tensor, overflow: Tensor) -> Tensor:
        return overflow


class LossScaleManager(ABC):
    """Gives a scale, and the cell that updates it within a step."""

    @abstractmethod
    def get_loss_scale(self) -> float:
        """The scale now."""

    @abstractmethod
    def update_loss_scale(self, overflow: Any) -> None:
        """Change the scale by whether gradients overflowed."""

    @abstractmethod
    def get_update_cell(self) -> DynamicLossScaleUpdateCell | FixedLossScaleUpdateCell | None:
        """The cell; None where steps never leave out an update."""


class FixedLossScaleManager(LossScaleManager):
    """One scale; with `drop_overflow_update`, steps whose gradients overflow are left out. Raises MSC0882."""

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        self._scale = float(_positive(type(self).__name__, "loss_scale", loss_scale))
        self._drops = bool(drop_overflow_update)

    def get_loss_scale(self) -> float:
        return self._scale

    def get_drop_overflow_update(self) -> bool:
        """Whether steps whose gradients overflow are left out."""
        return self._drops

    def update_loss_scale(self, overflow: Any) -> None:
        del overflow

    def get_update_cell(self) -> FixedLossScaleUpdateCell | None:
        return FixedLossScaleUpdateCell(self._scale) if self._drops else None


class DynamicLossScaleManager(LossScaleManager):
    """A scale that adapts (`DynamicLossScaler`), from 2 to the 24 on. Raises MSC0882."""

    def __init__(self, init_loss_scale: float = 2.0**24, scale_factor: float = 2, scale_window: int = 2000) -> None:
        name = type(self).__name__
        self._scale = float(_positive(name, "init_loss_scale", init_loss_scale))
        self._factor = float(_positive(name, "scale_factor", scale_factor))
        self._window = int(_positive(name, "scale_window", scale_window, whole=True))
        self._good = 0

    def get_loss_scale(self) -> float:
        return self._scale

    def get_drop_overflow_update(self) -> bool:
        """Always: what overflows is no update."""
        return True

    def update_loss_scale(self, overflow: Any) -> None:
        if bool(overflow):
            self._scale, self._good = max(self._scale / self._factor, 1.0), 0
            return
        self._good += 1
        if self._good >= self._window:
            self._scale, self._good = self._scale * self._factor, 0

    def get_update_cell(self) -> DynamicLossScaleUpdateCell:
        return DynamicLossScaleUpdateCell(self._scale, self._factor, self._window)
