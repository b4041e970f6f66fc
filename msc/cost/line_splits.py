"""The share of an access's vectors that cross the border between two cache lines."""

from __future__ import annotations

from math import gcd

from msc.cost.access import IRREGULAR, strides
from msc.dialects.element_types import BYTES
from msc.poly.model import KernelModel, KernelStatement
from msc.targets.machine import Machine


def share_split(
    model: KernelModel, statement: KernelStatement, access: int, vector: int, lanes: int, machine: Machine
) -> float:
    """The fraction of an access's contiguous vectors along `vector` that cross the end of a line.

    Arrays begin at a line; vectors of local arrays cross none.
    """
    number, index = statement.accesses()[access]
    array, every = model.arrays[number], range(len(statement.extents))
    if array.kind == "internal" or strides(model, statement, vector)[access] != 1:
        return 0.0
    size = BYTES[array.dtype]
    line, bytes_of_vector = machine.line // size, min(lanes, statement.extents[vector]) * size
    steps = [(strides(model, statement, d)[access], statement.extents[d]) for d in every if d != vector]
    if line < 2 or any(step >= IRREGULAR for step, _ in steps):
        return 0.0
    zeros = (0,) * len(statement.extents)
    start = sum(e.eval(zeros, ()) * s for e, s in zip(index.results, array.strides, strict=True))
    places = [float(k == start % line) for k in range(line)]
    for step, extent in (*steps, (lanes, -(-statement.extents[vector] // lanes))):
        places = _moved(places, step % line, extent)
    unit = min(int(machine.vector_bytes * machine.part), bytes_of_vector)
    return sum(part * _crossing(k * size, bytes_of_vector, unit, machine.line) for k, part in enumerate(places))


def _moved(places: list[float], step: int, extent: int) -> list[float]:
    """How often an access begins at each place of a line, after a loop moves it."""
    line = len(places)
    if not step or extent == 1:
        return places
    count = min(extent, line // gcd(step, line))
    return [sum(places[(k - n * step) % line] for n in range(count)) / count for k in range(line)]


def _crossing(begin: int, size: int, unit: int, line: int) -> float:
    """The part of the units of a vector that cross the end of a line."""
    units = range(begin, begin + size, unit)
    return sum(place % line + unit > line for place in units) / len(units)
