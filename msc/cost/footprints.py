"""The cache lines that an access touches, by how many values each dimension of its statement takes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod
from operator import itemgetter

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from msc.targets.machine import Level


@dataclass(frozen=True)
class Access:
    """An access: an index for each axis of an array of `shape`, whose elements have `size` bytes.

    Equal accesses touch equally many lines, whatever their arrays.
    """

    array: int = field(compare=False)
    index: tuple[AffineExpr, ...]
    shape: tuple[int, ...]
    size: int
    written: bool = field(compare=False)
    local: bool

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.index, self.shape, self.size, self.local))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first element along each axis."""
        zeros = (0,) * (1 + max((d for e in self.index for d in e.used_dims()), default=-1))
        return tuple(e.eval(zeros, ()) for e in self.index)

    @cached_property
    def dims(self) -> Collection[int] | None:
        """The dimensions that it moves along; None if unknown."""
        parts = [part for e in self.index for part in e.dfs()]
        is_open = any(isinstance(part, AffineSymExpr) for part in parts)
        return None if is_open else {part.position for part in parts if isinstance(part, AffineDimExpr)}


@dataclass(frozen=True)
class Footprint:
    """The lines that an access touches, in `runs` of adjacent lines.

    `rows` has the number of runs and their distance in bytes along each axis, nearest first. `pages` is the number of
    rows that are a page or more apart.
    """

    bytes: int
    runs: int
    rows: tuple[tuple[int, int], ...] = ()
    pages: int = 1

    @property
    def distance(self) -> int:
        """Bytes between neighbouring runs."""
        return self.rows[0][1] if self.rows else 0


@dataclass(frozen=True)
class IndexSet:
    """The values of an index from its least: `levels` are numbers of values and their distances, nearest first.

    A level repeats all levels before it. `8 * i + j` with three `j` has (3, 1), then (n, 8).
    """

    levels: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def interval(size: int) -> IndexSet:
        """`size` consecutive values."""
        return IndexSet(((size, 1),))

    @property
    def size(self) -> int:
        """How many values there are."""
        return prod(n for n, _ in self.levels)

    @property
    def span(self) -> int:
        """The count of all numbers from the least to the greatest value."""
        return 1 + sum((n - 1) * apart for n, apart in self.levels)

    def __add__(self, other: IndexSet) -> IndexSet:
        """The sums of one value of each; if they overlap irregularly, all numbers in their span."""
        levels, span = list[tuple[int, int]](), 1
        for n, apart in sorted((*self.levels, *other.levels), key=itemgetter(1)):
            count, step = levels[-1] if levels else (1, 0)
            if n == 1:
                continue
            if step and apart % step == 0 and apart <= count * step:
                levels[-1] = count + (n - 1) * apart // step, step
            elif apart < span:
                levels = [(span + (n - 1) * apart, 1)]
            else:
                levels.append((n, apart))
            span += (n - 1) * apart
        return IndexSet(tuple(levels))

    def __mul__(self, factor: int) -> IndexSet:
        return IndexSet(tuple((n, apart * abs(factor)) for n, apart in self.levels if factor))

    def within(self, extent: int) -> IndexSet:
        """The values that fit on an axis."""
        if self.span <= extent:
            return self
        return IndexSet(tuple((min(n, -(-extent // apart)), apart) for n, apart in self.levels))


def footprint_of(access: Access, counts: tuple[int, ...], line: int, page: int) -> Footprint:
    """The lines that an access touches while its dimensions take `counts` values."""
    if access.dims is not None:
        counts = tuple(n if d in access.dims else 1 for d, n in enumerate(counts))
    return _footprint(access, counts, line, page)


@lru_cache(maxsize=1 << 16)
def _footprint(access: Access, counts: tuple[int, ...], line: int, page: int) -> Footprint:
    """Cached, because adjacent loops and layers of a network have many accesses in common."""
    return lines_of([values(e, counts) for e in access.index], access, line, page)


def lines_of(indices: Sequence[IndexSet], access: Access, line: int, page: int) -> Footprint:
    """The lines of the elements of an array at some indices along each axis.

    Elements whose lines are adjacent are one run.
    """
    box = [index.within(extent) for index, extent in zip(indices, access.shape, strict=True)]
    if access.local:
        return Footprint(-(-prod(index.size for index in box) * access.size // line) * line, 1)
    run, rows, stride, pages = access.size, list[tuple[int, int]](), access.size, 1
    for index, extent in zip(reversed(box), reversed(access.shape), strict=True):
        for n, apart in ((n, stride * step) for n, step in index.levels if n > 1):
            if not rows and apart <= -(-run // line) * line:
                run += (n - 1) * apart
            else:
                rows.append((n, apart))
                pages *= n if apart >= page else 1
        stride *= extent
    runs = prod(n for n, _ in rows)
    return Footprint(runs * -(-run // line) * line, runs, tuple(rows), pages)


def values(expr: AffineExpr, counts: tuple[int, ...]) -> IndexSet:
    """The values of an index whose dimensions take `counts` values."""
    if type(expr) is AffineDimExpr:  # types of expressions are abstract base classes, and slow where they do not match
        return IndexSet.interval(counts[expr.position])
    if type(expr) is AffineConstantExpr:
        return IndexSet()
    match expr:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            return values(lhs, counts) + values(rhs, counts)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, AffineConstantExpr(value=factor)):
            return values(lhs, counts) * factor
        case AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, lhs, AffineConstantExpr(value=divisor)):
            return IndexSet.interval(-(-values(lhs, counts).span // divisor))
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mod, lhs, AffineConstantExpr(value=modulus)):
            return IndexSet.interval(min(values(lhs, counts).span, modulus))
        case AffineBinaryOpExpr(_, lhs, rhs):
            return IndexSet.interval(values(lhs, counts).span * values(rhs, counts).span)
        case _:
            return IndexSet.interval(prod(counts))


def part_conflicting(cache: Level, footprint: Footprint) -> float:
    """The fraction of the rows that do not fit in the sets that they map to."""
    if footprint.runs == 1 or footprint.distance < cache.line:
        return 0.0
    return min(1.0, max(0.0, footprint.runs / cache.lines_of(footprint.rows) - 1.0))
