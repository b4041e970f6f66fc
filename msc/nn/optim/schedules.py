"""Learning rates that depend on the step, as cells: in graph mode they are scalars of the compiled step."""

from __future__ import annotations

import math
from typing import Any

from msc import ops
from msc.frontend import dtypes
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell

__all__ = [
    "CosineDecayLR", "ExponentialDecayLR", "InverseDecayLR", "LearningRateSchedule", "NaturalExpDecayLR",
    "PolynomialDecayLR", "WarmUpLR",
]  # fmt: skip


class LearningRateSchedule(Cell):
    """Base: `construct(global_step)` gives the rate of a step, a Float32."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, global_step: Tensor) -> Tensor:
        raise ApiTypeError("MSC0858", f"{type(self).__name__} does not say which rate a step has")

    def _positive(self, **values: Any) -> None:
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise ApiValueError("MSC0858", f"{type(self).__name__}: {name} is {value!r}; it must be above 0")


def _steps(global_step: Tensor, decay_steps: int = 1) -> Tensor:
    return ops.cast(global_step, dtypes.float32) / float(decay_steps)


class _Decay(LearningRateSchedule):
    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__()
        self._positive(learning_rate=learning_rate, decay_rate=decay_rate, decay_steps=decay_steps)
        self.learning_rate, self.decay_rate = float(learning_rate), float(decay_rate)
        self.decay_steps, self.is_stair = decay_steps, is_stair

    def exponent(self, global_step: Tensor) -> Tensor:
        """The step over the decay steps, whole if the rate falls in stairs."""
        found = _steps(global_step, self.decay_steps)
        return ops.floor(found) if self.is_stair else found


class ExponentialDecayLR(_Decay):
    """learning_rate * decay_rate ^ (step / decay_steps)."""

    def construct(self, global_step: Tensor) -> Tensor:
        return ops.exp(self.exponent(global_step) * math.log(self.decay_rate)) * self.learning_rate


class NaturalExpDecayLR(_Decay):
    """learning_rate * e ^ (-decay_rate * step); in stairs, of the step at which the stair begins."""

    def construct(self, global_step: Tensor) -> Tensor:
        stairs = self.exponent(global_step) * float(self.decay_steps)
        return ops.exp((stairs if self.is_stair else _steps(global_step)) * -self.decay_rate) * self.learning_rate


class InverseDecayLR(_Decay):
    """learning_rate / (1 + decay_rate * step / decay_steps)."""

    def construct(self, global_step: Tensor) -> Tensor:
        return self.learning_rate / (self.exponent(global_step) * self.decay_rate + 1.0)


class CosineDecayLR(LearningRateSchedule):
    """From max_lr to min_lr along half a cosine of `decay_steps`, and min_lr from there on."""

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        super().__init__()
        self._positive(max_lr=max_lr, decay_steps=decay_steps)
        if not 0 <= min_lr < max_lr:
            raise ApiValueError("MSC0858", f"CosineDecayLR: min_lr is {min_lr}; it must be from 0 on, below max_lr")
        self.min_lr, self.max_lr, self.decay_steps = float(min_lr), float(max_lr), decay_steps

    def construct(self, global_step: Tensor) -> Tensor:
        done = ops.minimum(_steps(global_step, self.decay_steps), Tensor(1.0, dtypes.float32))
        return (ops.cos(done * math.pi) + 1.0) * (0.5 * (self.max_lr - self.min_lr)) + self.min_lr


class PolynomialDecayLR(LearningRateSchedule):
    """(learning_rate - end) * (1 - step / decay_steps) ^ power + end; with update_decay_steps it starts again."""

    def __init__(
        self,
        learning_rate: float,
        end_learning_rate: float,
        decay_steps: int,
        power: float,
        update_decay_steps: bool = False,
    ) -> None:
        super().__init__()
        self._positive(learning_rate=learning_rate, decay_steps=decay_steps, power=power)
        self.start, self.end = float(learning_rate), float(end_learning_rate)
        self.decay_steps, self.power, self.update_decay_steps = decay_steps, float(power), update_decay_steps

    def construct(self, global_step: Tensor) -> Tensor:
        done = _steps(global_step, self.decay_steps)
        if self.update_decay_steps:
            done = done / ops.maximum(ops.ceil(done), Tensor(1.0, dtypes.float32))
        else:
            done = ops.minimum(done, Tensor(1.0, dtypes.float32))
        return ops.pow(1.0 - done, self.power) * (self.start - self.end) + self.end


class WarmUpLR(LearningRateSchedule):
    """learning_rate * min(step, warmup_steps) / warmup_steps."""

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__()
        self._positive(learning_rate=learning_rate, warmup_steps=warmup_steps)
        self.learning_rate, self.warmup_steps = float(learning_rate), warmup_steps

    def construct(self, global_step: Tensor) -> Tensor:
        done = ops.minimum(_steps(global_step, self.warmup_steps), Tensor(1.0, dtypes.float32))
        return done * self.learning_rate
