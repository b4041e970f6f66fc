"""What the schedules of a machine may name, from the figures of the machine."""

from __future__ import annotations

from functools import cache

from msc.poly.schedule_tree.abilities import PLAIN, Abilities, Scope, Unit
from msc.targets.machine import Machine


@cache
def abilities_of(machine: Machine) -> Abilities:
    """The scratchpads and matrix units of a machine, beside what every processor has."""
    if not machine.scratchpads and not machine.matrix:
        return PLAIN
    pads = {pad.name: Scope(pad.name, pad.bytes, pad.align) for pad in machine.scratchpads}
    units = {
        unit.name: Unit(
            unit.name,
            (unit.shape[0], unit.shape[1], unit.shape[2]),
            (unit.input,),
            (unit.output,),
            unit.reads,
            unit.writes,
            (unit.shape[0], unit.shape[1], unit.shape[2]),
        )
        for unit in machine.matrix
    }
    return Abilities({**PLAIN.scopes, **pads}, units)
