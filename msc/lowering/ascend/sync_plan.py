"""Which flags a sequence of work needs: from what each step reads and writes on which pipe. Plain data, no IR.

A step is one instruction, or a whole loop. A dependence leads from a pipe at one step to another pipe at a later step
of the same iteration (forward), or at the same or an earlier step of the next one (backward, in a loop).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from msc.targets.davinci_isa import Pipe


@dataclass(frozen=True)
class PipeAccess:
    """A pipe touches `place`, a memory region by name."""

    pipe: Pipe
    place: Hashable
    writes: bool


@dataclass(frozen=True, order=True)
class Dependence:
    """`source` ends step `first` before `target` starts step `last`; `backward`: that of the next iteration."""

    source: Pipe
    target: Pipe
    first: int
    last: int
    backward: bool


Step = frozenset[PipeAccess]


def dependences(steps: Sequence[Step], loop: bool) -> set[Dependence]:
    """Every dependence between two pipes; the backward ones where the steps are a loop's body."""
    found: set[Dependence] = set()
    for i, first in enumerate(steps):
        for j, second in enumerate(steps):
            backward = j <= i
            if backward and not loop:
                continue
            found |= {Dependence(a.pipe, b.pipe, i, j, backward) for a, b in _conflicts(first, second)}
    return found


def _conflicts(first: Step, second: Step) -> Iterable[tuple[PipeAccess, PipeAccess]]:
    for a in first:
        for b in second:
            if a.pipe is not b.pipe and a.place == b.place and (a.writes or b.writes):
                yield a, b


def orders(kept: Iterable[Dependence], wanted: Dependence) -> bool:
    """Whether flags for `kept` order the ends of `wanted`: by a chain of flags, each set after the wait before it."""
    start: tuple[Pipe, int, int] = (wanted.source, wanted.first, 0)
    goal = int(wanted.backward)
    reached: set[tuple[Pipe, int, int]] = {start}
    open_: list[tuple[Pipe, int, int]] = [start]
    while open_:
        pipe, step, iteration = open_.pop()
        for d in kept:
            if d.source is not pipe:
                continue
            for later in range(iteration, goal + 1):
                if later == iteration and d.first < step:
                    continue
                arrival = (d.target, d.last, later + int(d.backward))
                if arrival[2] > goal or arrival in reached:
                    continue
                if d.target is wanted.target and (arrival[2], d.last) <= (goal, wanted.last):
                    return True
                reached.add(arrival)
                open_.append(arrival)
    return False


def reduced(wanted: set[Dependence]) -> list[Dependence]:
    """The dependences that need flags: none that the others order. Far ones go first, so that near flags serve them."""
    kept = sorted(wanted, key=lambda d: (_length(d), d))
    for d in sorted(wanted, key=lambda d: (-_length(d), d)):
        others = [other for other in kept if other != d]
        if orders(others, d):
            kept = others
    return kept


def _length(d: Dependence) -> int:
    return d.last - d.first + (1000 if d.backward else 0)


def protected(kept: list[Dependence], loop: bool) -> list[Dependence]:
    """With backward flags where a forward one could be set again before it was waited for."""
    made = list(kept)
    for d in kept:
        answer = Dependence(d.target, d.source, d.last, d.first, True)
        if loop and not d.backward and not orders(made, answer):
            made.append(answer)
    return made
