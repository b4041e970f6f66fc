"""Loops of library code: run in Python at once, or written as loops of the graph that is being captured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from msc.frontend import dtypes
from msc.frontend.capture import INSTALLED
from msc.frontend.dispatch import apply, apply_all
from msc.frontend.tensor import Tensor

Body: TypeAlias = Callable[[Tensor, tuple[Tensor, ...]], Sequence[Tensor]]
"""From the number of the iteration, an Int64 of rank 0, and what is carried to what is carried to the next one."""


@runtime_checkable
class LoopBuilder(Protocol):
    """A builder that can write loops; with one that cannot, loops are unrolled."""

    def for_loop(self, count: int, body: Body, carried: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Write a loop of `count` iterations; what is carried keeps its element types and shapes."""
        ...


Step: TypeAlias = Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], tuple[Sequence[Tensor], Sequence[Tensor]]]
"""From the state and the entries of a step to the state after it and what is collected."""


def scan(
    step: Step, state: Sequence[Tensor], inputs: Sequence[Tensor], outputs: Sequence[Tensor]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Run `step` along the first axis of the inputs: the last state, and what the steps give, stacked.

    `outputs` has a tensor of the element type and shape of each thing that a step gives.
    """
    count = inputs[0].shape[0]
    builder = INSTALLED.builder
    if builder is None or not isinstance(builder, LoopBuilder):
        return _unrolled(step, tuple(state), inputs, count, len(outputs))
    tables = [Tensor.of(np.zeros((count, *like.shape), like.dtype.numpy)) for like in outputs]

    def body(i: Tensor, carried: tuple[Tensor, ...]) -> Sequence[Tensor]:
        before, collected = carried[: len(state)], carried[len(state) :]
        after, given = step(before, tuple(apply("extract_slice", x, i) for x in inputs))
        return (*after, *(apply("insert_slice", t, i, y) for t, y in zip(collected, given, strict=True)))

    results = builder.for_loop(count, body, (*state, *tables))
    return results[: len(state)], results[len(state) :]


def _unrolled(
    step: Step, state: tuple[Tensor, ...], inputs: Sequence[Tensor], count: int, results: int
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    parts = [apply_all("split", x, axis=0, sizes=(1,) * count) for x in inputs]
    collected: list[Sequence[Tensor]] = []
    for i in range(count):
        after, given = step(state, tuple(apply("squeeze", x[i], axis=(0,)) for x in parts))
        state = tuple(after)
        collected.append(given)
    return state, tuple(apply("stack", *(given[k] for given in collected), axis=0) for k in range(results))


def for_loop(count: int, body: Body, carried: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """What is carried after `count` iterations of `body`."""
    builder, state = INSTALLED.builder, tuple(carried)
    if builder is not None and isinstance(builder, LoopBuilder):
        return builder.for_loop(count, body, state)
    for i in range(count):
        state = tuple(body(Tensor(i, dtypes.int64), state))
    return state
