"""What the schedules of a machine may name, from the figures of the machine."""

from __future__ import annotations

from functools import cache

from xdsl.ir import Operation

from msc.analysis.target import is_davinci, target_of
from msc.poly.schedule_tree.abilities import PLAIN, Abilities, Scope, Unit
from msc.targets.machine import Machine

_AXES = 16
"""Loops in each other that cores of an Ascend machine share. UB has no limit here: buffers there share room over time,
and who writes the kernel knows how much they take."""


def abilities_at(op: Operation) -> Abilities:
    """What schedules may name in the module around an operation: scopes of DaVinci cores where it is for those."""
    if is_davinci(op):
        return Abilities({**PLAIN.scopes, "ub": Scope("ub")}, overlaps=True, parallel=_AXES)
    return abilities_of(target_of(op).machine)


@cache
def abilities_of(machine: Machine) -> Abilities:
    """The memories of a machine with their room, its scratchpads among them, and its matrix units."""
    room = {"register": machine.register_file, "stack": machine.stack}
    plain = {name: Scope(name, room.get(name, 0)) for name in PLAIN.scopes}
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
    return Abilities({**plain, **pads}, units)
