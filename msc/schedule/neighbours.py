"""The plans next to a plan, in which `msc tune` looks for a faster one: one decision is another, all else is the same.

Other register tiles, another order of the shared loops or of a group's own, vectors along another loop, threads on
another loop or none. The list is the same for the same kernel; isl decides which of its plans are legal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from math import ceil
from random import Random

from msc.cost.access import block_size, lanes_of, pieces, vectorisable
from msc.cost.prediction import KernelCost
from msc.poly.dependences import Dependences
from msc.poly.model import KernelModel
from msc.poly.plan import Group, Member, Plan, to_lines
from msc.poly.plan_fit import check_fit
from msc.schedule.schedule_kernels import is_legal
from msc.targets.machine import Machine

_DRAWS = 8
"""How many plans are drawn until one is legal."""

_MAX_VECTORS = 8
"""Vectors in a row of a tile: wider ones only grow the code."""


@dataclass(frozen=True)
class Neighbourhood:
    """What is fixed while a kernel's plans are searched."""

    model: KernelModel
    deps: Dependences
    target: Machine
    threads: int

    def of(self, plan: Plan) -> Iterator[Plan]:
        """The legal plans next to `plan`, each once, without itself: those first that are predicted to be fastest."""
        return self._legal(plan, (candidate for move in self._moves() for candidate in move(plan)))

    def of_each_kind(self, plan: Plan, count: int) -> Iterator[Plan]:
        """As `of`, but of each kind of decision only the first `count`."""
        first = (p for move in self._moves() for p in islice(self._legal(plan, move(plan)), count))
        return self._legal(plan, first)

    def drawn(self, plan: Plan, generator: Random) -> Plan | None:
        """A legal plan next to `plan`, drawn: first the kind of decision, then which; None if none is found soon."""
        moves = [list(move(plan)) for move in self._moves()]
        kinds = [found for found in moves if found]
        drawn = (generator.choice(generator.choice(kinds)) for _ in range(_DRAWS if kinds else 0))
        return next(filter(self._is_legal, drawn), None)

    def _legal(self, plan: Plan, candidates: Iterator[Plan]) -> Iterator[Plan]:
        known = {tuple(to_lines(plan)): plan}
        for candidate in candidates:
            known.setdefault(tuple(to_lines(candidate)), candidate)
        others = list(known.values())[1:]
        return filter(self._is_legal, sorted(others, key=self._predicted))

    def _predicted(self, plan: Plan) -> float:
        return self._cost.prediction(plan, self.threads).cycles

    @cached_property
    def _cost(self) -> KernelCost:
        return KernelCost(self.model, self.target)

    def _is_legal(self, plan: Plan) -> bool:
        try:
            check_fit(self.model, plan)
            return is_legal(self.model, self.deps, plan)
        except ValueError:
            return False

    def _moves(self) -> tuple[Callable[[Plan], Iterator[Plan]], ...]:
        return (
            self._tiles,
            self._vectors,
            self._orders,
            self._inner_orders,
            self._inner_vectors,
            self._parallel,
        )

    def _tiles(self, plan: Plan) -> Iterator[Plan]:
        """Other widths of the vector loop, with other rows of each other loop of the band."""
        vector = _vector(plan.band)
        if vector is None:
            return
        rows = [i for i, m in enumerate(plan.band) if i != vector and m.extent > 1]
        flat = tuple(_without_rest(m) if i == vector else replace(m, tile=1) for i, m in enumerate(plan.band))
        for width in self._widths(plan.band[vector], plan):
            wide = _with(flat, vector, replace(flat[vector], tile=width))
            yield replace(plan, band=wide)
            for row in rows:
                for count in self._row_counts(plan, wide[row], width):
                    tiled = _with(wide, row, replace(wide[row], tile=count))
                    yield replace(plan, band=tiled)
                    yield from self._rests(replace(plan, band=tiled), vector, wide[row])

    def _rests(self, plan: Plan, vector: int, row: Member) -> Iterator[Plan]:
        """What of the last tile fills no vector, along the rows and along each loop of a sum alone."""
        columns = plan.band[vector]
        rest = ((columns.extent - 1) % columns.tile + 1) % lanes_of(self.model, self.target)
        inner = (m for g in plan.groups if len(g.statements) == 1 for m in g.inner if not m.vector)
        for along in (row, *inner) if rest else ():
            yield replace(plan, band=_with(plan.band, vector, replace(columns, rest=rest, along=along.name)))

    def _widths(self, member: Member, plan: Plan) -> list[int]:
        """Blocks that a layout cuts the loop into are kept: vectors of other tiles would lie across them."""
        lanes = lanes_of(self.model, self.target)
        block = max((block_size(self.model.statements[s], d) for s, d in member.dims.items()), default=0)
        if block:
            return [block]
        widths = [lanes * k for k in range(1, _MAX_VECTORS + 1) if lanes * k < member.extent]
        if not plan.sums or member.extent <= lanes * _MAX_VECTORS:
            widths.append(member.extent)
        return widths

    def _row_counts(self, plan: Plan, member: Member, width: int) -> list[int]:
        """As many rows as registers hold; where nothing accumulates, powers of two."""
        lanes, registers = lanes_of(self.model, self.target), self.target.vector_registers
        if not plan.sums:
            return [n for n in (2, 4, 8, 16, 32) if n <= min(member.extent, 2 * lanes)]
        limit = (registers - 2) // pieces(width, lanes)
        return list(range(2, min(member.extent, limit) + 1))

    def _vectors(self, plan: Plan) -> Iterator[Plan]:
        """Vectors along another loop of the band, or along loops of the groups' own."""
        lanes, vector = lanes_of(self.model, self.target), _vector(plan.band)
        scalar = tuple(replace(_without_rest(m), vector=False, tile=1) for m in plan.band)
        loose = tuple(_without_vector(g) for g in plan.groups)
        for i, member in enumerate(scalar):
            if i != vector and self._can_carry(member):
                width = member.extent if member.extent < 2 * lanes else 2 * lanes
                moved = _with(scalar, i, replace(member, vector=True, tile=width))
                yield replace(plan, band=moved, groups=loose)
        if vector is not None:
            inner = tuple(self._with_inner_vector(g, -1) for g in loose)
            yield replace(plan, band=scalar, groups=inner)

    def _can_carry(self, member: Member) -> bool:
        return member.extent > 1 and all(vectorisable(self.model.statements[s]) for s in member.dims)

    def _with_inner_vector(self, group: Group, position: int) -> Group:
        """The group with one of its own loops innermost, as vectors."""
        if not group.inner or not self._can_carry(group.inner[position]):
            return group
        chosen = group.inner[position]
        rest = tuple(m for m in group.inner if m is not chosen)
        return replace(group, inner=(*rest, replace(chosen, vector=True)))

    def _orders(self, plan: Plan) -> Iterator[Plan]:
        """Two neighbours of the band change places; a parallel loop stays outermost."""
        for i in range(len(plan.band) - 1):
            if not plan.band[i].parallel:
                yield replace(plan, band=_swapped(plan.band, i))

    def _inner_orders(self, plan: Plan) -> Iterator[Plan]:
        """Two neighbours of a group's own loops change places; a vector loop stays innermost."""
        for g, group in enumerate(plan.groups):
            for i in range(len(group.inner) - 1):
                if not group.inner[i + 1].vector:
                    yield _with_group(plan, g, replace(group, inner=_swapped(group.inner, i)))

    def _inner_vectors(self, plan: Plan) -> Iterator[Plan]:
        """Vectors along another of a group's own loops, or none."""
        if _vector(plan.band) is not None:
            return
        for g, group in enumerate(plan.groups):
            loose = _without_vector(group)
            for i in range(len(loose.inner)):
                yield _with_group(plan, g, self._with_inner_vector(loose, i))
            yield _with_group(plan, g, loose)

    def _parallel(self, plan: Plan) -> Iterator[Plan]:
        """Threads on another loop of the band, which becomes the outermost, or on none."""
        if self.threads == 1:
            return
        alone = tuple(replace(m, parallel=False) for m in plan.band)
        yield replace(plan, band=alone)
        for i, member in enumerate(alone):
            if ceil(member.extent / member.tile) > 1:
                rest = (m for k, m in enumerate(alone) if k != i)
                yield replace(plan, band=(replace(member, parallel=True), *rest))


def _vector(band: Sequence[Member]) -> int | None:
    return next((i for i, m in enumerate(band) if m.vector), None)


def _with(members: tuple[Member, ...], position: int, member: Member) -> tuple[Member, ...]:
    return (*members[:position], member, *members[position + 1 :])


def _with_group(plan: Plan, position: int, group: Group) -> Plan:
    return replace(plan, groups=(*plan.groups[:position], group, *plan.groups[position + 1 :]))


def _swapped(members: tuple[Member, ...], position: int) -> tuple[Member, ...]:
    before, first, second = members[:position], members[position], members[position + 1]
    return (*before, second, first, *members[position + 2 :])


def _without_rest(member: Member) -> Member:
    return replace(member, rest=0, along="")


def _without_vector(group: Group) -> Group:
    return replace(group, inner=tuple(replace(m, vector=False) for m in group.inner))
