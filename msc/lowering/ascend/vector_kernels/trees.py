"""The schedule trees of vector kernels: a tiling as a tree, and the tiling that a tree says.

    axis i0 4096: S0.0 S1.0 S2.0
    axis i1 4096: S1.1 S2.1
    for i0 tile 2 parallel
      for i0 tile 2 pipeline 2
        place in0, t0, out0 in ub
        for i0
          run S0
        for i0, i1 vector
          run S1

Cores share the iterations of the parallel loops: a core that starts earlier takes more. `for i0 tile 86 parallel`
around the same gives each core 86 rows instead. One pass over the pipeline's body is a task: its arrays are in UB, in
two buffers each, and every statement runs over all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msc.lowering.ascend.vector_kernels.axes import Axes
from msc.lowering.ascend.vector_kernels.tiling import Tiling
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Axis, Block, Loop, Mark, Node, Place, Run, Tree
from msc.support.naming import unique
from msc.targets.davinci import DavinciTarget


def tree_of(model: KernelModel, axes: Axes, tiling: Tiling) -> Tree | None:
    """The tree of a tiling; None where a statement lacks an axis that tasks are cut along."""
    cut = [*tiling.outer, *([] if tiling.split is None else [tiling.split])]
    if any(axis not in own for axis in cut for own in axes.statements):
        return None
    names = _axis_names(model, axes)
    places = tuple(Place(name, "ub") for name in array_names(model))
    body = Block(tuple(_statement(number, axes, tiling, names) for number in range(len(model.statements))), places)
    if tiling.split is not None:
        body = _split(axes, tiling, names, body)
    for axis in reversed(tiling.outer):
        body = Block((Loop(names[axis], body, None, "parallel"),))
    return Tree(tuple(Axis(names[k], axes.extents[k], axes.dims[k]) for k in range(len(names))), body)


def _split(axes: Axes, tiling: Tiling, names: Sequence[str], body: Block) -> Block:
    assert tiling.split is not None
    name, extent = names[tiling.split], axes.extents[tiling.split]
    share = -(-tiling.tasks(axes) // tiling.cores)
    several = share > 1
    mark: Mark = "pipeline" if several and tiling.double else "parallel" if not several else ""
    inner = Block((Loop(name, body, tiling.tile, mark, buffers=2 if mark == "pipeline" else 1),))
    if tiling.outer or not several:
        return inner
    shared = share * tiling.tile if tiling.equal else tiling.tile
    return Block((Loop(name, inner, min(extent, shared), "parallel"),))


def _statement(number: int, axes: Axes, tiling: Tiling, names: Sequence[str]) -> Node:
    own = [axis for axis in axes.statements[number] if axis not in tiling.outer]
    node: Node = Run((number,))
    for axis in reversed(own):
        mark: Mark = "vector" if axis == own[-1] else ""
        node = Loop(names[axis], Block((node,)), None, mark)
    return node


def _axis_names(model: KernelModel, axes: Axes) -> list[str]:
    """The names that statements have for their dimensions; a number is added where one is taken."""
    names: list[str] = []
    for dims in axes.dims:
        statement, dimension = next(iter(dims.items()))
        names.append(unique(model.statements[statement].names[dimension], names))
    return names


def tiling_in(tree: Tree, axes: Axes, target: DavinciTarget) -> Tiling | None:
    """The tiling that a tree says; None for a tree of another form."""
    numbers = {axis.name: _number(axis, axes) for axis in tree.axes}
    outer: list[int] = []
    split, tile, share, mark, body = None, 1, None, "", tree.body
    while len(body.nodes) == 1 and isinstance(loop := body.nodes[0], Loop) and loop.mark != "vector":
        axis = numbers[loop.axis]
        if axis is None or (split is not None and split != axis):
            return None
        if loop.tile is None:
            if split is not None or loop.mark != "parallel":
                break
            outer.append(axis)
        else:
            share = tile if split is not None else None
            split, tile, mark = axis, loop.tile, loop.mark
        body = loop.body
    made = Tiling(tuple(outer), split, tile, 1, mark == "pipeline")
    if mark == "parallel":
        share = tile
    if split is None or outer or share is None or (share == tile and mark != "parallel"):
        return made
    return replace(made, cores=min(-(-axes.extents[split] // share), target.cores.vector), equal=True)


def _number(axis: Axis, axes: Axes) -> int | None:
    return next((k for k, dims in enumerate(axes.dims) if dict(dims) == dict(axis.dims)), None)
