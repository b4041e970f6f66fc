"""Learning rates of all steps as lists, which an optimiser takes for `learning_rate`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msc.frontend.errors import ApiValueError

__all__ = [
    "cosine_decay_lr", "exponential_decay_lr", "inverse_decay_lr", "natural_exp_decay_lr", "piecewise_constant_lr",
    "polynomial_decay_lr", "warmup_lr",
]  # fmt: skip


def _check(name: str, **values: float) -> None:
    for key, value in values.items():
        if isinstance(value, bool) or not value > 0:
            raise ApiValueError("MSC0858", f"{name}: {key} is {value!r}; it must be above 0")


def _by_epoch(total_step: int, step_per_epoch: int, rate: Callable[[int], float]) -> list[float]:
    return [rate(step // step_per_epoch) for step in range(total_step)]


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """The first rate up to the first milestone, the second up to the second, and so on."""
    if len(milestone) != len(learning_rates) or list(milestone) != sorted(set(milestone)) or min(milestone) < 1:
        message = "milestone rises, from 1 on, with a learning rate for each entry"
        raise ApiValueError("MSC0858", f"piecewise_constant_lr: {message}")
    rates: list[float] = []
    for end, rate in zip(milestone, learning_rates, strict=True):
        rates += [float(rate)] * (end - len(rates))
    return rates


def exponential_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """learning_rate * decay_rate ^ (epoch / decay_epoch), the exponent whole if `is_stair`."""
    _check("exponential_decay_lr", learning_rate=learning_rate, decay_rate=decay_rate, decay_epoch=decay_epoch)

    def rate(epoch: int) -> float:
        return learning_rate * decay_rate ** (epoch // decay_epoch if is_stair else epoch / decay_epoch)

    return _by_epoch(total_step, step_per_epoch, rate)


def natural_exp_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """learning_rate * e ^ (-decay_rate * epoch), the epoch a multiple of decay_epoch if `is_stair`."""
    _check("natural_exp_decay_lr", learning_rate=learning_rate, decay_rate=decay_rate, decay_epoch=decay_epoch)

    def rate(epoch: int) -> float:
        return learning_rate * math.exp(-decay_rate * (epoch // decay_epoch * decay_epoch if is_stair else epoch))

    return _by_epoch(total_step, step_per_epoch, rate)


def inverse_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """learning_rate / (1 + decay_rate * epoch / decay_epoch), the quotient whole if `is_stair`."""
    _check("inverse_decay_lr", learning_rate=learning_rate, decay_rate=decay_rate, decay_epoch=decay_epoch)

    def rate(epoch: int) -> float:
        return learning_rate / (1 + decay_rate * (epoch // decay_epoch if is_stair else epoch / decay_epoch))

    return _by_epoch(total_step, step_per_epoch, rate)


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    """From max_lr to min_lr along half a cosine of decay_epoch epochs."""
    _check("cosine_decay_lr", max_lr=max_lr, decay_epoch=decay_epoch)

    def rate(epoch: int) -> float:
        done = min(epoch, decay_epoch) / decay_epoch
        return min_lr + 0.5 * (max_lr - min_lr) * (1 + math.cos(math.pi * done))

    return _by_epoch(total_step, step_per_epoch, rate)


def polynomial_decay_lr(
    learning_rate: float,
    end_learning_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    power: float,
    update_decay_epoch: bool = False,
) -> list[float]:
    """(learning_rate - end) * (1 - epoch / decay_epoch) ^ power + end; with update_decay_epoch it begins again."""
    _check("polynomial_decay_lr", learning_rate=learning_rate, decay_epoch=decay_epoch, power=power)

    def rate(epoch: int) -> float:
        length = decay_epoch * max(math.ceil(epoch / decay_epoch), 1) if update_decay_epoch else decay_epoch
        done = min(epoch, length) / length
        return (learning_rate - end_learning_rate) * (1 - done) ** power + end_learning_rate

    return _by_epoch(total_step, step_per_epoch, rate)


def warmup_lr(learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int) -> list[float]:
    """learning_rate * min(epoch, warmup_epoch) / warmup_epoch."""
    _check("warmup_lr", learning_rate=learning_rate, warmup_epoch=warmup_epoch)
    return _by_epoch(total_step, step_per_epoch, lambda epoch: learning_rate * min(epoch, warmup_epoch) / warmup_epoch)
