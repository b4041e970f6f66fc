"""The storage of a kernel's internal arrays, once its nest is known.

An array that is written and read at one point of one leaf needs no memory: its value is *forwarded*. An array that
lives within an iteration of the outer loops becomes a *local* buffer of the elements that the iteration accesses. An
array that is computed in front of some of these loops, for all of their iterations, is local to the enclosing loops.
If it is too large for the stack, it is *scratch*: a temporary of the elements of one iteration, of which concurrent
iterations have separate ones. Other arrays are temporaries of their whole shape. An array that is too large for
registers may also be stored in an output that is computed from it: that needs no additional cache, and the output's
lines are then cached.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias

from xdsl.ir.affine import AffineConstantExpr, AffineExpr, AffineMap

from msc.poly.affine import bounds, linear_form, simplified
from msc.poly.model import KernelModel
from msc.poly.nest import Body, ForLoop, Instance, Nest
from msc.poly.scalar import reads

_Box: TypeAlias = tuple[tuple[int, int], ...]
"""The least and the largest index along each axis."""


@dataclass(frozen=True)
class LocalBuffer:
    """A buffer for an array inside one Body: axis k holds axis `axes[k]` of the array, less `origin[k]`.

    The axis that vectors run along is the last, so that they are contiguous. Axes in front of these, which have the
    index `lead`, tell iterations apart that run at once.
    """

    shape: tuple[int, ...]
    origin: tuple[AffineExpr, ...]
    axes: tuple[int, ...]
    lead: tuple[AffineExpr, ...] = ()

    def index(self, index: Sequence[AffineExpr]) -> list[AffineExpr]:
        """The index in the buffer of an element of the array."""
        return [*self.lead, *(index[axis] + origin * -1 for axis, origin in zip(self.axes, self.origin, strict=True))]

    def holds(self, index: Sequence[AffineExpr], ranges: Mapping[int, range]) -> bool:
        """Whether an element of the array lies in the buffer, whatever the loops' variables are."""
        places = [bounds(simplified(e, ranges), ranges) for e in self.index(index)]
        return all(low >= 0 and high < size for (low, high), size in zip(places, self.shape, strict=True))


@dataclass(frozen=True)
class ArrayAccess:
    """One access to an array in a Body: its index over loop variables, and the ranges of the loops inside the Body.

    Where it `varies`, calls decide how far a loop inside the Body goes over the array. Where it is `rolled`, a loop
    inside the Body that is neither unrolled nor of vectors goes over it.
    """

    array: int
    index: tuple[AffineExpr, ...]
    writes: bool
    combines: bool
    leaf: int
    inner: Mapping[int, range]
    vector: int | None
    varies: bool = False
    rolled: bool = False


def body_accesses(
    model: KernelModel, body: Body, outside: Mapping[int, range], arrays: Collection[int]
) -> list[ArrayAccess]:
    """Every access to some arrays in a Body, in program order; `outside` are sizes, counts and loops around."""
    accesses: list[ArrayAccess] = []
    for instance, at in _instances(body.inside, len(outside), _Inside(outside), [0]):
        statement = model.statements[instance.statement]
        for read in reads(statement.body):
            if read.operand in arrays:
                accesses.append(at.access(read.operand, compose(read.index, instance.index)))
        if statement.target in arrays:
            index = compose(statement.write, instance.index)
            accesses.append(at.access(statement.target, index, writes=True, combines=statement.combine is not None))
    return accesses


@dataclass(frozen=True)
class _Inside:
    """Below loops inside a Body: their ranges, those whose ends calls decide, those that are neither unrolled nor of
    vectors, the vector loop, the number of a leaf.
    """

    ranges: Mapping[int, range]
    open: frozenset[int] = frozenset()
    rolled: frozenset[int] = frozenset()
    vector: int | None = None
    leaf: int = 0

    def access(
        self, array: int, index: tuple[AffineExpr, ...], *, writes: bool = False, combines: bool = False
    ) -> ArrayAccess:
        dims = frozenset[int]().union(*(expr.used_dims() for expr in index))
        varies, rolled = bool(self.open & dims), bool(self.rolled & dims)
        return ArrayAccess(array, index, writes, combines, self.leaf, self.ranges, self.vector, varies, rolled)

    def below(self, loop: ForLoop, depth: int) -> _Inside:
        is_open = any(end.used_dims() and simplified(end).used_dims() for end in (loop.lower, loop.upper))
        return replace(
            self,
            ranges={**self.ranges, depth: iterations(loop, self.ranges)},
            open=self.open | {depth} if is_open else self.open,
            rolled=self.rolled if loop.kind in ("unroll", "vector") else self.rolled | {depth},
            vector=depth if loop.kind == "vector" else self.vector,
        )


