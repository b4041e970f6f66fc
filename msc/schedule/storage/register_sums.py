"""Copies in registers, a tile at a time, of sums that are in memory between blocks of a reduction."""

from __future__ import annotations

from math import prod

from msc.dialects.element_types import BYTES
from msc.poly.buffers import steps_along, takes_all
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.moves import cache_write
from msc.poly.schedule_tree.nodes import Loop, Tree, all_blocks
from msc.schedule.loops.outline import loops_around
from msc.targets.machine import Machine


def with_sums_in_registers(model: KernelModel, tree: Tree, machine: Machine) -> Tree:
    """The tree with a copy of each tile of sums that registers hold, in the block that sums it up.

    Takes a tree with places.
    """
    names = array_names(model.arrays)
    scopes = {place.array: place.scope for block in all_blocks(tree.body) for place in block.places}
    for number, statement in enumerate(model.statements):
        name = names[statement.target]
        if statement.combine is not None and scopes.get(name, "register") != "register":
            tree = _with_copy(model, tree, number, name, machine)
    return tree


def _with_copy(model: KernelModel, tree: Tree, statement: int, name: str, machine: Machine) -> Tree:
    path = list(loops_around(tree.body, statement))
    steps = [k for k, loop in enumerate(path) if _is_step(model, tree, statement, loop)]
    if not steps or steps[0] == 0 or len(path[steps[0] - 1].body.nodes) > 1:
        return tree
    inside, around = path[steps[0] :], path[steps[0] - 1]
    points = [loop for loop in inside if not _is_step(model, tree, statement, loop)]
    if any(loop.mark not in ("unroll", "vector") for loop in points):
        return tree
    sizes = {loop.axis: loop.tile for loop in path if loop.tile is not None}
    axes = [tree.axis(loop.axis) for loop in points]
    inside = {axis.dims[statement]: range(sizes.get(axis.name, axis.extent)) for axis in axes}
    if not all(takes_all(steps, inside) for steps in steps_along(model.statements[statement].write, inside)):
        return tree  # the copy would hold sums of other tiles, too
    elements = prod(map(len, inside.values()))
    if elements * BYTES[model.arrays[model.statements[statement].target].dtype] > machine.register_file:
        return tree
    return cache_write(tree, name, around, "register")


def _is_step(model: KernelModel, tree: Tree, statement: int, loop: Loop) -> bool:
    """Whether a loop runs over steps of a reduction one by one."""
    dim = tree.axis(loop.axis).dims[statement]
    return loop.tile is None and not loop.mark and dim in model.statements[statement].reduced
