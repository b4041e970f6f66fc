"""The boxes of arrays that the prefetches of a tree request, once its nest is known.

A prefetch requests the box of an array that an iteration of a loop accesses. If other loops are between that loop
and the prefetch, the box is divided into lines, and each of their iterations requests an equal number of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.ir.affine import AffineExpr

from msc.poly.affine import linear_form, simplified
from msc.poly.buffers import LocalBuffer, body_accesses, local_buffer
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.nest import Body, ForLoop, Instance, Nest
from msc.poly.schedule_tree.nodes import Axis, Loop, Prefetch, ScheduleError, Tree, all_blocks
from msc.poly.schedule_tree.prefetches import Requested, requested
from msc.poly.storage import Around, instances, outermost


@dataclass(frozen=True)
class PrefetchRequest:
    """A share of a box of `array`, of `extents`, which begins at `origin` and lies `moved` further along each axis.

    `turns` are the numbers of the iterations that share it, the outermost loop first, and how many there are.
    """

    array: int
    origin: tuple[AffineExpr, ...]
    extents: tuple[int, ...]
    moved: tuple[int, ...]
    turns: tuple[tuple[AffineExpr, int], ...]

    def share(self, strides: Sequence[int], line: int, first: int) -> tuple[list[int], AffineExpr]:
        """Loops over the lines that one iteration requests, and the elements from the origin to each of these lines.

        `strides` are elements between neighbours along each axis, `line` is the elements of a line. The variables of
        the loops are the dimensions from `first` on.
        """
        rows, run = _rows(self.extents, strides)
        ahead = sum(steps * stride for steps, stride in zip(self.moved, strides, strict=True))
        if not self.turns:
            loops = [*rows, (-(-run // line), line)]
            trips = [extent for extent, _ in loops if extent > 1]
            terms = (stride for extent, stride in loops if extent > 1)
            return trips, sum((AffineExpr.dimension(first + k) * t for k, t in enumerate(terms)), _number(ahead))
        padded = -(-run // line) * line if rows else run
        step, at = prod(extent for extent, _ in rows) * padded, _number(0)
        for turn, trips in self.turns:
            step = _rounded(-(-step // trips), (padded, line) if rows else ())
            at = at + turn * step
        lines = -(-step // line)
        at = at + AffineExpr.dimension(first) * line if lines > 1 else at
        return [lines] if lines > 1 else [], (_address(at, rows, padded) if rows else at) + ahead


def _number(value: int) -> AffineExpr:
    return AffineExpr.constant(value)


def _rows(extents: Sequence[int], strides: Sequence[int]) -> tuple[list[tuple[int, int]], int]:
    """A box as rows of contiguous elements: extents and strides of these, the furthest apart first; their length."""
    rows = sorted(((s, e) for e, s in zip(extents, strides, strict=True) if e > 1), reverse=True)
    run = 1
    while rows and rows[-1][0] == run:
        run *= rows.pop()[1]
    return [(extent, stride) for stride, extent in rows], run


def _rounded(step: int, units: Sequence[int]) -> int:
    """The step in whole units, of the first that it is more than half of."""
    unit = next((unit for unit in units if 2 * step > unit), 1)
    return -(-step // unit) * unit


def _address(at: AffineExpr, rows: Sequence[tuple[int, int]], padded: int) -> AffineExpr:
    row, address = at // padded, at % padded
    for extent, stride in reversed(rows[1:]):
        address, row = address + row % extent * stride, row // extent
    return address + row * rows[0][1]


def requests(model: KernelModel, tree: Tree, nests: Sequence[Nest]) -> Mapping[int, tuple[PrefetchRequest, ...]]:
    """By the identity of each Body what its block requests.

    Raises ScheduleError for what is no box of one size, and for a prefetch that no Body requests.
    """
    numbers = {id(block): k for k, block in enumerate(all_blocks(tree.body))}
    wanted: dict[int, list[tuple[Requested, int]]] = {}
    for each in requested(tree):
        wanted.setdefault(numbers[id(each.block)], []).append((each, numbers[id(each.loop.body)]))
    found, idle = dict[int, tuple[PrefetchRequest, ...]](), {id(each): each for of in wanted.values() for each, _ in of}
    for path in _paths(nests, outermost(model, tree), ()) if wanted else ():
        made = dict[PrefetchRequest, None]()
        for each, target in wanted.get(path[-1].body.block, ()):
            own = list(_requests(model, tree, each, target, path))
            made |= dict.fromkeys(own)
            if own:
                idle.pop(id(each), None)
        found[id(path[-1].body)] = tuple(made)
    for each in idle.values():
        message = f"the innermost loop around over {each.prefetch.axis} has one iteration, and no later one"
        raise ScheduleError(message, each.prefetch.line)
    return found


@dataclass(frozen=True)
class _Step:
    """A Body, what is around it, and whether it is all that a loop right around it runs."""

    body: Body
    around: Around
    in_loop: bool


def _paths(nests: Sequence[Nest], around: Around, path: tuple[_Step, ...]) -> Iterator[tuple[_Step, ...]]:
    """The Bodies of a nest, each with those around it."""
    for nest in nests:
        match nest:
            case ForLoop():
                yield from _paths(nest.body, around.inside(nest), (*path, *_bodies(nest, around)))
            case Body():
                here = path if path and path[-1].body is nest else (*path, _Step(nest, around, in_loop=False))
                yield here
                yield from _paths(nest.inside, around, here)
            case Instance():
                pass


def _bodies(loop: ForLoop, around: Around) -> Iterator[_Step]:
    if len(loop.body) == 1 and isinstance(loop.body[0], Body):
        yield _Step(loop.body[0], around.inside(loop), in_loop=True)


def _requests(
    model: KernelModel, tree: Tree, each: Requested, target: int, path: tuple[_Step, ...]
) -> Iterator[PrefetchRequest]:
    """What a block at the end of a path requests; nothing where the loop has one iteration, and no later one."""
    step, prefetch = next(step for step in reversed(path) if step.body.block == target), each.prefetch
    array, later = array_names(model).index(prefetch.array), 0
    if prefetch.ahead:
        index, _ = _index(tree.axis(prefetch.axis), path[-1])
        points = _coefficient(index, step.around.depth - 1) if step.in_loop else 0
        if not points:
            return
        later = prefetch.ahead // points
    turns = tuple(_turn(tree, each, loop, path[-1]) for loop in each.between)
    for box in _boxes(model, array, step, prefetch):
        moved = tuple(later * _coefficient(origin, step.around.depth - 1) for origin in box.origin)
        if any(moved) or not later:
            yield PrefetchRequest(array, box.origin, box.shape, moved, turns)


def _turn(tree: Tree, each: Requested, loop: Loop, step: _Step) -> tuple[AffineExpr, int]:
    """The number of the iteration of a loop around a Body, where loops inside begin, and how many there are."""
    axis, size = tree.axis(loop.axis), loop.tile or 1
    whole, (index, ranges) = each.cut_from(loop, axis.extent), _index(axis, step)
    number = simplified(index % whole // size, ranges)
    if any(dim >= step.around.depth for dim in number.used_dims()):
        first = [
            _number(span.start) if k >= step.around.depth else AffineExpr.dimension(k) for k, span in ranges.items()
        ]
        number = simplified(simplified(index.replace_dims_and_symbols(first, []), ranges) % whole // size, ranges)
    return number, -(-whole // size)


def _index(axis: Axis, step: _Step) -> tuple[AffineExpr, Mapping[int, range]]:
    """The iteration of an axis at which the first statement below a Body runs, and the values of its variables."""
    first, around = next(instances(step.body.inside, step.around))
    return simplified(first.index[axis.dims[first.statement]], around.ranges), around.ranges


def _coefficient(expr: AffineExpr, dimension: int) -> int:
    form = linear_form(expr)
    return form.coefficients.get(dimension, 0) if form is not None else 0


def _boxes(model: KernelModel, array: int, step: _Step, prefetch: Prefetch) -> list[LocalBuffer]:
    """What the reads in a Body touch of an array: one box, or one each where that is less."""
    found = body_accesses(model, step.body, step.around.ranges, {array})
    reads = [replace(a, index=tuple(simplified(e, a.inner) for e in a.index)) for a in found if not a.writes]
    if any(read.varies for read in reads):
        message = f"calls decide how many elements of {prefetch.array} an iteration of {prefetch.axis} reads"
        raise ScheduleError(message, prefetch.line)
    each = [_in_order(local_buffer([read], step.around.depth), prefetch) for read in reads]
    apart = list(dict.fromkeys(each))
    whole = local_buffer(reads, step.around.depth) if len(apart) > 1 else None
    if whole is not None and prod(whole.shape) <= sum(prod(box.shape) for box in apart):
        return [_in_order(whole, prefetch)]
    return apart


def _in_order(box: LocalBuffer | None, prefetch: Prefetch) -> LocalBuffer:
    """A box by the axes of the array."""
    if box is None:
        message = (
            f"the elements of {prefetch.array} that an iteration of {prefetch.axis} reads are no box of constant size"
        )
        raise ScheduleError(message, prefetch.line)
    order = [box.axes.index(axis) for axis in range(len(box.axes))]
    return LocalBuffer(
        tuple(box.shape[k] for k in order), tuple(box.origin[k] for k in order), tuple(range(len(order)))
    )