def _instances(
    nests: Sequence[Nest], depth: int, at: _Inside, counter: list[int]
) -> Iterator[tuple[Instance, _Inside]]:
    counter[0] += 1
    at = replace(at, leaf=counter[0])
    for nest in nests:
        match nest:
            case Instance():
                yield nest, at
            case Body():
                yield from _instances(nest.inside, depth, at, counter)
            case ForLoop():
                yield from _instances(nest.body, depth + 1, at.below(nest, depth), counter)


def iterations(loop: ForLoop, inner: Mapping[int, range]) -> range:
    """All iterations that a loop may have, given those of the loops around."""
    low = bounds(loop.lower, inner)[0]
    return range(low, max(low + 1, bounds(loop.upper, inner)[1]))


def compose(map_: AffineMap, index: Sequence[AffineExpr]) -> tuple[AffineExpr, ...]:
    """The map's results at a point given by expressions."""
    return tuple(r.replace_dims_and_symbols(list(index), []) for r in map_.results)


def forwarded(accesses: Sequence[ArrayAccess]) -> set[int]:
    """Arrays of which each point of a leaf reads what it wrote itself: their values need no memory."""
    by_array: dict[int, list[ArrayAccess]] = {}
    for access in accesses:
        by_array.setdefault(access.array, []).append(access)
    return {array for array, uses in by_array.items() if _is_forwarded(uses)}


def _is_forwarded(uses: Sequence[ArrayAccess]) -> bool:
    """Whether all leaves forward the array, each to itself alone."""
    leaves = dict[int, list[ArrayAccess]]()
    for use in uses:
        leaves.setdefault(use.leaf, []).append(use)
    return all(map(_is_forwarded_inside, leaves.values()))


def _is_forwarded_inside(uses: Sequence[ArrayAccess]) -> bool:
    first = uses[0]
    return (
        first.writes
        and not first.combines
        and not any(u.writes for u in uses[1:])
        and all(u.index == first.index for u in uses)
    )


def local_buffers(accesses: Sequence[ArrayAccess], depth: int) -> tuple[LocalBuffer, ...] | None:
    """The buffer of what one iteration touches of an array; of parts with vectors along different axes, one of each.

    None where what is touched is no box of constant size.
    """
    whole = local_buffer(accesses, depth)
    if whole is None:
        return None
    parts = [local_buffer(part, depth) for part in _parts(accesses, whole)]
    found = tuple(part for part in parts if part is not None)
    return found if len({part.axes for part in found}) > 1 else (whole,)


def _parts(accesses: Sequence[ArrayAccess], whole: LocalBuffer) -> list[list[ArrayAccess]]:
    """The accesses to parts of a buffer that have no element in common."""
    parts: list[list[tuple[_Box, ArrayAccess]]] = []
    for access in accesses:
        box = _box(access, whole)
        met = [part for part in parts if any(_overlap(box, other) for other, _ in part)]
        parts = [
            *(part for part in parts if part not in met),
            [*(pair for part in met for pair in part), (box, access)],
        ]
    return [[access for _, access in part] for part in parts]


def _box(access: ArrayAccess, whole: LocalBuffer) -> _Box:
    return tuple(bounds(simplified(e), access.inner) for e in whole.index(access.index))


def _overlap(box: Sequence[tuple[int, int]], other: _Box) -> bool:
    return all(low <= end and start <= high for (low, high), (start, end) in zip(box, other, strict=True))


