"""Areas: the sets of operations that clustering grows; each becomes one kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise

from xdsl.ir import Block, Operation, OpResult, SSAValue

from msc.analysis.patterns import AreaPattern, Pattern, pattern_of
from msc.dialects.gk import CallKernelOp
from msc.dialects.ms.base import BasicOp
from msc.dialects.ms.shapes import Shape, shape_of
from msc.dialects.ms.structure import ConstantOp
from msc.ir.typed import tensor_type

MOST_OPERATIONS = 200
"""How many operations one kernel may have: scheduling it takes longer than in proportion to them."""


@dataclass(eq=False)
class Area:
    """Operations in the order of the block, their dominant pattern, and the operation that it comes from.

    `first` and `last` are the places in the block of the first and the last operation.
    """

    ops: list[Operation]
    pattern: AreaPattern
    anchor: Operation
    fusible: bool
    first: int
    last: int
    reasons: list[str] = field(default_factory=list[str])

    @property
    def kind(self) -> Pattern:
        return self.pattern.pattern

    @property
    def domain(self) -> Shape:
        return self.pattern.domain

    @property
    def is_elementwise(self) -> bool:
        """Whether there is nothing in it but elementwise operations and broadcasts."""
        return self.kind in (Pattern.ELEMENTWISE, Pattern.BROADCAST)


def result_shapes(area: Area) -> Iterator[Shape]:
    """The shapes of what the operations of an area compute."""
    for op in area.ops:
        for result in op.results:
            yield shape_of(tensor_type(result))


def used_values(op: Operation) -> Sequence[SSAValue]:
    """The values that an operation uses, those used in its regions included."""
    return [value for inner in op.walk() for value in inner.operands] if op.regions else op.operands


@dataclass
class _Side:
    """Areas that are `met` on the way from one area to another: those placed behind `end` lead there no more."""

    neighbours: Callable[[Area], Iterable[Area]]
    met: set[Area]
    place: Callable[[Area], int]
    end: int
    waiting: list[tuple[int, Area]] = field(default_factory=list[tuple[int, Area]])

    def meet(self, areas: Iterable[Area]) -> None:
        for area in areas:
            if area not in self.met and self.place(area) > self.end:
                self.met.add(area)
                heappush(self.waiting, (self.place(area), area))

    def reaches(self, goal: Area) -> bool:
        """Whether the goal is next to the area that is looked at now; its neighbours wait from now on."""
        found = self.neighbours(heappop(self.waiting)[1])
        self.meet(found)
        return goal in found


class AreaGraph:
    """The areas of one block, and which depends on which: no merge makes a cycle (`has_detour`).

    Constants belong to no area: each kernel takes copies of them. Calls with effects, as ranks' messages, depend on one
    another in their order.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self._positions = {op: i for i, op in enumerate(block.ops)}
        self._area_of: dict[Operation, Area] = {}
        self._areas: dict[Area, None] = {}
        self._producers: dict[Area, list[Area]] = {}
        self._users: dict[Area, list[Area]] = {}
        for op in block.ops:
            if not isinstance(op, ConstantOp):
                self._add(op)
        effects: list[Operation] = [op for op in block.ops if isinstance(op, CallKernelOp) and not op.call.pure]
        self._before = {op: before for before, op in pairwise(effects)}
        self._behind = dict(pairwise(effects))

    def _add(self, op: Operation) -> None:
        found = pattern_of(op)
        fusible = isinstance(op, BasicOp) and found.pattern != Pattern.RESHAPE and op.is_basic
        area = Area([op], found, op, fusible, self._positions[op], self._positions[op])
        self._area_of[op] = area
        self._areas[area] = None

    def areas(self) -> list[Area]:
        """All areas, by their first operation."""
        return sorted(self._areas, key=lambda area: area.first)

    def area_of(self, op: Operation) -> Area:
        """The area that an operation belongs to now."""
        return self._area_of[op]

    def owner(self, value: SSAValue) -> Area | None:
        """The area that computes a value, if any does."""
        return self._area_of.get(value.op) if isinstance(value, OpResult) else None

    def producers(self, area: Area) -> list[Area]:
        """The other areas whose values an area uses, in the order of use."""
        found = self._producers.get(area)
        if found is None:
            owners = [self.owner(value) for op in area.ops for value in used_values(op)]
            owners += [self._area_of[self._before[op]] for op in area.ops if op in self._before]
            found = [a for a in dict.fromkeys(owners) if a is not None and a is not area]
            self._producers[area] = found
        return found

    def users(self, area: Area) -> list[Area]:
        """The other areas that use values of an area."""
        found = self._users.get(area)
        if found is None:
            found = [user for user in self._users_of(area.ops) if user is not area]
            self._users[area] = found
        return found

    def _users_of(self, ops: Sequence[Operation]) -> list[Area]:
        uses = (use.operation for op in ops for result in op.results for use in result.uses)
        users = [self.block.find_ancestor_op_in_block(op) for op in uses]
        users += [self._behind[op] for op in ops if op in self._behind]
        return list(dict.fromkeys(self._area_of[op] for op in users if op is not None))

    def _forget_neighbours(self, area: Area) -> None:
        """An area is about to change: its lists and those that name it are made anew when they are asked for."""
        for other in self.producers(area):
            self._users.pop(other, None)
        for other in self.users(area):
            self._producers.pop(other, None)
        del self._producers[area], self._users[area]

    def has_detour(self, producer: Area, consumer: Area) -> bool:
        """Whether the consumer also depends on the producer through a third area: merging would make a cycle.

        What depends on the producer is looked through from the end on, and what the consumer depends on from the start
        on, in turns: most detours are found at once, and there is none where either side ends.
        """
        after = _Side(self.users, {consumer}, lambda area: -area.first, -consumer.last)
        before = _Side(self.producers, {producer}, lambda area: area.last, producer.first)
        after.meet(self.users(producer))
        before.meet(self.producers(consumer))
        while after.waiting and before.waiting:
            if after.reaches(consumer) or before.reaches(producer):
                return True
        return False

    def merge(self, producer: Area, consumer: Area, pattern: AreaPattern, anchor: Operation) -> Area:
        """Replace two areas by one of a pattern."""
        self._forget_neighbours(producer)
        self._forget_neighbours(consumer)
        ops = sorted((*producer.ops, *consumer.ops), key=self._positions.__getitem__)
        first, last = min(producer.first, consumer.first), max(producer.last, consumer.last)
        merged = Area(ops, pattern, anchor, True, first, last, [*producer.reasons, *consumer.reasons])
        for op in ops:
            self._area_of[op] = merged
        del self._areas[producer], self._areas[consumer]
        self._areas[merged] = None
        return merged
