"""Cycles of the bands of loops that matrix units perform, and of the copies into the scratchpads that they read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import ceil, prod

from msc.cost.access import term_dimension, terms_together
from msc.dialects.element_types import BYTES
from msc.poly.buffers import body_accesses, local_buffers
from msc.poly.contraction import contraction_of
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.nest import generate
from msc.poly.schedule_tree.intrinsics import sizes
from msc.poly.schedule_tree.nodes import Loop, Tree, all_blocks
from msc.poly.storage import bodies, outermost
from msc.targets.abilities import Unit
from msc.targets.machine import Machine


def unit_of(around: Sequence[Loop], machine: Machine) -> Unit | None:
    """The unit that performs a statement, by the loops around it."""
    name = next((loop.unit for loop in around if loop.mark == "intrinsic"), "")
    return next((unit for unit in machine.units if unit.name == name), None) if name else None


def instruction_of(model: KernelModel, number: int, machine: Machine) -> Unit | None:
    """The instruction on registers for whose words an array of a statement is laid out; None where none is."""
    statement = model.statements[number]
    groups = {terms_together(model, statement, array, index.results) for array, index in statement.accesses()[1:]}
    if groups <= {1} or (contraction := contraction_of(model, number)) is None:
        return None
    types = contraction.a.dtype, contraction.b.dtype, model.arrays[contraction.target].dtype
    lanes = machine.lanes(BYTES["f32"])
    units = (unit for unit in machine.units if unit.in_registers and unit.shape.k in groups and unit.shape.n == lanes)
    return min((unit for unit in units if unit.order(*types) is not None), key=lambda unit: unit.cycles, default=None)


def unit_cycles(tree: Tree, around: Sequence[Loop], unit: Unit, model: KernelModel, number: int) -> float:
    """The cycles of a statement that a matrix unit performs, by the loops around it.

    A function waits for its results in each call, and takes the cycles of a step for each that it makes.
    """
    at = next(k for k, loop in enumerate(around) if loop.mark == "intrinsic")
    calls, found = _iterations(tree, around[:at]), contraction_of(model, number)
    if not unit.is_function or found is None:
        return calls * unit.cycles + unit.latency
    left = {loop.axis: loop.tile or 1 for loop in around[:at]}
    points = sizes(model, tree, found, left)
    terms = term_dimension(model, model.statements[number])
    step = unit.terms(1 if terms is None else model.statements[number].extents[terms]) or unit.step.k
    rows = points["m"] / unit.step.m * unit.cycles
    return calls * (rows * ceil(points["n"] / unit.step.n) * ceil(points["k"] / step) + unit.latency)


def without_instruction(loops: Sequence[Loop]) -> tuple[Loop, ...]:
    """The loops around a statement with the steps of an instruction on registers as plain ones over single terms."""
    *around, terms = loops
    steps = next(k for k in reversed(range(len(around))) if around[k].axis == terms.axis)
    return tuple(replace(loop, tile=None) if k == steps else loop for k, loop in enumerate(around))


def _iterations(tree: Tree, loops: Sequence[Loop]) -> int:
    """The iterations of the innermost of some nested loops."""
    left, count = {axis.name: axis.extent for axis in tree.axes}, 1
    for loop in loops:
        count *= ceil(left[loop.axis] / (loop.tile or 1))
        left[loop.axis] = loop.tile or 1
    return count


def copies(model: KernelModel, tree: Tree, machine: Machine) -> dict[str, float]:
    """The cycles of the copies of inputs into each scratchpad."""
    pads = {pad.name: pad for pad in machine.scratchpads}
    found: dict[str, float] = {}
    if not pads:
        return found
    for array, scope, size, count in _copied(model, tree, pads.keys()):
        cycles = size * BYTES[model.arrays[array].dtype] / pads[scope].bytes_per_cycle + pads[scope].latency
        found[scope] = found.get(scope, 0.0) + count * cycles
    return found


def _copied(model: KernelModel, tree: Tree, scopes: Collection[str]) -> Iterator[tuple[int, str, int, int]]:
    """The inputs that blocks copy into some scopes: the array, the scope, elements of a copy, how many copies."""
    blocks, names = list(all_blocks(tree.body)), array_names(model)
    if not any(place.scope in scopes for block in blocks for place in block.places):
        return
    for body, around in bodies(generate(model, tree), outermost(model, tree)):
        for place in blocks[body.block].places:
            array = names.index(place.array)
            if place.scope in scopes and model.arrays[array].kind == "input":
                uses = body_accesses(model, body, around.ranges, {array})
                size = sum(prod(buffer.shape) for buffer in local_buffers(uses, around.depth) or ())
                yield array, place.scope, size, prod(map(len, around.ranges.values()))
