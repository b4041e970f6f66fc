"""Calls that several ranks compute together: whose graph is that of all, of which each rank compiles its part.

In the modes `semi_auto_parallel` and `auto_parallel` a call in graph mode is read as one rank would run it: on the rows
of all ranks, with whole parameters. What is made of it (`PARTITIONER`) cuts tensors, with collectives where they meet.
Between calls a parameter that is cut holds the rank's part alone (`Scattered`); whoever reads its elements gathers
them, on all ranks together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from msc.dialects.ranks import current_ranks
from msc.frontend.dtypes import of_numpy
from msc.frontend.modes import Wishes
from msc.frontend.parallel import get_auto_parallel_context, is_partitioned, ranks_of_a_stage
from msc.frontend.tensor import Placeholder, Tensor
from msc.support.arrays import Array

if TYPE_CHECKING:
    from msc.frontend.execution import Program
    from msc.frontend.parameter import Parameter
    from msc.frontend.reader.capture import Arguments, Captured

PARTITIONER = ("msc.driver.artifacts.partitioned_calls", "rank_program")
"""What makes one rank's program of a captured graph; it stands above the front end, as the compiler does."""

Slices = tuple[slice, ...]


class Scattered(Placeholder):
    """What a parameter holds of which each rank has a part: the own part, and where those of all ranks lie.

    A rank of a stage that does not compute with the parameter has none, and no place.
    """

    __slots__ = ("part", "places")

    def __init__(self, shape: tuple[int, ...], part: Array, places: Sequence[Slices | None]) -> None:
        super().__init__(of_numpy(part.dtype), shape)
        self.part, self.places = part, tuple(places)

    def gathered(self) -> Array:
        """All of it, on every rank: a collective. Raises MSC1104."""
        ranks = current_ranks()
        whole = np.empty(self.shape, self.part.dtype)
        for place, part in zip(self.places, ranks.exchange(range(ranks.size), "a parameter", self.part), strict=True):
            if place is not None:
                whole[place] = part
        return whole


def gather(parameters: Iterable[Parameter]) -> None:
    """Have every rank hold the whole of parameters: a collective, of those that ranks share."""
    for parameter in parameters:
        if isinstance(parameter.held, Scattered):
            parameter.content = parameter.held.gathered()


def widened(arguments: Arguments) -> Arguments:
    """The arguments of all ranks in place of those of one, if ranks compute together: more rows, of any value."""
    rows = _rows(arguments)
    if not is_partitioned() or rows is None or get_auto_parallel_context("full_batch"):
        return arguments
    count = ranks_of_a_stage()

    def leaf(value: Any) -> Any:
        if not _is_example(value, rows):
            return value
        return Tensor.of(np.broadcast_to(value.content[:1], (rows * count, *value.shape[1:])))

    return replace(arguments, leaves=[leaf(value) for value in arguments.leaves])


def _rows(arguments: Arguments) -> int | None:
    """How many examples a call is given: the rows of its first tensor."""
    return next((leaf.shape[0] for leaf in arguments.leaves if isinstance(leaf, Tensor) and leaf.ndim), None)


def _is_example(value: Any, rows: int) -> bool:
    return isinstance(value, Tensor) and value.ndim > 0 and value.shape[0] == rows > 0


@dataclass(frozen=True)
class SharedCall:
    """A graph of all ranks, and which of its arguments are examples."""

    captured: Captured
    examples: frozenset[int]


def rank_program(captured: Captured, arguments: Arguments, wishes: Wishes) -> Program:
    """One rank's program of a call. Raises what partitioning and compiling raise."""
    rows = _rows(arguments) or 0
    inputs = captured.graph.inputs
    examples = {
        k for k in range(min(len(arguments.leaves), len(inputs)))
        if inputs[k].parameter is None and _is_example(arguments.leaves[k], rows)
    }  # fmt: skip
    readers = list(captured.inputs)
    for k, given in enumerate(inputs):
        if given.parameter is not None:
            readers[k] = lambda _, p=given.parameter: p.held
    captured.inputs = readers
    return _partitioner()(SharedCall(captured, frozenset(examples)), wishes)


class _Partitioner(Protocol):
    def __call__(self, call: SharedCall, wishes: Wishes) -> Program: ...


@cache
def _partitioner() -> _Partitioner:
    module, name = PARTITIONER
    return getattr(import_module(module), name)
