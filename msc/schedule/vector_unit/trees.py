"""The schedule trees of vector kernels, and what tiling a tree says.

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
two buffers each, and every statement runs over all of it. A statement that has none of the
axes of loops around stands before them; each task computes it again.

A reduction over more than UB holds runs chunk by chunk, of a task's arrays those that have the axis:

    for i0 parallel
      place t0, out0 in ub
      run S0
      for r1 tile 16384 pipeline 2
        place in0 in ub
        for r1 vector
          run S1
      run S2
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Axis, Block, Loop, Mark, Node, Place, Run, Tree, loops
from msc.schedule.vector_unit.axes import Axes
from msc.schedule.vector_unit.chunks import Chunked
from msc.schedule.vector_unit.tiling import Tiling
from msc.support.naming import unique
from msc.targets.davinci import DavinciTarget


def tree_of(model: KernelModel, axes: Axes, tiling: Tiling) -> Tree | None:
    """The tree of a tiling; None where a statement lacks an axis of tasks, and has one further in."""
    cut = [*tiling.outer, *([] if tiling.split is None else [tiling.split])]
    levels: list[list[int]] = [[] for _ in range(len(cut) + 1)]
    for number, own in enumerate(axes.statements):
        level = next((k for k, axis in enumerate(cut) if axis not in own), len(cut))
        if any(axis in own for axis in cut[level:]):
            return None
        levels[level].append(number)
    names = _axis_names(model, axes)
    body = Block()
    for level, numbers in reversed(list(enumerate(levels))):
        if level < len(cut):
            axis = cut[level]
            body = Block((_split(axes, tiling, names, body) if axis == tiling.split else _shared(names[axis], body),))
        outside = {array for inner in levels[:level] for array in _accessed(model, inner)}
        places = _places(model, _accessed(model, numbers) - outside)
        body = Block((*_statements(numbers, axes, tiling, names), *body.nodes), (*body.places, *places))
    return _tree(axes, names, body)


def _shared(name: str, body: Block) -> Loop:
    return Loop(name, body, None, "parallel")


def _accessed(model: KernelModel, numbers: Iterable[int]) -> set[int]:
    return {array for number in numbers for array, _ in model.statements[number].accesses()}


def _tree(axes: Axes, names: Sequence[str], body: Block) -> Tree:
    return Tree(tuple(Axis(names[k], axes.extents[k], axes.dims[k]) for k in range(len(names))), body)


def _places(model: KernelModel, arrays: Collection[int]) -> tuple[Place, ...]:
    return tuple(Place(name, "ub") for k, name in enumerate(array_names(model)) if k in arrays)


def tree_of_chunks(model: KernelModel, axes: Axes, tiling: Tiling, parts: Chunked) -> Tree:
    """The tree of a reduction in chunks, whose parts are those of the model."""
    assert tiling.split is not None
    names = _axis_names(model, axes)
    used = _accessed(model, range(len(model.statements)))
    moving = {array for array in used if parts.axis in axes.arrays[array]}
    over = Block(_statements(parts.over, axes, tiling, names), _places(model, moving))
    loop = Loop(names[parts.axis], over, tiling.tile, "pipeline", buffers=2)
    before, after = (_statements(numbers, axes, tiling, names) for numbers in (parts.before, parts.after))
    body = Block((*before, loop, *after), _places(model, used - moving))
    share = -(-axes.count(tiling.outer) // tiling.cores)
    if len(tiling.outer) == 1 and share > 1:
        name = names[tiling.outer[0]]
        return _tree(axes, names, Block((Loop(name, Block((Loop(name, body),)), share, "parallel"),)))
    for axis in reversed(tiling.outer):
        body = Block((_shared(names[axis], body),))
    return _tree(axes, names, body)


def chunk_in(tree: Tree) -> int | None:
    """How much of an axis a tree takes at a time: the first tile of a pipeline."""
    return next((loop.tile for loop in loops(tree) if loop.mark == "pipeline"), None)


def _split(axes: Axes, tiling: Tiling, names: Sequence[str], body: Block) -> Loop:
    assert tiling.split is not None
    name, extent = names[tiling.split], axes.extents[tiling.split]
    share = -(-tiling.tasks(axes) // tiling.cores)
    several = share > 1
    mark: Mark = "pipeline" if several and tiling.double else "parallel" if not several else ""
    inner = Loop(name, body, tiling.tile, mark, buffers=2 if mark == "pipeline" else 1)
    if tiling.outer or not several:
        return inner
    shared = share * tiling.tile if tiling.equal else tiling.tile
    return Loop(name, Block((inner,)), min(extent, shared), "parallel")


def _statements(numbers: Iterable[int], axes: Axes, tiling: Tiling, names: Sequence[str]) -> tuple[Node, ...]:
    return tuple(_statement(number, axes, tiling, names) for number in numbers)


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
    while body.nodes and isinstance(loop := body.nodes[-1], Loop) and loop.mark != "vector":
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
    made = Tiling(tuple(outer), split, tile, 1, mark in ("pipeline", "parallel"))
    if mark == "parallel":  # one task for each core
        return replace(made, cores=tasks, equal=True) if (tasks := made.tasks(axes)) <= target.cores.vector else None
    if split is None or outer or share is None or share == tile:
        return made
    return replace(made, cores=min(-(-axes.extents[split] // share), target.cores.vector), equal=True)


def _number(axis: Axis, axes: Axes) -> int | None:
    return next((k for k, dims in enumerate(axes.dims) if dict(dims) == dict(axis.dims)), None)
