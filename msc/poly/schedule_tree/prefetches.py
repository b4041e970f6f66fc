"""What the prefetches of a tree request, and whether its kernel reads it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from xdsl.ir.affine import AffineExpr

from msc.poly.affine import bounds, simplified
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.scalar import Read, reads
from msc.poly.schedule_tree.nodes import Block, Prefetch, Run, ScheduleError, Tree, all_blocks, statements
from msc.targets.abilities import Abilities


@dataclass(frozen=True)
class Request:
    """The elements of `array` that statements read where a dimension of each, `dims`, is `ahead` further."""

    array: int
    ahead: int
    dims: Mapping[int, int]

    def distance(self, model: KernelModel, statement: int, read: Read) -> AffineExpr:
        """Elements from what a statement reads at a point to what it requests there, over the point."""
        point: list[AffineExpr] = [AffineExpr.dimension(d) for d in range(read.index.num_dims)]
        later = list(point)
        later[self.dims[statement]] = later[self.dims[statement]] + self.ahead
        shape, distance = model.arrays[read.operand].shape, AffineExpr.constant(0)
        for axis, expr in enumerate(read.index.results):
            moved = expr.replace_dims_and_symbols(later, []) + expr * -1
            distance = distance + moved * prod(shape[axis + 1 :])
        return simplified(distance, dict(enumerate(map(range, model.statements[statement].extents))))


def whole_in_memory(model: KernelModel, tree: Tree) -> dict[str, str]:
    """The arrays that lie in memory whole, each with the one whose memory that is: itself, or an output."""
    names, places = array_names(model.arrays), [p for block in all_blocks(tree.body) for p in block.places]
    scopes = {name: {place.scope for place in places if place.array == name} for name in names}
    whole = {place.array: place.array for place in tree.body.places if scopes[place.array] == {"workspace"}}
    unplaced = {name: name for name in names if not scopes[name]}
    return whole | unplaced | {name: home for name in names for home in names if scopes[name] == {home}}


def requests(model: KernelModel, tree: Tree) -> dict[int, tuple[Request, ...]]:
    """What each block requests, by the number of the block (`all_blocks`)."""
    return {
        number: tuple(_request(model, tree, prefetch) for prefetch in block.prefetches)
        for number, block in enumerate(all_blocks(tree.body))
        if block.prefetches
    }


def _request(model: KernelModel, tree: Tree, prefetch: Prefetch) -> Request:
    return Request(array_names(model.arrays).index(prefetch.array), prefetch.ahead, tree.axis(prefetch.axis).dims)


def check_prefetches(
    model: KernelModel,
    tree: Tree,
    block: Block,
    looped: Collection[str],
    abilities: Abilities,
) -> None:
    """Raise ScheduleError, with its line, for a prefetch of nothing that the statements of a block read later.

    `looped` are the axes of the loops around.
    """
    known = set[tuple[str, str]]()
    for prefetch in block.prefetches:
        problem = _form_problem(model, tree, block, prefetch, looped, abilities)
        if problem is None and (prefetch.array, prefetch.axis) in known:
            problem = f"{prefetch.array} is prefetched along {prefetch.axis} already"
        if problem is None:
            problem = _distance_problem(model, _request(model, tree, prefetch), prefetch, statements(block))
        if problem is not None:
            raise ScheduleError(problem, prefetch.line)
        known.add((prefetch.array, prefetch.axis))


def _form_problem(
    model: KernelModel,
    tree: Tree,
    block: Block,
    prefetch: Prefetch,
    looped: Collection[str],
    abilities: Abilities,
) -> str | None:
    names = array_names(model.arrays)
    if not abilities.prefetches:
        return "this machine has no caches into which it prefetches"
    if not all(isinstance(node, Run) for node in block.nodes):
        return "a prefetch stands right in front of the statements that read what it requests"
    if prefetch.array not in names:
        return f"there is no array {prefetch.array}: there are {', '.join(names)}"
    if prefetch.axis not in looped:
        return f"no loop around runs over {prefetch.axis}: there are {', '.join(looped) or 'none'}"
    if prefetch.array not in whole_in_memory(model, tree):
        return f"{prefetch.array} does not lie in memory whole: only what does is prefetched"
    return None


def _distance_problem(model: KernelModel, request: Request, prefetch: Prefetch, inside: frozenset[int]) -> str | None:
    """Why a request is for nothing that the statements read."""
    distances = list(_distances(model, request, inside))
    name, elements = prefetch.array, prod(model.arrays[request.array].shape)
    if not distances:
        return f"no statement here reads {name} at an index that is known ahead"
    if not any(map(any, distances)):
        return f"the statements here read the same of {name} in all iterations of {prefetch.axis}"
    if all(low >= elements or high <= -elements for low, high in distances):
        return f"{name} has {elements} elements: it ends before what lies {prefetch.ahead} iterations ahead"
    return None


def _distances(model: KernelModel, request: Request, inside: frozenset[int]) -> Iterator[tuple[int, int]]:
    """The least and the largest number of elements ahead, for each read of the array."""
    for number in sorted(inside & request.dims.keys()):
        statement = model.statements[number]
        for read in reads(statement.body):
            if read.operand == request.array and not read.indirect:
                yield bounds(request.distance(model, number, read), dict(enumerate(map(range, statement.extents))))
