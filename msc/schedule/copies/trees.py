"""The schedule trees of kernels that only move data: plans as a tree, and the plans that a tree says.

    axis i0 517: S0.0
    axis i1 300: S0.1
    for i0 tile 64 parallel, i1 tile 32 parallel, i1 tile 32 pipeline 2
      place in0, out0 in ub
      for i0, i1 vector
        run S0

Each box has loops of its own. A tile of the innermost one comes to UB, and leaves in the order in which it is written;
`vector` are the elements that lie together there; a gather, where data says what is read, has none. Cores share the
iterations of the parallel loops. Where there is but one, `for i0 tile 640 parallel, i0 tile 64 pipeline 2` gives each
core 640. Without a `pipeline` there is one buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Axis, Block, Loop, Mark, Node, Place, Run, Tree
from msc.schedule.copies.boxes import Box, BoxAxis
from msc.schedule.copies.plans import CopyPlan
from msc.schedule.copies.tiles import BoxTile, can_move, forms_of
from msc.support.naming import unique

Names = Mapping[tuple[int, int], str]
"""The name of the axis that is a dimension of a statement."""


def tree_of(model: KernelModel, plans: Sequence[CopyPlan]) -> Tree:
    """The tree of plans, one for each statement, with an axis for each dimension."""
    names: dict[tuple[int, int], str] = {}
    axes: list[Axis] = []
    for number, statement in enumerate(model.statements):
        for dimension, extent in enumerate(statement.extents):
            name = unique(statement.names[dimension], names.values())
            names[number, dimension] = name
            axes.append(Axis(name, extent, {number: dimension}))
    return Tree(tuple(axes), _body(model, plans, names))


def names_in(tree: Tree) -> Names:
    """The names that a tree gives dimensions."""
    return {dimension: axis.name for axis in tree.axes for dimension in axis.dims.items()}


def tree_with(model: KernelModel, plans: Sequence[CopyPlan], tree: Tree) -> Tree:
    """The tree of plans with the axes of another tree."""
    return Tree(tree.axes, _body(model, plans, names_in(tree)))


def _body(model: KernelModel, plans: Sequence[CopyPlan], names: Names) -> Block:
    nests = [_nest(model, plan, names) for plan in plans]
    if len(nests) == 1:
        return nests[0]
    return Block(tuple(node for nest in nests for node in nest.nodes))


def _nest(model: KernelModel, plan: CopyPlan, names: Names) -> Block:
    """The loops of a box around its statement."""
    number = plan.tile.box.statement
    extents = model.statements[number].extents
    cuts = plan.cuts or [(d, 1) for d in range(len(extents))][-1:]
    arrays = array_names(model)
    held = [array for array in (plan.tile.box.source, plan.tile.box.target) if array is not None]
    points = Block((_points(plan, names),), tuple(Place(arrays[array], "ub") for array in held))
    if not cuts:
        return points
    *around, (last, size) = cuts
    body = _last(plan, names[number, last], size or 1, extents[last], points)
    for dimension, tile in reversed(around):
        body = Block((Loop(names[number, dimension], body, tile, "parallel" if plan.shared else ""),))
    return body


def _last(plan: CopyPlan, name: str, size: int, extent: int, points: Block) -> Block:
    """The loop over tiles inside which arrays lie in UB, and the parallel one around it."""
    buffers = plan.tile.buffers
    if plan.shared and plan.group == 1 and buffers == 1:
        return Block((Loop(name, points, size, "parallel"),))
    mark: Mark = "pipeline" if buffers > 1 else ""
    inner = Block((Loop(name, points, size, mark, buffers=buffers),))
    return Block((Loop(name, inner, min(extent, plan.group * size), "parallel"),)) if plan.shared else inner


def _points(plan: CopyPlan, names: Names) -> Node:
    """The loops over the elements of a tile, around the statement."""
    number = plan.tile.box.statement
    outside = {dimension for dimension, tile in plan.cuts if tile is None}
    lanes = [dimension for dimension, _ in plan.tile.lane.dims]
    inside = [d for d in (*(d for d, _ in plan.tile.row.dims), *lanes) if d not in outside]
    node: Node = Run((number,))
    for dimension in reversed(inside):
        mark: Mark = "vector" if lanes and dimension == inside[-1] and plan.tile.box.chosen is None else ""
        node = Loop(names[number, dimension], Block((node,)), None, mark)
    return node


def plans_in(tree: Tree, model: KernelModel, boxes: Sequence[Box]) -> list[CopyPlan] | None:
    """The plans that a tree says, or those that come closest; None for a tree without a loop for each box.

    Whether they are what it says, `tree_with` tells. UB may lack room for them.
    """
    if len(tree.body.nodes) != len(boxes):
        return None
    names = names_in(tree)
    found = [_plan_in(node, model, box, names) for node, box in zip(tree.body.nodes, boxes, strict=True)]
    plans = [plan for plan in found if plan is not None]
    return plans if len(plans) == len(found) else None


def _plan_in(node: Node, model: KernelModel, box: Box, names: Names) -> CopyPlan | None:
    loops = list(_chain(node))
    possible = [plan for tile in _tiles(loops, box, names) for plan in _plans(loops, tile)]
    written = [_flat(loop) for loop in loops]

    def same(plan: CopyPlan) -> tuple[bool, int]:
        own = [_flat(loop) for made in _nest(model, plan, names).nodes for loop in _chain(made)]
        pairs = (pair for mine, theirs in zip(own, written, strict=False) for pair in zip(mine, theirs, strict=True))
        return own == written, sum(a == b for a, b in pairs) - abs(len(own) - len(written))

    return max(possible, key=same, default=None)


def _chain(node: Node) -> Iterator[Loop]:
    """A loop and those that it alone holds."""
    while isinstance(node, Loop):
        yield node
        if len(node.body.nodes) != 1:
            return
        node = node.body.nodes[0]


def _flat(loop: Loop) -> tuple[object, ...]:
    return loop.axis, loop.tile, loop.mark, loop.buffers, loop.body.places


def _tiles(loops: Sequence[Loop], box: Box, names: Names) -> Iterator[BoxTile]:
    """The tiles of a box with the sizes that loops say, in each form."""
    sizes = {loop.axis: loop.tile for loop in loops if loop.tile is not None}
    double = any(loop.mark == "pipeline" for loop in loops)
    for form, row, lane in forms_of(box):
        rows, lanes = (_size(axis, box, sizes, names) for axis in (row, lane))
        tile = BoxTile(box, form, row, lane, rows, lanes, double or box.source is None)
        if can_move(tile):
            yield tile


def _size(axis: BoxAxis, box: Box, sizes: Mapping[str, int], names: Names) -> int:
    """How much of an axis a tile has: of one dimension what is written, and all of those further in."""
    inside = axis.extent
    for position, (dimension, extent) in enumerate(axis.dims):
        inside //= extent
        size = sizes.get(names.get((box.statement, dimension), ""))
        if size is not None and size <= extent and (position == 0 or extent % size == 0):
            return size * inside
    return axis.extent


def _plans(loops: Sequence[Loop], tile: BoxTile) -> Iterator[CopyPlan]:
    """The plans of a tile that loops may say."""
    shared = any(loop.mark == "parallel" for loop in loops)
    yield CopyPlan(tile, shared)
    tiled = [loop for loop in loops if loop.tile is not None]
    if shared and len(tiled) > 1 and tiled[-2].axis == tiled[-1].axis:
        plan = CopyPlan(tile, shared, -(-(tiled[-2].tile or 1) // (tiled[-1].tile or 1)))
        if len(plan.cuts) == 1:
            yield plan
