"""How many cycles a kernel will take with a plan: one model of cost for decisions and reports.

By it loops of a reduction are ordered, vectors along two loops compared, and loops shared among threads. `msc tune`
tries first what it predicts to be fastest, and `msc explain` shows it beside measured times. Register tiles have a
model of their own (`tiling`). Instructions are those of all statements (`statement_cost`); what a kernel reads and
writes has to come from where all of it fits. Nothing is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod

from msc.dialects.element_types import BYTES
from msc.poly.model import KernelModel
from msc.poly.plan import Group, Member, Plan
from msc.schedule.access import lanes_of, pieces
from msc.schedule.statement_cost import StatementCost, Tile
from msc.targets.machine import Machine

_CALL = 20
_BYTES_PER_CYCLE = (64.0, 32.0, 10.0, 5.0)
"""What one core sustains from its first, second and third cache and from memory."""
_OVERLAP = 0.2
"""The part of the shorter of instructions and traffic that the longer does not hide."""


@dataclass(frozen=True)
class Prediction:
    """Cycles of one call: of its instructions, of its memory traffic, and of both together."""

    instruction_cycles: float
    memory_cycles: float

    @property
    def cycles(self) -> float:
        """The two overlap, so the larger counts whole, the smaller in part."""
        return max(self.instruction_cycles, self.memory_cycles) + _OVERLAP * min(
            self.instruction_cycles, self.memory_cycles
        )


class KernelCost:
    """What a call of one kernel costs on a target, for any plan.

    `fresh` are the arrays of which a loop around gives it another part in each iteration.
    """

    def __init__(self, model: KernelModel, target: Machine, fresh: frozenset[int] = frozenset()) -> None:
        self.model, self.target, self.lanes, self.fresh = model, target, lanes_of(model, target), fresh
        self.statements = tuple(StatementCost(model, s, self.lanes, target) for s in model.statements)

    def prediction(self, plan: Plan, threads: int) -> Prediction:
        """The cycles of one call; `threads` of 0 are all cores."""
        share, points, stored = _share(plan, threads or self.target.cores), plan.points, self._stored(plan)
        inside = sum(self._group(group, points, stored) for group in plan.groups)
        before = sum(self._group(group, (), stored) for group in plan.first)
        return Prediction(_CALL + before + inside * share, self._memory_cycles * share)

    @cached_property
    def _memory_cycles(self) -> float:
        moved = traffic(self.model)
        sizes = (self.target.l1, self.target.l2, self.target.l3)
        level = next((i for i, size in enumerate(sizes) if moved <= size), len(sizes))
        return moved / _BYTES_PER_CYCLE[level]

    def _group(self, group: Group, points: Sequence[Member], stored: frozenset[int]) -> float:
        return sum(self.statements[n].cycles(_tile(n, group, points), stored) for n in group.statements)

    def _stored(self, plan: Plan) -> frozenset[int]:
        """Internal arrays that pass from one group to another and that registers do not hold."""
        internal = (k for k, array in enumerate(self.model.arrays) if array.kind == "internal")
        return frozenset(k for k in internal if self._registers(k, plan) > self.target.vector_registers)

    def _registers(self, array: int, plan: Plan) -> int:
        """Vectors of an array that wait for another group."""
        groups = [g for g in plan.groups if any(array in self._touched[n] for n in g.statements)]
        writers = [(g, n) for g in groups for n in g.statements if self.model.statements[n].target == array]
        return max((self._waiting(n, g, plan) for g, n in writers), default=0) if len(groups) > 1 else 0

    def _waiting(self, number: int, group: Group, plan: Plan) -> int:
        """Vectors that all iterations of a group write through one statement."""
        statement = self.model.statements[number]
        tiles = {m.dims[number]: m for m in plan.band if number in m.dims}
        sizes = {d: tiles[d].tile if d in tiles else statement.extents[d] for d in self._written[number]}
        lanes = {m.dims[number] for m in (*plan.band, *group.inner) if m.vector and number in m.dims}
        return prod(pieces(size, self.lanes) if d in lanes else size for d, size in sizes.items())

    @cached_property
    def _touched(self) -> list[set[int]]:
        return [{array for array, _ in s.accesses()} for s in self.model.statements]

    @cached_property
    def _written(self) -> list[set[int]]:
        return [s.write.used_dims() for s in self.model.statements]


def predict(model: KernelModel, plan: Plan, target: Machine, threads: int) -> Prediction:
    """The cycles of one call of a kernel; `threads` of 0 are all cores."""
    return KernelCost(model, target).prediction(plan, threads)


def traffic(model: KernelModel) -> int:
    """Bytes of inputs and outputs."""
    return sum(prod(a.shape) * BYTES[a.dtype] for a in model.arrays if a.kind != "internal")


def _share(plan: Plan, threads: int) -> float:
    """The part of the iterations that the busiest thread runs."""
    shared = next((m for m in plan.band if m.parallel), None)
    if shared is None:
        return 1.0
    trips = ceil(shared.extent / shared.tile)
    return ceil(trips / threads) / trips


def _tile(number: int, group: Group, points: Iterable[Member]) -> Tile:
    """How a plan cuts a statement: by the point loops of the band, or by a vector loop of the group's own."""
    cut = [m for m in points if number in m.dims]
    below = [m for m in group.inner if number in m.dims]
    rows = tuple((m.dims[number], m.tile) for m in cut if not m.vector)
    inner = tuple(m.dims[number] for m in below)
    for member, width in (*((m, m.tile) for m in cut), *((m, m.extent) for m in below)):
        if member.vector:
            named = (m.dims[number] for m in (*cut, *below) if m.name == member.along)
            across = next(named, rows[-1][0] if rows else None)
            rest = member.rest if across is not None else 0
            return Tile(rows, member.dims[number], width, inner, rest, across)
    return Tile(rows, None, 1, inner)
