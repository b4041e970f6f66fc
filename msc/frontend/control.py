"""Loops of library code: each iteration is run, or written into the graph that is being captured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msc.frontend.dispatch import apply, apply_all
from msc.frontend.tensor import Tensor

Step: TypeAlias = Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], tuple[Sequence[Tensor], Sequence[Tensor]]]
"""From the state and the entries of a step to the state after it and what is collected."""


def scan(
    step: Step, state: Sequence[Tensor], inputs: Sequence[Tensor]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Run `step` along the first axis of the inputs: the last state, and what the steps give, stacked."""
    state, count = tuple(state), inputs[0].shape[0]
    parts = [apply_all("split", x, axis=0, sizes=(1,) * count) for x in inputs]
    collected: list[Sequence[Tensor]] = []
    for i in range(count):
        after, given = step(state, tuple(apply("squeeze", x[i], axis=(0,)) for x in parts))
        state = tuple(after)
        collected.append(given)
    return state, tuple(apply("stack", *column, axis=0) for column in zip(*collected, strict=True))
