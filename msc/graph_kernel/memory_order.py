"""Orders of steps by the peak of live bytes. Plain Python.

Finding the best order is NP-hard. Two moves suffice for training steps. A step sinks to the first later step that
needs it, if its result is larger than the operands that it would keep alive. A step rises to the last step that it
needs, if the operands that die with it are larger than its result. (The moves are those of instruction scheduling for
register pressure: Touati, "Register Saturation in Instruction Level Parallelism", 2005.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise


@dataclass(frozen=True)
class BufferUse:
    """What a step makes and reads, by number of the buffer; the steps that stand before it in any order.

    A fixed step keeps its place among the other fixed ones.
    """

    makes: tuple[int, ...]
    reads: tuple[int, ...]
    after: tuple[int, ...]
    fixed: bool = False


@dataclass(frozen=True)
class KernelSequence:
    """Steps in an order in which they may run, and the bytes of the buffers."""

    steps: Sequence[BufferUse]
    bytes: Sequence[int]

    def best_order(self) -> list[int]:
        """Numbers of the steps in the order with the lowest peak that the moves find; unchanged if none is lower."""
        start = list(range(len(self.steps)))
        sunk = self._moved(start, sink=True)
        orders = [start, sunk]
        for _ in range(_ROUNDS):
            orders += [self._moved(orders[-1], sink=False)]
            orders += [self._moved(orders[-1], sink=True)]
        return min(orders, key=self.peak)

    def peak(self, order: Sequence[int]) -> int:
        """The most bytes that are live at a step."""
        return max(self.live(order), default=0)

    def live(self, order: Sequence[int]) -> list[int]:
        """The bytes that are live at each place."""
        last = {buffer: place for place, step in enumerate(order) for buffer in self._touched(step)}
        dying = [0] * len(order)
        for buffer, place in last.items():
            dying[place] += self.bytes[buffer]
        found: list[int] = []
        live = 0
        for place, step in enumerate(order):
            live += sum(self.bytes[buffer] for buffer in self.steps[step].makes)
            found.append(live)
            live -= dying[place]
        return found

    def _touched(self, step: int) -> Iterator[int]:
        yield from self.steps[step].makes
        yield from self.steps[step].reads

    @cached_property
    def _before(self) -> Sequence[Sequence[int]]:
        """The steps behind each step that need it."""
        needed: list[list[int]] = [[] for _ in self.steps]
        for number, step in enumerate(self.steps):
            for other in step.after:
                needed[other].append(number)
        return needed

    @cached_property
    def _readers(self) -> Sequence[Sequence[int]]:
        readers: list[list[int]] = [[] for _ in self.bytes]
        for number in range(len(self.steps)):
            for buffer in set(self._touched(number)):
                readers[buffer].append(number)
        return readers

    def _moved(self, order: Sequence[int], *, sink: bool) -> list[int]:
        """The order after one walk: from the end on steps sink, or from the beginning on they rise."""
        line = _Line(order)
        for number in reversed(order) if sink else order:
            if not self.steps[number].fixed and not (sink and self._is_only_returned(number)):
                neighbours = self._before[number] if sink else self.steps[number].after
                if neighbours and self._pays(number, line, sink=sink):
                    (line.sink if sink else line.rise)(number, neighbours)
        return line.order()

    def _is_only_returned(self, number: int) -> bool:
        """Whether a step makes something that no step reads."""
        makes = self.steps[number].makes
        return bool(makes) and all(len(self._readers[buffer]) == 1 for buffer in makes)

    def _pays(self, number: int, line: _Line, *, sink: bool) -> bool:
        """Whether what a step makes is larger than what dies with it, or smaller; a view goes along for nothing."""
        step = self.steps[number]
        made = sum(self.bytes[buffer] for buffer in step.makes)
        place = line.place[number]
        last = (b for b in set(step.reads) if all(line.place[r] <= place for r in self._readers[b]))
        dying = sum(self.bytes[buffer] for buffer in last)
        return made >= dying if sink else made < dying or not step.makes


class _Line:
    """An order that steps are moved in: a number for the place of each, between those of its neighbours."""

    def __init__(self, order: Sequence[int]) -> None:
        self.place = {number: float(k) for k, number in enumerate(order)}
        ends = [None, *order, None]
        self._next = dict(pairwise(ends))
        self._previous = dict(pairwise(reversed(ends)))

    def order(self) -> list[int]:
        """The numbers from first to last."""
        return sorted(self.place, key=self.place.__getitem__)

    def sink(self, number: int, before: Sequence[int]) -> None:
        """Put a step in front of the first of others."""
        first = min(before, key=self.place.__getitem__)
        if self._previous[first] != number:
            self._unlink(number)
            self._link(self._previous[first], number, first)

    def rise(self, number: int, after: Sequence[int]) -> None:
        """Put a step behind the last of others."""
        last = max(after, key=self.place.__getitem__)
        if self._next[last] != number:
            self._unlink(number)
            self._link(last, number, self._next[last])

    def _unlink(self, number: int) -> None:
        previous, following = self._previous[number], self._next[number]
        self._next[previous], self._previous[following] = following, previous

    def _link(self, previous: int | None, number: int, following: int | None) -> None:
        self._next[previous] = self._previous[following] = number
        self._previous[number], self._next[number] = previous, following
        low = self.place[previous] if previous is not None else self._end(following, -1.0)
        high = self.place[following] if following is not None else self._end(previous, 1.0)
        self.place[number] = (low + high) / 2
        if self.place[number] in (low, high):
            self._renumber()

    def _end(self, neighbour: int | None, distance: float) -> float:
        return (0.0 if neighbour is None else self.place[neighbour]) + distance

    def _renumber(self) -> None:
        number, place = self._next[None], 0.0
        while number is not None:
            self.place[number], place = place, place + 1
            number = self._next[number]


_ROUNDS = 2
"""How often steps rise and sink again: what one move frees lets another one pay."""