def local_buffer(accesses: Sequence[ArrayAccess], depth: int) -> LocalBuffer | None:
    """The buffer that holds what one iteration touches of an array, or None where the touched box is not constant."""
    axes = [
        _axis([a.index[k] for a in accesses], [a.inner for a in accesses], depth) for k in range(len(accesses[0].index))
    ]
    if any(axis is None for axis in axes):
        return None
    found = [axis for axis in axes if axis is not None]
    order = sorted(range(len(found)), key=lambda k: _runs_along_vectors(accesses, k))
    return LocalBuffer(tuple(found[k][0] for k in order), tuple(found[k][1] for k in order), tuple(order))


def _runs_along_vectors(accesses: Sequence[ArrayAccess], axis: int) -> bool:
    """Whether lanes of most vector accesses differ in this axis of the array."""
    vectors = [a for a in accesses if a.vector is not None]
    moving = [a for a in vectors if a.vector in a.index[axis].used_dims()]
    return 2 * len(moving) > len(vectors)


def _axis(
    exprs: Sequence[AffineExpr], inners: Sequence[Mapping[int, range]], depth: int
) -> tuple[int, AffineExpr] | None:
    """Extent and origin of one axis: all accesses must move alike with the loops outside."""
    outer: dict[int, int] | None = None
    low, high = math.inf, -math.inf
    for expr, inner in zip(exprs, inners, strict=True):
        form = linear_form(expr)
        if form is None:
            return None
        outside = {d: c for d, c in form.coefficients.items() if d < depth}
        if outer is not None and outside != outer:
            return None
        outer = outside
        spans = [(c * inner[d][0], c * inner[d][-1]) for d, c in form.coefficients.items() if d >= depth]
        low = min(low, form.constant + sum(map(min, spans)))
        high = max(high, form.constant + sum(map(max, spans)))
    assert outer is not None
    origin: AffineExpr = AffineConstantExpr(int(low))
    for d, c in sorted(outer.items()):
        origin = AffineExpr.dimension(d) * c + origin
    return int(high - low) + 1, origin


def fills_box(accesses: Sequence[ArrayAccess], depth: int) -> bool:
    """Whether the writes among the accesses of one iteration to an array fill the box of all of them."""
    whole = local_buffer(accesses, depth)
    writes = [a for a in accesses if a.writes and _is_dense(a, depth)]
    return whole is not None and _cover([_box(a, whole) for a in writes], whole.shape)


def _cover(boxes: Sequence[_Box], shape: Sequence[int]) -> bool:
    """Whether boxes cover one that begins at 0: each cell of the grid of their edges lies in one of them."""
    edges = [{0, *(b[axis][0] for b in boxes), *(b[axis][1] + 1 for b in boxes)} for axis in range(len(shape))]
    corners = product(*([e for e in each if 0 <= e < size] for each, size in zip(edges, shape, strict=True)))
    return all(any(_overlap([(at, at) for at in corner], box) for box in boxes) for corner in corners)


def _is_dense(access: ArrayAccess, depth: int) -> bool:
    """Whether each axis takes all values from its least to its greatest, whatever the others are."""
    moving = set[int]()
    for expr in access.index:
        form = linear_form(expr)
        inside = {} if form is None else {d: c for d, c in form.coefficients.items() if d >= depth}
        if form is None or moving & inside.keys() or not takes_all(inside, access.inner):
            return False
        moving |= inside.keys()
    return True


def steps_along(index: AffineMap, dims: Collection[int]) -> list[Mapping[int, int]]:
    """How far each of some dimensions moves along each axis of an array, where that is a number."""
    forms = (linear_form(expr) for expr in index.results)
    return [{d: c for d, c in form.coefficients.items() if d in dims} for form in forms if form is not None]


def takes_all(coefficients: Mapping[int, int], inner: Mapping[int, range]) -> bool:
    """Whether a sum of dimensions takes all values from its least to its greatest."""
    reach = 1
    for dim, factor in sorted(coefficients.items(), key=lambda pair: abs(pair[1])):
        if len(inner[dim]) > 1 and abs(factor) > reach:
            return False
        reach += abs(factor) * (len(inner[dim]) - 1)
    return True
