"""Register tiles as moves on a schedule: an axis in tiles whose points every node runs, vectors innermost.

The tail of a tile, narrower than a vector, may be vectorized along another axis: across the rows of the tile, or along
a loop that only a sum has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msc.cost.access import strides
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.moves import (
    chain,
    find,
    fuse,
    listed,
    mapped,
    nested,
    outermost,
    put,
    shared_loop,
    sink,
    split,
)
from msc.poly.schedule_tree.nodes import Axis, Block, Cut, Loop, Mark, Node, Tree
from msc.poly.schedule_tree.parts import bound_of
from msc.schedule.loops.outline import Outline, outline

_ELEMENT_BYTES = 4


def tiled(tree: Tree, axis: str, size: int, how: Mark, *, ends_early: bool = False) -> Tree:
    """The tree with the only loop over an axis in tiles of `size`, whose points are innermost and marked `how`.

    If one tile has all iterations, there is no loop over tiles, unless calls decide where the axis ends and the points
    are no vectors.
    """
    loop = find(tree, axis)
    if size < tree.axis(axis).extent or (ends_early and how != "vector"):
        tree = split(tree, loop, size)
        loop = find(tree, axis)
    points = replace(loop, mark=how)
    return sink(put(tree, loop, points), points)


def retiled(model: KernelModel, tree: Tree, axis: str, size: int, how: Mark) -> Tree:
    """The tree with an axis in tiles of `size`; with tiles of one iteration, the loop stays as it is."""
    if size == 1:
        return tree
    known = tree.axis(axis)
    ends_early = bound_of(model, known, frozenset(known.dims)) is not None
    return tiled(tree, axis, min(size, known.extent), how, ends_early=ends_early)


def with_blocks_outermost(
    model: KernelModel, tree: Tree, over: Sequence[Mapping[int, int]], lanes: int, pair: int
) -> Tree:
    """The tree with its loops `over` blocks, by the dimensions of statements, around all others.

    Without reductions, tiles of vectors are as wide as a pair of lines, of `pair` bytes, if that divides their loop.
    """
    names = [axis.name for dims in over for axis in tree.axes if dims.items() <= axis.dims.items()]
    columns = outline(tree).vector
    for name in reversed(names):
        if name == columns and not any(s.combine for s in model.statements):
            wide, extent = max(lanes, pair // _ELEMENT_BYTES), tree.axis(name).extent
            width = lanes if extent % wide else wide
            tree = retiled(model, fuse(tree, name), name, width, "vector")
        loop = shared_loop(tree, name)
        tree = tree if loop is None else outermost(tree, loop)
    return listed(tree, names)


def vectors_innermost(tree: Tree, node: Node, loop: Loop) -> Tree:
    """The tree with a loop of a node innermost, as its only vector loop."""
    others = [replace(each, mark="") if each.mark == "vector" else each for each in chain(node) if each is not loop]
    last = list(chain(node))[-1]
    (new,) = nested([*others, replace(loop, mark="vector")], last.body).nodes
    return put(tree, node, new)


def with_tail_along(tree: Tree, columns: str, tail: int, along: str) -> Tree:
    """The tree whose last `tail` columns run as vectors along another axis in all nodes."""
    shape, at = outline(tree), tree.axis(columns).extent - tail
    for node in shape.nodes:
        loops = list(chain(node))
        if loops and loops[-1].axis == columns and loops[-1].mark == "vector":
            new = _along_own(shape, node, loops, at, along) or _across(shape, loops, at, along)
            tree = tree if new is None else put(tree, *new)
    return tree


def _along_own(shape: Outline, node: Node, loops: list[Loop], at: int, along: str) -> tuple[Node, Node] | None:
    """Along a loop of this node alone: the tail gets loops of its own, and the rest runs before it."""
    own, points = shape.own(node), _points(loops)
    carrier = next((loop for loop in own if loop.axis == along), None)
    if carrier is None:
        return None
    first = own[0]
    around = [loop for loop in loops[loops.index(first) :] if loop not in points and loop is not carrier]
    inside = [*points[:-1], replace(points[-1], mark="unroll")]
    (tail,) = nested([*around, replace(carrier, mark="vector"), *inside], loops[-1].body).nodes
    return first, Cut(loops[-1].axis, at, Block((first,)), Block((tail,)))


def _across(shape: Outline, loops: list[Loop], at: int, along: str) -> tuple[Node, Node] | None:
    """Across the rows of the tile; both parts share the node's own loops, so that sums stay in registers."""
    points = _points(loops)
    *others, lanes = points
    row = next((loop for loop in others if loop.axis == along), others[-1] if others else None)
    outside = [loop for loop in others if loop is not row]
    across = [replace(lanes, mark="unroll"), *([replace(row, mark="vector")] if row is not None else [])]
    (tail,) = nested([*outside, *across], lanes.body).nodes
    (head,) = nested([_sequential(loop, along, shape.sums) for loop in points], lanes.body).nodes
    return points[0], Cut(lanes.axis, at, Block((head,)), Block((tail,)))


def _sequential(loop: Loop, along: str, sums: bool) -> Loop:
    """The loop without unrolling if it is over rows and nothing is summed: only the tail is a tile."""
    return loop if sums or loop.axis != along or loop.mark != "unroll" else replace(loop, mark="")


def _points(loops: list[Loop]) -> list[Loop]:
    """The loops of a register tile, innermost in a chain."""
    count = next((k for k, loop in enumerate(reversed(loops)) if loop.mark not in ("unroll", "vector")), len(loops))
    return loops[len(loops) - count :]


def without_marks(tree: Tree, how: Mark) -> Tree:
    """The tree without the mark `how` on any loop."""
    return mapped(tree, lambda n: replace(n, mark="", least=0) if isinstance(n, Loop) and n.mark == how else n)


def is_crossed(model: KernelModel, row: Axis, vector: Axis) -> bool:
    """Whether some array is contiguous along `row`, and not along `vector`."""
    return any(
        along_row == 1 and along_vector > 1
        for s, d in row.dims.items()
        if s in vector.dims
        for along_row, along_vector in zip(
            strides(model, model.statements[s], d), strides(model, model.statements[s], vector.dims[s]), strict=True
        )
    )
