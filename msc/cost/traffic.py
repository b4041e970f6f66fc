"""The bytes that a loop nest moves between levels of memory, from footprints.

The footprint of an access under a loop is the set of lines that all iterations touch. The working set of an iteration
is what all its accesses touch. If a level holds the working set, the next iteration finds there the lines that the two
share, and the loop moves its footprint once. Otherwise each iteration moves its own footprint. If rows map to few sets
of a level, only as many of them stay as it has ways. Lines that several accesses of one iteration to one array share
move once. A call of a kernel finds the lines of the call before, as an iteration does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from msc.cost.access import strides
from msc.cost.footprints import Access, Footprint, IndexSet, footprint_of, lines_of, part_conflicting, values
from msc.dialects.element_types import BYTES
from msc.poly.model import KernelModel
from msc.targets.machine import Level, Machine


@dataclass(frozen=True)
class CountedLoop:
    """A loop around `body` with some `trips`: `dims` has the dimension of each statement that it runs over.

    An `unrolled` loop has several parallel streams, which processors follow. The steps of a reduction may be
    `in_block`, inside a loop `of_blocks`.
    """

    dims: Mapping[int, int]
    trips: int
    body: tuple[Nest, ...]
    unrolled: bool = False
    in_block: bool = False
    of_blocks: bool = False


@dataclass(frozen=True)
class Execution:
    """One execution of a statement."""

    statement: int


Nest: TypeAlias = CountedLoop | Execution


@dataclass(frozen=True)
class Moved:
    """Bytes and lines that come from one level.

    `jumping` lines are each on another page, so nothing fetches them ahead. If rows map to few sets, lines are `lost`
    before they are read, or `lost_stores` before they are written.
    """

    bytes: float = 0.0
    jumping: float = 0.0
    lost: float = 0.0
    lost_stores: float = 0.0

    def __add__(self, other: Moved) -> Moved:
        lost, stores = self.lost + other.lost, self.lost_stores + other.lost_stores
        return Moved(self.bytes + other.bytes, self.jumping + other.jumping, lost, stores)

    def times(self, count: float) -> Moved:
        """The same, `count` times."""
        if count == 1:
            return self
        return Moved(self.bytes * count, self.jumping * count, self.lost * count, self.lost_stores * count)


@dataclass(frozen=True)
class _Moves:
    """The bytes that one execution of a nest touches, by array, and its traffic into each cache, by access."""

    working_set: Mapping[int, int]
    counts: Mapping[int, tuple[int, ...]]
    """How many values each dimension of each statement takes."""
    moved: Mapping[tuple[int, int], tuple[Moved, ...]]
    jumping: frozenset[tuple[int, int]] = frozenset()
    """Accesses that move to another page in each step, which nothing fetches ahead."""

    @property
    def bytes(self) -> int:
        return sum(self.working_set.values())


class Traffic:
    """The traffic of a kernel on a machine, for any nest. Common parts of nests are computed once."""

    def __init__(self, model: KernelModel, machine: Machine) -> None:
        self._model, self._machine = model, machine
        self._numbers: dict[object, int] = {}
        self._moves: list[_Moves] = []
        self._known: dict[tuple[int, int, tuple[int, ...]], Footprint] = {}
        self._boxes: dict[tuple[int, int, tuple[int, ...]], tuple[tuple[int, int], ...]] = {}
        self._grouped: dict[frozenset[int], Sequence[Sequence[tuple[int, int]]]] = {}

    def of(
        self,
        nests: Sequence[Nest],
        calls: bool = True,
        far: Mapping[int, int] | None = None,
        free: Collection[int] = (),
        among: Collection[int] | None = None,
    ) -> tuple[Moved, ...]:
        """The data from the level behind each cache in one of several calls; without `calls`, in the first.

        `far` has, for an array, the bytes of other arrays that are accessed between two calls. Arrays that are `free`
        do not count, nor do statements that are not `among` those given.
        """
        together = _together([self._moves[self._number(nest)] for nest in nests])
        arrays = {key: self._accesses[key[0]][key[1]].array for key in together.moved}
        between = {key: (far or {}).get(array, 0) for key, array in arrays.items()}
        found: list[Moved] = []
        for c, cache in enumerate(self._machine.caches):
            moved = (
                m[c].times(_missing(cache, together.bytes + between[key]) if calls else 1.0)
                for key, m in together.moved.items()
                if arrays[key] not in free and (among is None or key[0] in among)
            )
            found.append(sum(moved, Moved()))
        return tuple(found)

    def _number(self, nest: Nest) -> int:
        """A number that equal nests share: their traffic is cached under it."""
        if isinstance(nest, Execution):
            parts, key = list[int](), (nest.statement, None)
        else:
            parts = [self._number(part) for part in nest.body]
            how = nest.trips, nest.unrolled, nest.in_block, nest.of_blocks
            key = tuple(parts), (how, tuple(nest.dims.items()))
        if key not in self._numbers:
            self._moves.append(self._of(nest, [self._moves[part] for part in parts]))
            self._numbers[key] = len(self._moves) - 1
        return self._numbers[key]

    @cached_property
    def _touching(self) -> dict[int, set[int]]:
        """The statements that touch each array.

        If a loop has all of them, its iterations write to one buffer, as large as an iteration needs.
        """
        found: dict[int, set[int]] = {}
        for number, accesses in enumerate(self._accesses):
            for access in accesses:
                found.setdefault(access.array, set()).add(number)
        return found

    @cached_property
    def _accesses(self) -> list[list[Access]]:
        return [list(self._accesses_of(number)) for number in range(len(self._model.statements))]

    def _accesses_of(self, number: int) -> Iterator[Access]:
        for k, (array, index) in enumerate(self._model.statements[number].accesses()):
            held = self._model.arrays[array]
            yield Access(array, index.results, held.shape, BYTES[held.dtype], k == 0, held.kind == "internal")

    def _of(self, nest: Nest, parts: Sequence[_Moves]) -> _Moves:
        if isinstance(nest, Execution):
            ones = (1,) * len(self._model.statements[nest.statement].extents)
            return self._leaf(nest.statement, ones)
        inside = _together(parts)
        if nest.trips == 1:
            return inside
        return self._around(nest, inside)

    def _leaf(self, number: int, counts: tuple[int, ...]) -> _Moves:
        touched: dict[int, int] = {}
        moved: dict[tuple[int, int], tuple[Moved, ...]] = {}
        shares = self._shares({number: counts})
        for k, access in enumerate(self._accesses[number]):
            found = self._footprint(number, k, counts)
            touched[access.array] = max(touched.get(access.array, 0), found.bytes)
            once = self._moved(access, found, False).times(shares.get((number, k), 1.0))
            moved[number, k] = (once,) * len(self._machine.caches)
        return _Moves(touched, {number: counts}, moved)

    def _around(self, loop: CountedLoop, inside: _Moves) -> _Moves:
        counts = {number: self._after(loop, number, below) for number, below in inside.counts.items()}
        touched: dict[int, int] = {}
        moved: dict[tuple[int, int], tuple[Moved, ...]] = {}
        jumping = inside.jumping | self._jumping(loop, inside)
        missing = [_missing(cache, inside.bytes) for cache in self._machine.caches]
        shares = self._shares(counts)
        for (number, k), before in inside.moved.items():
            access = self._accesses[number][k]
            own = self._footprint(number, k, inside.counts[number])
            if self._is_inside(access, counts.keys()):
                touched[access.array] = max(touched.get(access.array, 0), inside.working_set[access.array])
                moved[number, k] = tuple(
                    b.times(1 + f * (loop.trips - 1)) for b, f in zip(before, missing, strict=True)
                )
                continue
            found = self._footprint(number, k, counts[number])
            touched[access.array] = max(touched.get(access.array, 0), found.bytes)
            share = shares.get((number, k), 1.0)
            once = self._moved(access, found, (number, k) in jumping).times(share)
            lines = own.runs * loop.trips * share
            moved[number, k] = tuple(
                once
                if f <= 0 and own.runs == 1
                else self._again(cache, access, own, once, b.times(loop.trips), f, lines)
                for cache, b, f in zip(self._machine.caches, before, missing, strict=True)
            )
        return _Moves(touched, counts, moved, jumping)

    def _is_inside(self, access: Access, statements: AbstractSet[int]) -> bool:
        """Whether an access is to an array of the kernel's own that no other statements touch."""
        return access.local and self._touching[access.array] <= statements

    def _after(self, loop: CountedLoop, number: int, below: tuple[int, ...]) -> tuple[int, ...]:
        """How many values each dimension of a statement takes in a loop; `below` are those in one iteration."""
        dim, extents = loop.dims.get(number), self._model.statements[number].extents
        return tuple(min(extents[d], n * loop.trips) if d == dim else n for d, n in enumerate(below))

    def _again(
        self, cache: Level, access: Access, rows: Footprint, once: Moved, each: Moved, missing: float, lines: float
    ) -> Moved:
        """The traffic of a loop into a cache that evicts a part of the lines that its iterations share.

        Of rows in few sets that would else stay, `lines` fetched ahead for the next iteration are lost. Longer runs
        are fetched ahead while they are read.
        """
        conflicting = part_conflicting(cache, rows)
        found = _between(once, each, max(missing, conflicting))
        if conflicting <= missing:
            return found
        again = (found.bytes - _between(once, each, missing).bytes) / self._machine.line
        few = rows.distance >= self._machine.page // 4 and rows.bytes // rows.runs <= self._machine.line_pair
        far = (conflicting - missing) * lines if few else 0.0
        if not (far and access.written):
            return replace(found, lost=found.lost + max(0.0, again, far))
        return replace(found, lost_stores=found.lost_stores + far)

    def _jumping(self, loop: CountedLoop, inside: _Moves) -> set[tuple[int, int]]:
        """The accesses that move to another page in each iteration, before they have read a whole one.

        Loops around a block go on in each of its pages: hardware prefetches these if it can follow all streams.
        """
        jumping = {key for key in inside.moved if self._jumps(loop, key, inside)}
        if not (loop.unrolled or loop.in_block):
            return jumping
        streams: dict[int, int] = {}
        for number, k in jumping:
            pages = self._footprint(number, k, self._after(loop, number, inside.counts[number])).pages
            array = self._accesses[number][k].array
            streams[array] = max(streams.get(array, 0), pages)
        return set() if sum(streams.values()) <= self._machine.streams else jumping

    def _jumps(self, loop: CountedLoop, key: tuple[int, int], inside: _Moves) -> bool:
        """Whether an access moves to another page in each iteration, before it has read a whole one."""
        number, k = key
        access, dim = self._accesses[number][k], loop.dims.get(number)
        if access.local or dim is None:
            return False
        below = inside.counts[number]
        apart = strides(self._model, self._model.statements[number], dim)[k] * access.size * below[dim]
        one = self._footprint(number, k, below)
        run = one.bytes // one.runs if loop.of_blocks else one.bytes
        return abs(apart) >= self._machine.page > run

    def _shares(self, counts: Mapping[int, tuple[int, ...]]) -> dict[tuple[int, int], float]:
        """The part of its footprint that each access moves if others of one iteration touch the same array.

        All of them together touch at most the box around them.
        """
        shares: dict[tuple[int, int], float] = {}
        for group in self._groups(frozenset(counts)):
            every = sum(self._footprint(n, k, counts[n]).bytes for n, k in group)
            shares |= dict.fromkeys(group, min(1.0, self._union(group, counts) / every))
        return shares

    def _groups(self, statements: frozenset[int]) -> Sequence[Sequence[tuple[int, int]]]:
        """Groups of several accesses to one array, except to local arrays that only these statements touch."""
        if statements not in self._grouped:
            groups: dict[tuple[int, bool], list[tuple[int, int]]] = {}
            for number in statements:
                for k, access in enumerate(self._accesses[number]):
                    if not self._is_inside(access, statements):
                        groups.setdefault((access.array, access.written), []).append((number, k))
            self._grouped[statements] = [group for group in groups.values() if len(group) > 1]
        return self._grouped[statements]

    def _union(self, group: Sequence[tuple[int, int]], counts: Mapping[int, tuple[int, ...]]) -> int:
        """Bytes of the box around several accesses to one array."""
        boxes = [self._box(n, k, counts[n]) for n, k in group]
        access = self._accesses[group[0][0]][group[0][1]]
        reach = [(min(box[d][0] for box in boxes), max(sum(box[d]) for box in boxes)) for d in range(len(access.shape))]
        box = [IndexSet.interval(end - start) for start, end in reach]
        return lines_of(box, access, self._machine.line, self._machine.page).bytes

    def _box(self, number: int, k: int, counts: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """The first element of an access along each axis of its array, and how many elements it spans."""
        key = number, k, counts
        if key not in self._boxes:
            access = self._accesses[number][k]
            spans = (values(e, counts).span for e in access.index)
            self._boxes[key] = tuple(zip(access.starts, spans, strict=True))
        return self._boxes[key]

    def _moved(self, access: Access, found: Footprint, jumps: bool) -> Moved:
        """The traffic of a footprint: written lines are read first and written back later."""
        factor = 2 if access.written else 1
        return Moved(factor * found.bytes, factor * found.bytes / self._machine.line if jumps else 0.0)

    def _footprint(self, number: int, k: int, counts: tuple[int, ...]) -> Footprint:
        key = number, k, counts
        if key not in self._known:
            self._known[key] = footprint_of(self._accesses[number][k], counts, self._machine.line, self._machine.page)
        return self._known[key]


def _missing(cache: Level, working_set: int) -> float:
    """The part of a working set that a cache evicts before its next use: all if it is twice as large.

    Caches do not strictly evict the least recently used lines.
    """
    return min(1.0, max(0.0, working_set / cache.bytes - 1.0))


def _between(least: Moved, most: Moved, part: float) -> Moved:
    if 0 < part < 1:
        return least.times(1 - part) + most.times(part)
    return least if part <= 0 else most


def _together(parts: Sequence[_Moves]) -> _Moves:
    """The moves of nests that run one after the other."""
    if len(parts) == 1:
        return parts[0]
    touched: dict[int, int] = {}
    counts: dict[int, tuple[int, ...]] = {}
    moved: dict[tuple[int, int], tuple[Moved, ...]] = {}
    jumping = frozenset[tuple[int, int]]()
    for part in parts:
        for array, size in part.working_set.items():
            touched[array] = max(touched.get(array, 0), size)
        counts |= part.counts
        jumping |= part.jumping
        for key, value in part.moved.items():
            before = moved.get(key)
            moved[key] = value if before is None else tuple(a + b for a, b in zip(before, value, strict=True))
    return _Moves(touched, counts, moved, jumping)
