"""Which kernels threads share, and along which loop.

A team costs little; what one core wrote, the other must fetch from it, and that costs more. So kernels
that take about that long stay on one thread, but for those that read what several threads wrote: alone they would fetch
it too. Of the loops with iterations enough for all threads to end together, the one that moves furthest in the output
is taken, so that one kernel after the other gives a thread the same rows of an image. What all threads then read,
weights mostly, must stay in the second cache of each; otherwise it is the outermost loop.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from msc.dialects.element_types import BYTES
from msc.poly.model import KernelModel
from msc.poly.plan import Member, Plan
from msc.schedule.access import strides
from msc.schedule.prediction import predict
from msc.targets.cpu import CpuTarget

TEAM_CYCLES = 24_000.0
"""What sharing one kernel costs at worst, itself and the kernels after it: about 8 us in small networks here, of which
the team takes less than one, and fetching what the other core wrote the rest."""

FOLLOWING_CYCLES = 10_000.0
"""The same for a kernel that reads what several threads wrote."""


def shared(
    model: KernelModel, plan: Plan, target: CpuTarget, threads: int, reasons: list[str], follows: bool = False
) -> Plan:
    """The plan with one outer loop, of all groups, first and parallel, if that saves more than it costs.

    `follows` says that several threads wrote what the kernel reads.
    """
    whole = max((len(m.dims) for m in plan.band), default=0)
    trips = {i: m.extent // m.tile for i, m in enumerate(plan.band) if m.extent // m.tile > 1 and len(m.dims) == whole}
    if threads == 1 or not trips:
        return plan
    enough = 4 * (threads or target.cores)
    best = max(trips, key=lambda i: (min(trips[i], enough), _reach(model, plan.band[i], target), -i))
    rest = tuple(m for i, m in enumerate(plan.band) if i != best)
    parallel = replace(plan, band=(replace(plan.band[best], parallel=True), *rest))
    saved = predict(model, plan, target, 1).cycles - predict(model, parallel, target, threads).cycles
    if saved < (FOLLOWING_CYCLES if follows else TEAM_CYCLES):
        return plan
    reasons.append(f"threads share {plan.band[best].name} ({trips[best]} iterations)")
    return parallel


def _reach(model: KernelModel, member: Member, target: CpuTarget) -> int:
    """How far apart in an output neighbours along a loop lie; 0 if what all threads would read is too much."""
    moving, reach = set[int](), 0
    for number, dim in member.dims.items():
        statement = model.statements[number]
        steps = strides(model, statement, dim)
        moving |= {array for (array, _), step in zip(statement.accesses(), steps, strict=True) if step}
        if model.arrays[statement.target].kind == "output":
            reach = max(reach, abs(steps[0]))
    common = (a for k, a in enumerate(model.arrays) if a.kind == "input" and k not in moving)
    return reach if sum(prod(a.shape) * BYTES[a.dtype] for a in common) <= target.l2 // 2 else 0
