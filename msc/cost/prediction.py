"""How many cycles a kernel will take with a plan: one model of cost for decisions and reports.

By it loops of a reduction are ordered, vectors along two loops compared, and loops shared among threads. `msc tune`
tries first what it predicts to be fastest, and `msc explain` shows it beside measured times. Register tiles have a
model of their own (`tiling`). Instructions are those of all statements (`statement_cost`); what a kernel reads and
writes has to come from where all of it fits. Nothing is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod

from msc.cost.access import lanes_of, pieces
from msc.cost.instructions import StatementCost, Tile
from msc.cost.plan_nest import nests_of
from msc.cost.traffic import Moved, Traffic
from msc.dialects.element_types import BYTES
from msc.poly.model import KernelModel
from msc.poly.plan import Group, Member, Plan
from msc.targets.machine import Machine


@dataclass(frozen=True)
class Prediction:
    """Cycles of one call, resource by resource: instructions, and what each level behind the first cache gives.

    `levels` are by name. `exposed` is the share of a resource that the busiest one does not hide.
    """

    instruction_cycles: float
    levels: tuple[tuple[str, float], ...]
    exposed: float

    @property
    def memory_cycles(self) -> float:
        """Of the level that takes longest."""
        return max((cycles for _, cycles in self.levels), default=0.0)

    @property
    def cycles(self) -> float:
        """Resources work at the same time: the busiest counts whole, the others in part."""
        parts = (self.instruction_cycles, *(cycles for _, cycles in self.levels))
        return (1 - self.exposed) * max(parts) + self.exposed * sum(parts)


class KernelCost:
    """What a call of one kernel costs on a machine, for any plan.

    `fresh` are the arrays of which a loop around gives it another part in each iteration.
    """

    def __init__(self, model: KernelModel, target: Machine, fresh: frozenset[int] = frozenset()) -> None:
        self.model, self.target, self.lanes, self.fresh = model, target, lanes_of(model, target), fresh
        self.statements = tuple(StatementCost(model, s, self.lanes, target) for s in model.statements)
        self._traffic = Traffic(model, target)

    def moved(self, plan: Plan) -> tuple[Moved, ...]:
        """What comes from the level behind each cache in one call, on one core."""
        return self._traffic.of(nests_of(plan))

    def prediction(self, plan: Plan, threads: int, moved: Sequence[Moved] | None = None) -> Prediction:
        """The cycles of one call; `threads` of 0 are all cores. `moved` is what `moved` says, if that is known."""
        share, points, stored = _share(plan, threads or self.target.cores), plan.points, self._stored(plan)
        inside = sum(self._group(group, points, plan.band, stored) for group in plan.groups)
        before = sum(self._group(group, (), (), stored) for group in plan.first)
        instructions = self.target.synchronisation.call + before + inside * share
        return Prediction(instructions, tuple(self._levels(moved or self.moved(plan), share)), self.target.code.exposed)

    def _levels(self, moved: Sequence[Moved], share: float) -> Iterator[tuple[str, float]]:
        """Cycles that each level behind the first cache needs for what comes from it."""
        for level, found in zip(self.target.levels[1:], moved, strict=True):
            streamed = found.bytes / level.bytes_per_cycle
            waited = found.jumping * level.latency / self.target.ports.misses
            yield level.name, (streamed + waited) * share

    def _group(self, group: Group, points: Sequence[Member], band: Sequence[Member], stored: frozenset[int]) -> float:
        plain = not any(self.model.statements[n].reduced for n in group.statements)
        tiles = (_tile(n, group, points, band if plain else ()) for n in group.statements)
        return sum(self.statements[n].cycles(t, stored) for n, t in zip(group.statements, tiles, strict=True))

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


def _tile(number: int, group: Group, points: Iterable[Member], band: Sequence[Member]) -> Tile:
    """How a plan cuts a statement: by the point loops of the band, or by a vector loop of the group's own."""
    cut = [m for m in points if number in m.dims]
    below = [m for m in group.inner if number in m.dims]
    rows = tuple((m.dims[number], m.tile) for m in cut if not m.vector)
    inner = tuple(m.dims[number] for m in below)
    single = (m for m in ((*band, *below) if band else ()) if number in m.dims and m.tile == 1 and not m.vector)
    loops = tuple(m.dims[number] for m in single)
    for member, width in (*((m, m.tile) for m in cut), *((m, m.extent) for m in below)):
        if member.vector:
            named = (m.dims[number] for m in (*cut, *below) if m.name == member.along)
            across = next(named, rows[-1][0] if rows else None)
            rest = member.rest if across is not None else 0
            return Tile(rows, member.dims[number], width, inner, rest, across, loops)
    return Tile(rows, None, 1, inner, loops=loops)
