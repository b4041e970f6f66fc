"""Internal arrays store their axes in the order in which the inputs and outputs of their kernel do.

What a kernel computes on the way has the axes of its tensors, but its inputs and outputs may lie in memory in another
order, as images with channels last do. A vector along the last axis of such an input would be a column of an internal
array, loaded and stored lane by lane.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from xdsl.ir.affine import AffineMap

from msc.poly.model import KernelModel, KernelStatement
from msc.poly.scalar import Index, Read, Scalar, rewritten

_Order: TypeAlias = tuple[int, ...]
"""The axes of an array in the order in which they are stored."""


def with_axes_in_order(model: KernelModel) -> KernelModel:
    """The model with the axes of each internal array in the order in which what is accessed beside it stores them.

    An array keeps its order if the others disagree, if its indices are data, or if it lies between members.
    """
    orders = {array: order for array, order in _orders(model).items() if list(order) != sorted(order)}
    if not orders:
        return model
    arrays = list(model.arrays)
    for k, order in orders.items():
        arrays[k] = replace(arrays[k], shape=tuple(arrays[k].shape[axis] for axis in order))
    return replace(model, arrays=tuple(arrays), statements=tuple(_reordered(s, orders) for s in model.statements))


def _orders(model: KernelModel) -> Mapping[int, _Order]:
    """The order of each array: first of those next to inputs and outputs, then of those next to these."""
    fixed = {m.array for m in model.materialized} | {a for s in model.statements for a in s.whole_reads()}
    left = {k for k, array in enumerate(model.arrays) if array.kind == "internal" and k not in fixed}
    known = {k: tuple(range(len(array.shape))) for k, array in enumerate(model.arrays) if k not in left}
    statements = _statements_of_arrays(model)
    beside: Collection[int] = left
    while found := {a: orders for a in beside if (orders := set(_suggested(statements[a], a, known)))}:
        for array, orders in found.items():
            known[array] = orders.pop() if len(orders) == 1 else tuple(range(len(model.arrays[array].shape)))
        left -= set(found)
        beside = {b for a in found for s in statements[a] for b, _ in s.accesses() if b in left}
    return known


def _statements_of_arrays(model: KernelModel) -> Mapping[int, list[KernelStatement]]:
    """The statements that access each array."""
    statements = defaultdict[int, list[KernelStatement]](list)
    for statement in model.statements:
        for array in {array for array, _ in statement.accesses()}:
            statements[array].append(statement)
    return statements


def _suggested(statements: Iterable[KernelStatement], array: int, known: Mapping[int, _Order]) -> Iterator[_Order]:
    """The orders that arrays suggest which are accessed along the same dimensions by the same statement."""
    for statement in statements:
        accesses = statement.accesses()
        for own in (index for accessed, index in accesses if accessed == array):
            for other, index in accesses:
                if other in known and (order := _order(statement, own, _stored(index, known[other]))):
                    yield order


def _order(statement: KernelStatement, own: AffineMap, other: AffineMap) -> _Order | None:
    """The axes of an access in the order of their dimensions in another one, axes of one element where they are."""
    axes = {axis: _dimensions(statement, own, axis) for axis in range(len(own.results))}
    places = {_dimensions(statement, other, axis): axis for axis in range(len(other.results))}
    long = [axis for axis, dims in axes.items() if dims]
    if not all(len(axes[axis]) == 1 and axes[axis] in places for axis in long):
        return None
    by_place = iter(sorted(long, key=lambda axis: places[axes[axis]]))
    return tuple(next(by_place) if dims else axis for axis, dims in axes.items())


def _dimensions(statement: KernelStatement, index: AffineMap, axis: int) -> frozenset[int]:
    """The dimensions of more than one iteration that an axis is indexed by."""
    return frozenset(d for d in index.results[axis].used_dims() if statement.extents[d] != 1)


def _reordered(statement: KernelStatement, orders: Mapping[int, _Order]) -> KernelStatement:
    """The statement with the accesses of arrays whose axes have another order."""

    def moved(leaf: Read | Index) -> Scalar:
        if isinstance(leaf, Index) or leaf.operand not in orders:
            return leaf
        return replace(leaf, index=_stored(leaf.index, orders[leaf.operand]))

    write = _stored(statement.write, orders[statement.target]) if statement.target in orders else statement.write
    return replace(statement, write=write, body=rewritten(statement.body, moved))


def _stored(index: AffineMap, order: _Order) -> AffineMap:
    """An access of an array with its axes in another order."""
    return AffineMap(index.num_dims, index.num_symbols, tuple(index.results[axis] for axis in order))
