"""Which kernels threads share, and along which loop.

A team costs more than waking it: what one core wrote, the other must fetch from it. Kernels that take about that long
stay on one thread. Of the loops the outermost is taken that has iterations enough for all threads to end together: so
one kernel after the other gives a thread the same rows of an image. A choice by what each thread reads, channels where
weights are large, was slower in every network measured, since neighbours then exchange what they computed.
"""

from __future__ import annotations

from dataclasses import replace

from msc.poly.model import KernelModel
from msc.poly.plan import Plan
from msc.schedule.prediction import predict
from msc.targets.cpu import CpuTarget

TEAM_CYCLES = 30_000.0
"""What sharing one kernel costs at worst, itself and the kernels after it: about 8 us in small networks here, of which
waking the team takes less than one, and fetching what the other core wrote the rest."""


def shared(model: KernelModel, plan: Plan, target: CpuTarget, threads: int, reasons: list[str]) -> Plan:
    """The plan with one outer loop first and parallel, if that saves more than it costs."""
    trips = {i: m.extent // m.tile for i, m in enumerate(plan.band) if m.extent // m.tile > 1}
    if threads == 1 or not trips:
        return plan
    best = max(trips, key=lambda i: (min(trips[i], 4 * (threads or target.cores)), -i))
    rest = tuple(m for i, m in enumerate(plan.band) if i != best)
    parallel = replace(plan, band=(replace(plan.band[best], parallel=True), *rest))
    saved = predict(model, plan, target, 1).cycles - predict(model, parallel, target, threads).cycles
    if saved < TEAM_CYCLES:
        return plan
    reasons.append(f"threads share {plan.band[best].name} ({trips[best]} iterations)")
    return parallel
