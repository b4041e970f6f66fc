"""Checks of the prefetches of a tree: the loop of each, and that its kernel reads the requested data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir.affine import AffineExpr

from msc.poly.affine import bounds, simplified
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.scalar import Read, reads
from msc.poly.schedule_tree.nodes import Block, Loop, Prefetch, Run, ScheduleError, Tree, all_blocks, blocks, walk
from msc.targets.abilities import Abilities


def whole_in_memory(model: KernelModel, tree: Tree) -> dict[str, str]:
    """The arrays that lie in memory whole, each with the one whose memory that is: itself, or an output."""
    names, places = array_names(model), [p for block in all_blocks(tree.body) for p in block.places]
    scopes = {name: {place.scope for place in places if place.array == name} for name in names}
    whole = {place.array: place.array for place in tree.body.places if scopes[place.array] == {"workspace"}}
    unplaced = {name: name for name in names if not scopes[name]}
    return whole | unplaced | {name: home for name in names for home in names if scopes[name] == {home}}


@dataclass(frozen=True)
class Requested:
    """A prefetch of a `block` and the loop, the innermost one around over its axis, of which it requests an iteration.

    `around` are the blocks down to it; of the loops around some are `outside` of that one, and some `between`.
    """

    prefetch: Prefetch
    block: Block
    loop: Loop
    around: Sequence[Block]
    outside: Sequence[Loop]
    between: Sequence[Loop]

    def cut_from(self, loop: Loop, extent: int) -> int:
        """How many iterations of its axis a loop runs over: those that the loops around leave."""
        loops = (*self.outside, self.loop, *self.between)
        tiles = [each.tile for each in loops[: loops.index(loop)] if each.axis == loop.axis]
        return (tiles[-1] if tiles else None) or extent


def requested(tree: Tree) -> Iterator[Requested]:
    """The prefetches of a tree. Raises ScheduleError for one along an axis that no loop around runs over."""
    return _below(tree.body, (), (tree.body,))


def _below(block: Block, loops: Sequence[Loop], path: Sequence[Block]) -> Iterator[Requested]:
    """`path` are the blocks down to this one, and `loops` those around."""
    for prefetch in block.prefetches:
        known = [k for k, loop in enumerate(loops) if loop.axis == prefetch.axis]
        if not known:
            there = dict.fromkeys(each.axis for each in loops)
            message = f"no loop around runs over {prefetch.axis}: there are {', '.join(there) or 'none'}"
            raise ScheduleError(message, prefetch.line)
        at = known[-1]
        yield Requested(prefetch, block, loops[at], path, loops[:at], loops[at + 1 :])
    for node in block.nodes:
        for each in blocks(node):
            yield from _below(each, (*loops, node) if isinstance(node, Loop) else loops, (*path, each))


def check_prefetches(model: KernelModel, tree: Tree, abilities: Abilities) -> None:
    """Raise ScheduleError, with its line, for a prefetch of nothing that is read later."""
    known = set[tuple[int, str, str]]()
    for each in requested(tree):
        key = id(each.block), each.prefetch.array, each.prefetch.axis
        problem = _form_problem(model, tree, each, abilities)
        if problem is None and key in known:
            problem = f"{each.prefetch.array} is prefetched along {each.prefetch.axis} already"
        problem = problem or _distance_problem(model, tree, each)
        if problem is not None:
            raise ScheduleError(problem, each.prefetch.line)
        known.add(key)


def _form_problem(model: KernelModel, tree: Tree, each: Requested, abilities: Abilities) -> str | None:
    names, name = array_names(model), each.prefetch.array
    if not abilities.prefetches:
        return "this machine has no caches into which it prefetches"
    if name not in names:
        return f"there is no array {name}: there are {', '.join(names)}"
    scopes = {place.scope for block in all_blocks(tree.body) for place in block.places if place.array == name}
    if scopes - {"stack", "workspace", *names}:
        return f"{name} is not in cached memory: it is in {', '.join(sorted(scopes))}"
    if any(p.array == name and p.scope not in names for block in all_blocks(each.loop.body) for p in block.places):
        return f"{name} is stored for one iteration of {each.prefetch.axis} only"
    if scopes and not any(place.array == name for block in each.around for place in block.places):
        return f"{name} is not stored here: no block around this one places it"
    if each.prefetch.ahead % (each.loop.tile or 1):
        return f"the loop around runs over tiles of {each.loop.tile} {each.prefetch.axis}: ahead is a multiple of it"
    return None


def _distance_problem(model: KernelModel, tree: Tree, each: Requested) -> str | None:
    """Why a request is for nothing that the statements of the loop read."""
    name, ahead = each.prefetch.array, each.prefetch.ahead
    array = array_names(model).index(name)
    order = [s for node in walk(each.loop.body) if isinstance(node, Run) for s in node.statements]
    found = [(s, read) for s in order for read in reads(model.statements[s].body) if _is_of(read, array)]
    if not found:
        return f"no statement in the loop over {each.prefetch.axis} reads {name} at an affine index"
    if not ahead:
        first = next((s for node in walk(each.block) if isinstance(node, Run) for s in node.statements), order[-1])
        late = any(order.index(s) >= order.index(first) for s, _ in found)
        return None if late else f"the statements that read {name} in this iteration run before"
    distances = [_distance(model, tree, each.prefetch, s, read) for s, read in found]
    elements = prod(model.arrays[array].shape)
    if not any(map(any, distances)):
        return f"the statements there read the same elements of {name} in all iterations of {each.prefetch.axis}"
    if all(low >= elements or high <= -elements for low, high in distances):
        return f"{name} has {elements} elements: it ends before the element {ahead} iterations ahead"
    return None


def _is_of(read: Read, array: int) -> bool:
    return read.operand == array and not read.indirect


def _distance(model: KernelModel, tree: Tree, prefetch: Prefetch, number: int, read: Read) -> tuple[int, int]:
    """The least and the largest number of elements from what a statement reads to what it reads so far ahead."""
    statement, shape = model.statements[number], model.arrays[read.operand].shape
    later: list[AffineExpr] = [AffineExpr.dimension(d) for d in range(read.index.num_dims)]
    later[tree.axis(prefetch.axis).dims[number]] += prefetch.ahead
    distance: AffineExpr = AffineExpr.constant(0)
    for axis, expr in enumerate(read.index.results):
        moved = expr.replace_dims_and_symbols(later, []) + expr * -1
        distance = distance + moved * prod(shape[axis + 1 :])
    ranges = dict(enumerate(map(range, statement.extents)))
    return bounds(simplified(distance, ranges), ranges)
