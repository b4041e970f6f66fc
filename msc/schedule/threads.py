"""Which kernels threads share, and along which loop.

A team costs more than waking it: what one core wrote, the other must fetch from it. Kernels that take about that long
stay on one thread. Of the loops the one is taken that leaves each thread the least to read, by the cost model: rows of
an image where weights are small, channels where they are large.
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
    alone = predict(model, plan, target, 1).cycles
    loops = [i for i, m in enumerate(plan.band) if m.extent // m.tile > 1]
    if threads == 1 or not loops or alone < TEAM_CYCLES:
        return plan
    plans = {i: _parallel(plan, i) for i in loops}
    best = min(loops, key=lambda i: predict(model, plans[i], target, threads).cycles)
    if alone - predict(model, plans[best], target, threads).cycles < TEAM_CYCLES:
        return plan
    member = plan.band[best]
    reasons.append(f"threads share {member.name} ({member.extent // member.tile} iterations)")
    return plans[best]


def _parallel(plan: Plan, loop: int) -> Plan:
    rest = tuple(m for i, m in enumerate(plan.band) if i != loop)
    return replace(plan, band=(replace(plan.band[loop], parallel=True), *rest))
