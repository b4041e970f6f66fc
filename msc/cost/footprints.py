"""The lines of memory that an access touches, as the dimensions of its statement take so many values each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from msc.targets.machine import Level


@dataclass(frozen=True)
class Access:
    """An access: an index for each axis of an array of so many elements of `size` bytes."""

    array: int
    index: tuple[AffineExpr, ...]
    shape: tuple[int, ...]
    size: int
    written: bool
    local: bool


@dataclass(frozen=True)
class Footprint:
    """Lines that an access touches: `runs` of neighbouring ones, along axes with so many each so many bytes apart, the
    nearest first; in so many `pages` that the rows of each lie a page or more apart.
    """

    bytes: int
    runs: int
    rows: tuple[tuple[int, int], ...] = ()
    pages: int = 1

    @property
    def distance(self) -> int:
        """Bytes between neighbouring runs."""
        return self.rows[0][1] if self.rows else 0


def footprint_of(access: Access, counts: tuple[int, ...], line: int, page: int) -> Footprint:
    """The lines of the box of elements that dimensions with so many values reach."""
    return lines_of_box([values(e, counts) for e in access.index], access, line, page)


def lines_of_box(sizes: Sequence[int], access: Access, line: int, page: int) -> Footprint:
    """The lines of a box of elements of an array, so many along each axis."""
    box = [min(size, extent) for size, extent in zip(sizes, access.shape, strict=True)]
    if access.local:
        return Footprint(-(-prod(box) * access.size // line) * line, 1)
    run, rows, stride, dense, pages = access.size, list[tuple[int, int]](), access.size, True, 1
    for n, extent in zip(reversed(box), reversed(access.shape), strict=True):
        if n > 1 and dense:
            run = stride * n
        elif n > 1:
            rows.append((n, stride))
            pages *= n if stride >= page else 1
        stride *= extent
        dense = dense and run == stride
    runs = prod(n for n, _ in rows)
    return Footprint(runs * -(-run // line) * line, runs, tuple(rows), pages)


def values(expr: AffineExpr, counts: tuple[int, ...]) -> int:
    """How many values lie between the least and the greatest of an index, as its dimensions take so many each."""
    if type(expr) is AffineDimExpr:  # types of expressions are abstract base classes, and slow where they do not match
        return counts[expr.position]
    if type(expr) is AffineConstantExpr:
        return 1
    match expr:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            return values(lhs, counts) + values(rhs, counts) - 1
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, AffineConstantExpr(value=factor)):
            return abs(factor) * (values(lhs, counts) - 1) + 1
        case AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, lhs, AffineConstantExpr(value=divisor)):
            return -(-values(lhs, counts) // divisor)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mod, lhs, AffineConstantExpr(value=modulus)):
            return min(values(lhs, counts), modulus)
        case AffineBinaryOpExpr(_, lhs, rhs):
            return values(lhs, counts) * values(rhs, counts)
        case _:
            return prod(counts)


def part_conflicting(cache: Level, footprint: Footprint) -> float:
    """The part of rows so far apart that the sets do not hold in which they meet."""
    if footprint.runs == 1 or footprint.distance < cache.line:
        return 0.0
    return min(1.0, max(0.0, footprint.runs / cache.lines_of(footprint.rows) - 1.0))
