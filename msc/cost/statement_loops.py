"""How a schedule tree cuts each statement: the dimensions that are rows of a register tile, vectors, steps."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod

from msc.cost.statement_tiles import StatementTile
from msc.poly.schedule_tree.nodes import Block, Cut, Loop, Run, Tree


@dataclass(frozen=True)
class StatementLoops:
    """The loops around a statement: `around` are all, outermost first, `own` those that no other node shares.

    Statements directly inside the same loops have one `around`.
    """

    statement: int
    around: tuple[Loop, ...]
    own: tuple[Loop, ...]
    cut: Cut | None
    """The cut whose head contains them."""
    requested: tuple[str, ...] = ()
    """The arrays that each step prefetches: each iteration of the innermost loop outside of a tile."""


def statement_loops(tree: Tree) -> dict[int, StatementLoops]:
    """The loops of each statement, by its number; in a cut, those of the head."""
    found: dict[int, StatementLoops] = {}
    for each in _visit(tree.body, (), (), None):
        found.setdefault(each.statement, each)
    return found


def _visit(
    block: Block, around: tuple[Loop, ...], own: tuple[Loop, ...], cut: Cut | None, before: tuple[str, ...] = ()
) -> Iterator[StatementLoops]:
    """The statements of a block; `before` is what the step around it prefetches."""
    alone = own if len(block.nodes) == 1 else ()
    asked = (*before, *(prefetch.array for prefetch in block.prefetches))
    for node in block.nodes:
        match node:
            case Loop():
                yield from _visit(node.body, (*around, node), (*alone, node), cut, asked if node.mark else ())
            case Cut():
                yield from _visit(node.head, around, alone, node, asked)
                yield from _visit(node.tail, around, alone, None, asked)
            case Run():
                for statement in node.statements:
                    yield StatementLoops(statement, around, alone, cut, asked)


def tile_of(tree: Tree, loops: StatementLoops, reduced: Collection[int], plain: bool, beside: int = 1) -> StatementTile:
    """The register tile of a statement that reduces some of its dimensions, with the order of its steps.

    If it is `plain`, no sums stay in registers, and the tile also has the loops over single elements. `beside` is the
    number of statements in its innermost loop.
    """
    number, tiled = loops.statement, {loop.axis for loop in loops.around if loop.tile is not None}
    sizes = {loop.axis: loop.tile for loop in loops.around if loop.tile is not None}

    def dim(loop: Loop) -> int:
        return tree.axis(loop.axis).dims[number]

    def size(loop: Loop) -> int:
        return sizes.get(loop.axis) or tree.axis(loop.axis).extent

    points = [loop for loop in loops.own if loop.tile is None]
    steps = [loop for loop in points if loop.mark == "" and dim(loop) in reduced]
    rows = [loop for loop in points if loop.mark == "unroll" or (loop.axis in tiled and loop not in steps)]
    rows = [loop for loop in rows if loop.mark != "vector"]
    inner = [loop for loop in points if loop not in rows and loop.mark != "vector"]
    lanes = next((loop for loop in loops.around if loop.mark == "vector"), None)
    blocks = prod(ceil(tree.axis(loop.axis).extent / size(loop)) for loop in steps)
    counted = tuple((dim(loop), size(loop)) for loop in rows)
    below = tuple(dim(loop) for loop in inner)
    single = [loop for loop in loops.own if loop.tile is None and loop.mark == "" and loop.axis not in tiled]
    one_by_one = tuple(dim(loop) for loop in single) if plain else ()
    if lanes is None:
        asked = loops.requested
        return StatementTile(counted, None, 1, below, 0, None, one_by_one, blocks, asked, beside)
    if lanes in points and dim(lanes) in reduced:
        below = (*below, dim(lanes))
    tail, across = _tail(tree, loops, number)
    width, asked = size(lanes), loops.requested
    return StatementTile(counted, dim(lanes), width, below, tail, across, one_by_one, blocks, asked, beside)


def shared_sizes(tree: Tree, all_loops: Sequence[StatementLoops]) -> dict[str, int]:
    """The iterations of axes in one run of the innermost block around some statements; other axes run whole."""
    common = list[Loop]()
    for loops in zip(*(each.around for each in all_loops), strict=False):
        if any(loop is not loops[0] for loop in loops):
            break
        common.append(loops[0])
    return {loop.axis: loop.tile or 1 for loop in common}


def _tail(tree: Tree, loops: StatementLoops, number: int) -> tuple[int, int | None]:
    """The number of tail columns that run as vectors along another dimension, and that dimension."""
    if loops.cut is None:
        return 0, None
    tail = next(each for each in _visit(loops.cut.tail, (), (), None) if each.statement == number)
    lanes = next((loop for loop in tail.around if loop.mark == "vector"), None)
    if lanes is None:
        return 0, None
    return tree.axis(loops.cut.axis).extent - loops.cut.at, tree.axis(lanes.axis).dims[number]
