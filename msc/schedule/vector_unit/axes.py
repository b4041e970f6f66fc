"""The axes of a kernel: dimensions of statements and of arrays that run together, in one order for all arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    dims: tuple[Mapping[int, int], ...]
    """Of each axis: by statement the dimension that runs over it."""

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
    return _numbered(model, classes)


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
        tuple(
            {
                k: d
                for k, s in enumerate(model.statements)
                for d in range(len(s.extents))
                if classes.root(("s", k, d)) == p
            }
            for p in numbers
        ),
    )


def _innermost_last(order: TopologicalSorter[_Place], arrays: Sequence[list[_Place] | None]) -> list[_Place]:
    """A topological order in which the contiguous axis of the longest arrays comes last."""
    found = list(order.static_order())
    longest: list[_Place] = max((places for places in arrays if places), key=len, default=list[_Place]())
    inner = longest[-1:] if longest and all(p[-1] == longest[-1] for p in arrays if p and longest[-1] in p) else []
    return [place for place in found if place not in inner] + inner
