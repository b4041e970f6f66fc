"""From one layout of a tensor to another on the same mesh: the steps that move the fewest bytes, found by search.

A state is a layout on the mesh whose axes are cut into their prime factors, so that a part of an axis can be gathered.
The steps are collectives, each with the bytes that all ranks together receive. What is kept from search to search are
the states and steps of a mesh, which no tensor's size changes: the bytes of each step are a share of the whole tensor.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Literal, TypeAlias

from msc.parallel.layouts import Layout
from msc.parallel.mesh import Mesh
from msc.support.diagnostics import Diagnostic, MscError

Kind: TypeAlias = Literal["all_gather", "all_slice", "all_to_all", "permute", "all_reduce", "reduce_scatter"]

SEARCHED_AXES = 4
"""With more prime factors than these, only axes that the two layouts use differently are moved."""


@dataclass(frozen=True)
class Transfer:
    """A collective of the ranks along `axes`: from `before` to `after`, which are layouts on one mesh.

    `dimension` is the one that is gathered, cut or scattered; `target` the one that an all_to_all cuts.
    """

    kind: Kind
    axes: tuple[str, ...]
    before: Layout
    after: Layout
    dimension: int = 0
    target: int = 0

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The ranks that take part together."""
        return self.before.mesh.groups(self.axes)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Of a permute: which rank sends its part to which, one for each receiver that has another part."""
        mesh = self.before.mesh
        have, need = places(self.before), places(self.after)
        sources: dict[tuple[int, ...], list[int]] = {}
        for rank in range(mesh.size):
            sources.setdefault(have[rank], []).append(rank)
        taken = dict.fromkeys(range(mesh.size), 0)
        pairs: list[tuple[int, int]] = []
        for rank in range(mesh.size):
            if have[rank] == need[rank]:
                taken[rank] += 1
        for rank in (rank for rank in range(mesh.size) if have[rank] != need[rank]):
            source = min(sources[need[rank]], key=lambda other: taken[other])
            taken[source] += 1
            pairs.append((source, rank))
        return tuple(pairs)

    @property
    def share(self) -> Fraction:
        """The bytes that all ranks together receive, as a share of those of the whole tensor."""
        mesh = self.before.mesh
        part, ranks = Fraction(1, math.prod(self.before.strategy)), mesh.size_of(*self.axes)
        match self.kind:
            case "all_slice":
                return Fraction(0)
            case "all_gather":
                return part * (ranks - 1) * mesh.size
            case "permute":
                return part * _moved(self.before, self.after)
            case "all_reduce":
                return part * 2 * (ranks - 1) / ranks * mesh.size
            case "all_to_all" | "reduce_scatter":
                return part * (ranks - 1) / ranks * mesh.size

    def passed(self, shape: Sequence[int]) -> int:
        """Elements that one rank passes to MPI: the count in the call that sends; 0 for a cut, which is no call."""
        if self.kind == "all_slice":
            return 0
        count = math.prod(self.before.local_shape(shape))
        return count // self.before.mesh.size_of(*self.axes) if self.kind in ("all_to_all", "reduce_scatter") else count


def redistribute(source: Layout, target: Layout, shape: Sequence[int] | None = None) -> tuple[Transfer, ...]:
    """The steps from one layout to another: of all sequences those with the fewest bytes, then the fewest steps.

    With a `shape`, no step cuts a dimension that does not divide. Raises MSC1102 for layouts of different meshes or
    ranks, for a target that is partial over an axis over which the source is not, and where the sizes admit no way.
    """
    if source.mesh != target.mesh or len(source.cuts) != len(target.cuts):
        raise _impossible(source, target, "they are layouts of different meshes or numbers of dimensions")
    if target.partial and (set(target.partial) - set(source.partial) or source.reduction != target.reduction):
        raise _impossible(source, target, "a value that is not partial is not made so")
    fine = _fine_mesh(source.mesh)
    start, goal = _refined(source, fine), _refined(target, fine)
    movable = fine.names if len(fine.axes) <= SEARCHED_AXES else _used_differently(start, goal)
    steps = _search(start, goal, movable, tuple(shape) if shape is not None else None)
    if steps is None:
        raise _impossible(source, target, f"no sequence of cuts divides a tensor {'x'.join(map(str, shape or ()))}")
    return _joined(steps)


def received_bytes(steps: Sequence[Transfer], whole: int) -> int:
    """The bytes that all ranks together receive in steps on a tensor of `whole` bytes."""
    return math.ceil(sum((step.share for step in steps), Fraction(0)) * whole)


def gathering_share(source: Layout, target: Layout) -> Fraction:
    """The share of gathering everything and then slicing, which is what there is to beat."""
    if source.cuts == target.cuts and source.partial == target.partial:
        return Fraction(0)
    mesh = source.mesh
    parts = math.prod(source.strategy)
    reduced = mesh.size_of(*source.partial)
    return Fraction(parts - 1, parts) * mesh.size + Fraction(2 * (reduced - 1), reduced * parts) * mesh.size


def least_share(source: Layout, target: Layout) -> Fraction:
    """What no method falls below: on each rank what it needs of the tensor and has not, as a share of the whole."""
    counts = [math.lcm(a, b) for a, b in zip(source.strategy, target.strategy, strict=True)]
    missing = 0
    for rank in range(source.mesh.size):
        have, need = source.slices(counts, rank), target.slices(counts, rank)
        common = math.prod(max(0, min(a.stop, b.stop) - max(a.start, b.start)) for a, b in zip(have, need, strict=True))
        missing += math.prod(part.stop - part.start for part in need) - common
    return Fraction(missing, math.prod(counts))


@cache
def places(layout: Layout) -> tuple[tuple[int, ...], ...]:
    """For each rank which part of each dimension it has."""
    mesh = layout.mesh
    return tuple(tuple(mesh.position(rank, cut) for cut in layout.cuts) for rank in range(mesh.size))


def _moved(before: Layout, after: Layout) -> int:
    """How many ranks have another part."""
    return sum(a != b for a, b in zip(places(before), places(after), strict=True))


@cache
def _fine_mesh(mesh: Mesh) -> Mesh:
    """The mesh with an axis for each prime factor of each axis."""
    axes: list[tuple[str, int]] = []
    for name, size in mesh.axes:
        factors = _prime_factors(size)
        axes += [(name, size)] if len(factors) < 2 else [(f"{name}'{i}", factor) for i, factor in enumerate(factors)]
    return Mesh(tuple(axes))


def _prime_factors(number: int) -> list[int]:
    factors: list[int] = []
    divisor = 2
    while number > 1:
        if number % divisor:
            divisor += 1
        else:
            factors.append(divisor)
            number //= divisor
    return factors


def _refined(layout: Layout, fine: Mesh) -> Layout:
    def parts(axes: tuple[str, ...]) -> tuple[str, ...]:
        found = [[name for name in fine.names if name == axis or name.startswith(f"{axis}'")] for axis in axes]
        return tuple(name for names in found for name in names if fine.size_of(name) > 1)

    return Layout(fine, tuple(map(parts, layout.cuts)), parts(layout.partial), layout.reduction)


def _used_differently(source: Layout, target: Layout) -> tuple[str, ...]:
    """The axes behind those with which a dimension's cuts begin alike in both."""
    moved: set[str] = set(source.partial)
    for a, b in zip(source.cuts, target.cuts, strict=True):
        same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        moved |= {*a[same:], *b[same:]}
    return tuple(name for name in source.mesh.names if name in moved)


