"""The axes of a kernel: dimensions of statements and of arrays that run together, in one order for all arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from msc.poly.model import KernelModel, KernelStatement
from msc.poly.scalar import reads

_Place = tuple[str, int, int]
"""("s", statement, dimension) or ("a", array, dimension)."""


@dataclass(frozen=True)
class Axes:
    """`extents` of the axes, outermost first; which of them each array and each statement has, in this order.

    An array lies in memory with its axes in the same order, the last one contiguous. Axes of one element are none.
    """

    extents: tuple[int, ...]
    arrays: tuple[tuple[int, ...], ...]
    statements: tuple[tuple[int, ...], ...]
    reduced: tuple[frozenset[int], ...]

    @property
    def last(self) -> int:
        """The innermost axis."""
        return len(self.extents) - 1

    def count(self, axes: Sequence[int]) -> int:
        """Elements over some axes."""
        total = 1
        for axis in axes:
            total *= self.extents[axis]
        return total


def axes_of(model: KernelModel) -> Axes | None:
    """The axes of a kernel; None where an index is more than a dimension, or arrays lie in different orders."""
    classes = _Classes()
    for number, statement in enumerate(model.statements):
        for array, index in _accesses(statement):
            for dimension, expr in enumerate(index.results):
                match expr:
                    case AffineDimExpr():
                        classes.join(("s", number, expr.position), ("a", array, dimension))
                    case AffineConstantExpr() if expr.value == 0 and model.arrays[array].shape[dimension] == 1:
                        pass
                    case _:
                        return None
        if any(read.indirect for read in reads(statement.body)):
            return None
    found = _numbered(model, classes)
    return None if found is None else _merged(found)


def _accesses(statement: KernelStatement) -> Iterator[tuple[int, AffineMap]]:
    yield statement.target, statement.write
    for read in reads(statement.body):
        yield read.operand, read.index


class _Classes:
    """Dimensions that run together."""

    def __init__(self) -> None:
        self._parent: dict[_Place, _Place] = {}

    def root(self, place: _Place) -> _Place:
        parent = self._parent.setdefault(place, place)
        if parent != place:
            self._parent[place] = parent = self.root(parent)
        return parent

    def join(self, one: _Place, other: _Place) -> None:
        self._parent[self.root(one)] = self.root(other)


def _numbered(model: KernelModel, classes: _Classes) -> Axes | None:
    extents: dict[_Place, int] = {}

    def of(kind: str, number: int, sizes: Sequence[int]) -> list[_Place] | None:
        roots = [classes.root((kind, number, d)) for d in range(len(sizes))]
        if any(extents.setdefault(root, size) != size for root, size in zip(roots, sizes, strict=True)):
            return None
        kept = [root for root, size in zip(roots, sizes, strict=True) if size > 1]
        return kept if len(set(kept)) == len(kept) else None

    arrays = [of("a", k, a.shape) for k, a in enumerate(model.arrays)]
    statements = [of("s", k, s.extents) for k, s in enumerate(model.statements)]
    if None in arrays or None in statements:
        return None
    order: TopologicalSorter[_Place] = TopologicalSorter()
    for places in (*statements, *arrays):
        for place in places or ():
            order.add(place)
    for places in arrays:
        for before, after in zip(places or (), (places or ())[1:], strict=False):
            order.add(after, before)
    try:
        numbers = {place: k for k, place in enumerate(_innermost_last(order, arrays))}
    except CycleError:
        return None
    reduced = [
        frozenset(numbers[classes.root(("s", k, d))] for d in s.reduced if s.extents[d] > 1)
        for k, s in enumerate(model.statements)
    ]
    return Axes(
        tuple(extents[place] for place in numbers),
        tuple(tuple(sorted(numbers[p] for p in places or ())) for places in arrays),
        tuple(tuple(sorted(numbers[p] for p in places or ())) for places in statements),
        tuple(reduced),
    )


def _innermost_last(order: TopologicalSorter[_Place], arrays: Sequence[list[_Place] | None]) -> list[_Place]:
    """A topological order in which the contiguous axis of the longest arrays comes last."""
    found = list(order.static_order())
    longest: list[_Place] = max((places for places in arrays if places), key=len, default=list[_Place]())
    inner = longest[-1:] if longest and all(p[-1] == longest[-1] for p in arrays if p and longest[-1] in p) else []
    return [place for place in found if place not in inner] + inner


def _merged(axes: Axes) -> Axes:
    """Axes that stand beside each other wherever one of them stands are one."""
    for first in range(len(axes.extents) - 1):
        second = first + 1
        lists = (*axes.arrays, *axes.statements, *(tuple(sorted(r)) for r in axes.reduced))
        if all((first in places) == (second in places) for places in lists):
            return _merged(_joined(axes, first))
    return axes


def _joined(axes: Axes, first: int) -> Axes:
    def without(places: Sequence[int]) -> tuple[int, ...]:
        return tuple(p - (p > first) for p in places if p != first + 1)

    extents = list(axes.extents)
    extents[first : first + 2] = [extents[first] * extents[first + 1]]
    return Axes(
        tuple(extents),
        tuple(without(places) for places in axes.arrays),
        tuple(without(places) for places in axes.statements),
        tuple(frozenset(without(sorted(r))) for r in axes.reduced),
    )
