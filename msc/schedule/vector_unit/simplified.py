"""Fewer passes over UB: conversions are shared, and products that only a sum reads are part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.ir.affine import AffineMap

from msc.poly.model import KernelModel, KernelStatement
from msc.poly.scalar import Apply, Cast, Read, Scalar, reads, rewritten
from msc.schedule.vector_unit.axes import Axes

_Order = tuple[tuple[int, KernelStatement], ...]
"""Statements by the numbers that they had."""


def simplified(model: KernelModel, axes: Axes) -> tuple[KernelModel, Axes]:
    """The kernel with fewer statements over whole tiles, and its axes, whose numbers stay."""
    order: _Order = tuple(enumerate(model.statements))
    for number in range(len(model.statements)):
        order = _with_shared_cast(model, order, number)
    for number in range(len(model.statements)):
        order = _with_summed_product(model, order, number)
    if order == tuple(enumerate(model.statements)):
        return model, axes
    places = {old: new for new, (old, _) in enumerate(order)}
    return (
        replace(model, statements=tuple(statement for _, statement in order)),
        replace(
            axes,
            statements=tuple(axes.statements[old] for old, _ in order),
            reduced=tuple(axes.reduced[old] for old, _ in order),
            dims=tuple(_renumbered(dims, places) for dims in axes.dims),
        ),
    )


def _renumbered(dims: Mapping[int, int], places: Mapping[int, int]) -> dict[int, int]:
    return {places[old]: dim for old, dim in dims.items() if old in places}


def _with_shared_cast(model: KernelModel, order: _Order, number: int) -> _Order:
    """A statement that converts an input comes before the first one that converts it again, which reads the result."""
    statement = dict(order)[number]
    body = statement.body
    if not isinstance(body, Cast) or not isinstance(body.arg, Read) or not _makes_whole(model, order, statement):
        return order
    source = model.arrays[body.arg.operand]
    if source.kind != "input" or source.shape != statement.extents or not _is_identity(body.arg.index):
        return order
    users = [old for old, other in order if other is not statement and _has_cast(other.body, body)]
    if not users:
        return order
    targets = [other.target for _, other in order]
    first = min(k for k, (old, _) in enumerate(order) if old in (number, users[0]))
    start = targets.index(targets[first])
    others = [(old, replace(s, body=_reading(s.body, body, statement.target))) for old, s in order if old != number]
    return (*others[:start], (number, statement), *others[start:])


def _makes_whole(model: KernelModel, order: _Order, statement: KernelStatement) -> bool:
    """Whether a statement alone writes its internal array, each element at its own index."""
    array = model.arrays[statement.target]
    alone = sum(other.target == statement.target for _, other in order) == 1
    whole = array.kind == "internal" and statement.extents == array.shape and _is_identity(statement.write)
    return alone and whole and statement.combine is None and not statement.bounds


def _is_identity(index: AffineMap) -> bool:
    return index == AffineMap.identity(index.num_dims)


def _has_cast(body: Scalar, cast: Cast) -> bool:
    return _reading(body, cast, 0) != body


def _reading(body: Scalar, cast: Cast, array: int) -> Scalar:
    """The body with reads of an array in place of a conversion."""
    match body:
        case Cast(Read() as read) if isinstance(cast.arg, Read):
            same = read.operand == cast.arg.operand and (body.dtype, body.bits) == (cast.dtype, cast.bits)
            return replace(read, operand=array, dtype=cast.dtype) if same and not read.indirect else body
        case Cast():
            return replace(body, arg=_reading(body.arg, cast, array))
        case Apply():
            return Apply(body.op, tuple(_reading(arg, cast, array) for arg in body.args))
        case _:
            return body


def _with_summed_product(model: KernelModel, order: _Order, number: int) -> _Order:
    """One statement that sums products of two arrays of f32, instead of one that multiplies and one that sums."""
    statement = dict(order).get(number)
    if statement is None or not is_product(statement.body) or not _makes_whole(model, order, statement):
        return order
    readers = [(old, other) for old, other in order if statement.target in _read_by(other)]
    if len(readers) != 1 or readers[0][1].combine != "add" or not isinstance(readers[0][1].body, Read):
        return order
    old, total = readers[0]
    factors = _read_by(statement)
    between = [other for place, other in order if number < place < old]
    if any(other.target in factors for other in between) or model.arrays[statement.target].dtype != "f32":
        return order
    assert isinstance(total.body, Read)
    joined = replace(total, body=_at(statement.body, total.body.index))
    return tuple((k, joined if k == old else other) for k, other in order if k != number)


def is_product(body: Scalar) -> bool:
    """Whether a body multiplies two arrays."""
    return isinstance(body, Apply) and body.op == "mul" and all(isinstance(arg, Read) for arg in body.args)


def _at(body: Scalar, index: AffineMap) -> Scalar:
    """A body with an index in place of its own dimensions."""
    return rewritten(
        body, lambda leaf: replace(leaf, index=leaf.index.compose(index)) if isinstance(leaf, Read) else leaf
    )


def _read_by(statement: KernelStatement) -> Sequence[int]:
    return [read.operand for read in reads(statement.body)]
