"""Adjacent dimensions that a kernel always traverses together become one.

The rows of an image that a pointwise convolution and an activation read are contiguous in memory: as one dimension they
fill vectors and register tiles, while each row alone would leave a tail. Two axes of an array collapse if every
access indexes them by two whole dimensions. Two dimensions of a statement collapse if they index nothing else and no
open size bounds them. An axis that is cut into blocks is not collapsed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from msc.poly.affine import simplified
from msc.poly.model import Array, KernelModel, KernelStatement, Materialized
from msc.poly.scalar import Index, Read, Scalar, indices, rewritten

_Axes: TypeAlias = tuple[int, int]
"""An array and its axis: it and the next one."""
_Dims: TypeAlias = tuple[int, int, int]
"""A statement and two of its dimensions."""


class _Apart(Exception):
    """Something runs through one of two axes or dimensions without the other."""


def collapsed(model: KernelModel) -> KernelModel:
    """The model with every two axes and dimensions as one that can be."""
    return replace(_collapsed_alike(_Alike(model.structure, model)), operations=model.operations)


@dataclass(frozen=True)
class _Alike:
    """A model among those that compute the same: unrolled networks have hundreds of them."""

    structure: str
    model: KernelModel = field(compare=False)


@lru_cache(maxsize=256)
def _collapsed_alike(alike: _Alike) -> KernelModel:
    return _collapsed(alike.model)


def _collapsed(model: KernelModel) -> KernelModel:
    axes = ((a, k) for a, array in enumerate(model.arrays) for k in range(len(array.shape) - 1))
    link = next((found for at in axes if (found := _link(model, at)) is not None), None)
    return model if link is None else _collapsed(link.merged(model))


@dataclass(frozen=True)
class _Link:
    """Axes and dimensions that become one together."""

    axes: frozenset[_Axes]
    dims: frozenset[_Dims]
    sizes: int = 0
    """How many sizes the call decides: the symbols of expressions."""

    def merged(self, model: KernelModel) -> KernelModel:
        arrays = tuple(self._array(a, array) for a, array in enumerate(model.arrays))
        statements = tuple(self._statement(s, statement) for s, statement in enumerate(model.statements))
        between = tuple(replace(m, axes=self._kept_axes(m)) for m in model.materialized)
        return replace(model, arrays=arrays, statements=statements, materialized=between)

    def _kept_axes(self, materialized: Materialized) -> tuple[int, ...]:
        """The axes of blocks by their new numbers: two that become one are one."""
        merged = self._axes_of(materialized.array)
        return tuple(dict.fromkeys(axis - sum(k < axis for k in merged) for axis in materialized.axes))

    def _array(self, number: int, array: Array) -> Array:
        shape = array.shape
        for k in self._axes_of(number):
            shape = (*shape[:k], shape[k] * shape[k + 1], *shape[k + 2 :])
        return replace(array, shape=shape)

    def _axes_of(self, array: int) -> list[int]:
        """The last first, so that those before keep their numbers."""
        return sorted((k for a, k in self.axes if a == array), reverse=True)

    def _statement(self, number: int, statement: KernelStatement) -> KernelStatement:
        for _, p, q in sorted((d for d in self.dims if d[0] == number), key=lambda d: -d[2]):
            statement = self._without(statement, p, q)
        return statement

    def _without(self, statement: KernelStatement, p: int, q: int) -> KernelStatement:
        """The statement with dimension `q` run through by `p`."""
        extents, names = list(statement.extents), list(statement.names)
        extents[p], names[p] = extents[p] * extents[q], f"{names[p]}_{names[q]}"
        del extents[q], names[q]
        kept = [AffineExpr.dimension(d - (d > q)) for d in range(len(statement.extents))]
        kept[q] = AffineExpr.constant(0)
        write = self._moved(statement.target, statement.write, p, kept)
        body = self._body(statement.body, p, kept)
        bounds = tuple(b for d, b in enumerate(statement.bounds) if d != q)
        return replace(statement, extents=tuple(extents), names=tuple(names), write=write, body=body, bounds=bounds)

    def _body(self, scalar: Scalar, p: int, kept: Sequence[AffineExpr]) -> Scalar:
        sizes = [AffineExpr.symbol(k) for k in range(self.sizes)]

        def moved(leaf: Read | Index) -> Scalar:
            if isinstance(leaf, Index):
                return replace(leaf, expr=leaf.expr.replace_dims_and_symbols(list(kept), sizes))
            return replace(leaf, index=self._moved(leaf.operand, leaf.index, p, kept))

        return rewritten(scalar, moved)

    def _moved(self, array: int, map_: AffineMap, p: int, kept: Sequence[AffineExpr]) -> AffineMap:
        results = list(map_.results)
        for k in self._axes_of(array):
            if p in results[k].used_dims():
                results[k : k + 2] = [AffineExpr.dimension(p)]
        moved = tuple(simplified(e.replace_dims_and_symbols(list(kept), [])) for e in results)
        return AffineMap(len(kept) - 1, 0, moved)


def _link(model: KernelModel, start: _Axes) -> _Link | None:
    """What must collapse with an axis and the next one; None if something keeps them apart."""
    axes, dims, left = {start}, set[_Dims](), [start]
    try:
        while left:
            for found in _dims_of(model, left.pop()):
                if found not in dims:
                    dims.add(found)
                    new = set(_axes_of(model, found)) - axes
                    axes |= new
                    left += new
    except _Apart:
        return None
    return _Link(frozenset(axes), frozenset(dims), len(model.sizes)) if dims else None


def _dims_of(model: KernelModel, at: _Axes) -> Iterator[_Dims]:
    """The dimensions that index the axes, in every access."""
    array, axis = at
    if any(m.array == array and len({axis, axis + 1} & set(m.axes)) == 1 for m in model.materialized):
        raise _Apart
    for s, statement in enumerate(model.statements):
        if array in statement.whole_reads():
            raise _Apart
        for accessed, map_ in statement.accesses():
            if accessed == array:
                p, q = (_dimension(statement, e) for e in map_.results[axis : axis + 2])
                if (statement.extents[p], statement.extents[q]) != model.arrays[array].shape[axis : axis + 2]:
                    raise _Apart
                yield s, p, q


def _axes_of(model: KernelModel, found: _Dims) -> Iterator[_Axes]:
    """The axes that the dimensions index, in every access of their statement."""
    number, p, q = found
    statement = model.statements[number]
    bounded = statement.bound(p) is not None or statement.bound(q) is not None
    if p == q or bounded or {p, q} & _computed_with(statement.body):
        raise _Apart
    for array, map_ in statement.accesses():
        used = [k for k, e in enumerate(map_.results) if {p, q} & e.used_dims()]
        if not used:
            continue
        if len(used) != 2 or [_dimension(statement, map_.results[k]) for k in used] != [p, q]:
            raise _Apart
        if used[1] != used[0] + 1:
            raise _Apart
        yield array, used[0]


def _dimension(statement: KernelStatement, expr: AffineExpr) -> int:
    """The dimension that an index is, beside dimensions that have one iteration only."""
    if isinstance(expr, AffineDimExpr) and statement.extents[expr.position] != 1:
        return expr.position
    zeros = [AffineConstantExpr(0) if extent == 1 else AffineDimExpr(d) for d, extent in enumerate(statement.extents)]
    alone = simplified(expr.replace_dims_and_symbols(list[AffineExpr](zeros), []))
    if not isinstance(alone, AffineDimExpr):
        raise _Apart
    return alone.position


def _computed_with(body: Scalar) -> set[int]:
    """Dimensions whose value the body computes with."""
    return {dim for index in indices(body) for dim in index.expr.used_dims()}