def _search(
    start: Layout, goal: Layout, movable: tuple[str, ...], shape: tuple[int, ...] | None
) -> list[Transfer] | None:
    """Dijkstra's shortest path, where the bytes of a step are its length."""
    order = itertools.count()
    waiting: list[tuple[Fraction, int, int, Layout]] = [(Fraction(0), 0, next(order), start)]
    reached: dict[Layout, tuple[Fraction, int]] = {start: (Fraction(0), 0)}
    came: dict[Layout, Transfer] = {}
    done: set[Layout] = set()
    while waiting:
        share, length, _, layout = heapq.heappop(waiting)
        if layout == goal:
            return _path(start, goal, came)
        if layout in done:
            continue
        done.add(layout)
        for step in _steps(layout, goal.partial, movable):
            if shape is not None and not step.after.fits(shape):
                continue
            cost = (share + step.share, length + 1)
            if step.after not in reached or cost < reached[step.after]:
                reached[step.after] = cost
                came[step.after] = step
                heapq.heappush(waiting, (*cost, next(order), step.after))
    return None


def _path(start: Layout, goal: Layout, came: dict[Layout, Transfer]) -> list[Transfer]:
    steps: list[Transfer] = []
    while goal != start:
        steps.append(came[goal])
        goal = steps[-1].before
    return steps[::-1]


