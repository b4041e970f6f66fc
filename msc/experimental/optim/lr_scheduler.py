"""Schedules that set the rates of an optimiser of `msc.experimental.optim`, at each `step()`."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnsupportedDunderAll=false

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from msc.frontend import dtypes
from msc.frontend.boundary import elsewhere
from msc.frontend.tensor import Tensor

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "StepLR",
]


class LRScheduler:
    """Base: `factor(step, base, now)` says the rate of a group after so many steps."""

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self.optimizer, self.last_epoch = optimizer, last_epoch
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self._last = list(self.base_lrs)
        self.step()

    def rate(self, number: int, base: float, now: float) -> float:
        """The rate of group `number` at `last_epoch`, from the first one and the one before."""
        del number, base
        return now

    def get_last_lr(self) -> list[Tensor]:
        """The rates."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self) -> None:
        """Go on by a step."""
        self.last_epoch += 1
        self._last = [
            self.rate(i, base, now) for i, (base, now) in enumerate(zip(self.base_lrs, self._last, strict=True))
        ]
        for group, value in zip(self.optimizer.param_groups, self._last, strict=True):
            group["lr"].set_data(Tensor(value, dtypes.float32))


class StepLR(LRScheduler):
    """Times gamma every `step_size` steps."""

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, number: int, base: float, now: float) -> float:
        return base * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Times gamma at each milestone."""

    def __init__(self, optimizer: Any, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, number: int, base: float, now: float) -> float:
        return base * self.gamma ** bisect_right(self.milestones, self.last_epoch)


class ExponentialLR(LRScheduler):
    """Times gamma at each step."""

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, number: int, base: float, now: float) -> float:
        return base * self.gamma**self.last_epoch


class LambdaLR(LRScheduler):
    """Times what a function of the step gives."""

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.functions: Sequence[Callable[[int], float]] = (
            lr_lambda if isinstance(lr_lambda, list | tuple) else [lr_lambda] * len(optimizer.param_groups)
        )
        super().__init__(optimizer, last_epoch)

    def rate(self, number: int, base: float, now: float) -> float:
        return base * self.functions[number](self.last_epoch)


class MultiplicativeLR(LambdaLR):
    """The rate before times what a function of the step gives."""

    def rate(self, number: int, base: float, now: float) -> float:
        return now * self.functions[number](self.last_epoch) if self.last_epoch > 0 else base


class ConstantLR(LRScheduler):
    """Times a factor for so many steps."""

    def __init__(self, optimizer: Any, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, number: int, base: float, now: float) -> float:
        return base * (self.factor if self.last_epoch < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """Times a factor that goes from one to another in so many steps."""

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, number: int, base: float, now: float) -> float:
        share = min(self.last_epoch, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * share)


class PolynomialLR(LRScheduler):
    """Falls to 0 in so many steps, as a power."""

    def __init__(self, optimizer: Any, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def rate(self, number: int, base: float, now: float) -> float:
        return base * (1 - min(self.last_epoch, self.total_iters) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """Between the first rate and `eta_min` along a cosine of half the period `T_max` (Loshchilov and Hutter, 2017)."""

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, number: int, base: float, now: float) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """The same, which begins anew after `T_0` steps, and then after `T_mult` times as many."""

    def __init__(self, optimizer: Any, T_0: int, T_mult: int = 1, eta_min: float = 0, last_epoch: int = -1) -> None:
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, number: int, base: float, now: float) -> float:
        at, period = self.last_epoch, self.T_0
        while at >= period:
            at, period = at - period, period * self.T_mult
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * at / period)) / 2


class ReduceLROnPlateau:
    """Times a factor when a measure has not become better for `patience` steps: `step(measure)`."""

    def __init__(
        self, optimizer: Any, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: float = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        self.optimizer, self.factor, self.patience, self.cooldown = optimizer, factor, patience, cooldown
        self.mode, self.threshold, self.threshold_mode, self.min_lr, self.eps = (
            mode,
            threshold,
            threshold_mode,
            min_lr,
            eps,
        )
        self.best = math.inf if mode == "min" else -math.inf
        self.bad, self.cooling = 0, 0

    def _is_better(self, value: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if math.isinf(self.best):
            return True
        margin = self.threshold * (abs(self.best) if self.threshold_mode == "rel" else 1)
        return sign * (value - self.best) > margin

    def step(self, metrics: Any) -> None:
        """Tell of a measure."""
        value = float(metrics)
        better = self._is_better(value)
        self.best, self.bad = (value, 0) if better else (self.best, self.bad + 1)
        if self.cooling:
            self.cooling, self.bad = self.cooling - 1, 0
        if self.bad > self.patience:
            self.cooling, self.bad = self.cooldown, 0
            for group in self.optimizer.param_groups:
                old = float(group["lr"])
                new = max(old * self.factor, self.min_lr)
                if old - new > self.eps:
                    group["lr"].set_data(Tensor(new, dtypes.float32))

    def in_cooldown(self) -> bool:
        """Whether measures do not count yet."""
        return self.cooling > 0


def __getattr__(name: str) -> Any:
    return elsewhere("msc.experimental.optim.lr_scheduler", name, __all__)
