"""What the schedules of a machine may name, from the figures of the machine."""

from __future__ import annotations

from functools import cache

from xdsl.ir import Operation

from msc.analysis.target import davinci_of, is_davinci, target_of
from msc.poly.schedule_tree.abilities import PLAIN, Abilities, Scope, Unit
from msc.targets.davinci import DavinciTarget
from msc.targets.machine import Machine

_AXES = 16
"""Loops in each other that cores of an Ascend machine share. UB has no limit here: buffers there share room over time,
and who writes the kernel knows how much they take."""


def abilities_at(op: Operation) -> Abilities:
    """What schedules may name in the module around an operation: scopes of DaVinci cores where it is for those."""
    return davinci_abilities(davinci_of(op)) if is_davinci(op) else abilities_of(target_of(op).machine)


def davinci_abilities(target: DavinciTarget) -> Abilities:
    """The memories of a DaVinci core, and its cube: `mad` multiplies tiles of L0A and L0B into L0C."""
    sizes, align = target.buffers, target.alignment
    rooms = {
        "l1": Scope("l1", sizes.l1 - sizes.l1_reserved, align.l1),
        "l0a": Scope("l0a", sizes.l0a, align.l0a),
        "l0b": Scope("l0b", sizes.l0b, align.l0b),
        "l0c": Scope("l0c", sizes.l0c, align.l0c),
        "ub": Scope("ub"),
    }
    inputs = ("f16", "i8", "ui8", *(("bf16", "f32") if target.architecture in ("2201", "3510") else ()))
    unit = Unit("mad", (4095, 4095, 4095), inputs, ("f32", "i32"), ("l0a", "l0b"), "l0c", (16, 16, 16))
    scopes, units = {**PLAIN.scopes, **rooms}, {unit.name: unit}
    return Abilities(scopes, units, overlaps=True, parallel=_AXES, lanes=False, prefetches=False)


@cache
def abilities_of(machine: Machine) -> Abilities:
    """The memories of a machine with their room, its scratchpads among them, and its matrix units."""
    room = {"register": machine.register_file, "stack": machine.stack_of_places}
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