@cache
def _steps(layout: Layout, partial: tuple[str, ...], movable: tuple[str, ...]) -> tuple[Transfer, ...]:
    return tuple(_all_steps(layout, partial, movable))


def _all_steps(layout: Layout, partial: tuple[str, ...], movable: tuple[str, ...]) -> Iterator[Transfer]:
    """Every step from a layout that leaves it partial over `partial` and moves no other axis than those `movable`."""
    dimensions = range(len(layout.cuts))
    reducible = [axis for axis in layout.partial if axis not in partial]
    for count in range(1, len(reducible) + 1):
        for axes in itertools.combinations(reducible, count):
            left = tuple(other for other in layout.partial if other not in axes)
            yield Transfer("all_reduce", axes, layout, Layout(layout.mesh, layout.cuts, left, layout.reduction))
    for axis in reducible:
        left = tuple(other for other in layout.partial if other != axis)
        for d in dimensions:
            after = Layout(layout.mesh, _changed(layout, {d: (*layout.cuts[d], axis)}), left, layout.reduction)
            yield Transfer("reduce_scatter", (axis,), layout, after, d)
    free = [axis for axis in movable if axis not in layout.axes + layout.partial and layout.mesh.size_of(axis) > 1]
    for d in dimensions:
        for axis in free:
            yield Transfer("all_slice", (axis,), layout, _with(layout, {d: (*layout.cuts[d], axis)}), d)
        if not layout.cuts[d] or layout.cuts[d][-1] not in movable:
            continue
        *rest, axis = layout.cuts[d]
        yield Transfer("all_gather", (axis,), layout, _with(layout, {d: tuple(rest)}), d)
        for first in range(len(layout.cuts[d])):
            kept, axes = layout.cuts[d][:first], layout.cuts[d][first:]
            for e in (e for e in dimensions if e != d and all(axis in movable for axis in axes)):
                after = _with(layout, {d: kept, e: layout.cuts[e] + axes})
                yield Transfer("all_to_all", axes, layout, after, d, e)
    for after in _rearranged(layout, (*[a for a in layout.axes if a in movable], *free)):
        yield Transfer("permute", layout.mesh.names, layout, after)


def _rearranged(layout: Layout, axes: tuple[str, ...]) -> Iterator[Layout]:
    """The layouts with the same sizes of parts, whose movable axes lie otherwise."""
    slots = [(d, i) for d, cut in enumerate(layout.cuts) for i, axis in enumerate(cut) if axis in axes]
    sizes = [layout.mesh.size_of(layout.cuts[d][i]) for d, i in slots]
    if len(slots) > SEARCHED_AXES:
        return
    for chosen in itertools.permutations(axes, len(slots)):
        if [layout.mesh.size_of(axis) for axis in chosen] == sizes:
            cuts = list(map(list, layout.cuts))
            for (d, i), axis in zip(slots, chosen, strict=True):
                cuts[d][i] = axis
            after = Layout(layout.mesh, tuple(map(tuple, cuts)), layout.partial, layout.reduction)
            if after != layout:
                yield after


def _changed(layout: Layout, changes: dict[int, tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    return tuple(changes.get(d, cut) for d, cut in enumerate(layout.cuts))


def _with(layout: Layout, changes: dict[int, tuple[str, ...]]) -> Layout:
    return Layout(layout.mesh, _changed(layout, changes), layout.partial, layout.reduction)


def _joined(steps: Sequence[Transfer]) -> tuple[Transfer, ...]:
    """Steps of one kind on one dimension, one after the other, as one."""
    joined: list[Transfer] = []
    for step in steps:
        last = joined[-1] if joined else None
        if last and (last.kind, last.dimension) == (step.kind, step.dimension):
            match step.kind:
                case "all_gather":
                    axes = step.axes + last.axes
                case "all_slice" | "all_reduce" | "reduce_scatter":
                    axes = last.axes + step.axes
                case "all_to_all" | "permute":
                    axes = None
            if axes is not None:
                joined[-1] = Transfer(step.kind, axes, last.before, step.after, step.dimension)
                continue
        joined.append(step)
    return tuple(joined)


def _impossible(source: Layout, target: Layout, why: str) -> MscError:
    help = "mark the operators so that the layouts have such a sequence, or leave the tensor whole"
    return MscError(Diagnostic("MSC1102", f"{source} on {source.mesh} does not become {target}: {why}", help=help))
