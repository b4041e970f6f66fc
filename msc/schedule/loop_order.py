"""The order of a reduction's own loops: what neighbouring steps read alike is loaded once.

Loops stand by how far they stride, the furthest outermost. With another of them innermost rows of a register tile may
meet what a row before them read a step ago, as windows of a convolution do, or its few steps are unrolled
(`prediction`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from msc.cost.prediction import KernelCost
from msc.poly.plan import Group, Plan
from msc.schedule.plan_tree import tree_of

FASTER = 0.98
"""The part of a plan's predicted time that another order must come to, to be taken."""


def turned(cost: KernelCost, plan: Plan, reasons: list[str]) -> Plan:
    """The plan with the loop of each reduction innermost that is predicted to make the kernel fastest."""
    for position, group in enumerate(plan.groups):
        before, after = plan.groups[:position], plan.groups[position + 1 :]
        turns = () if any(m.along == loop.name for m in plan.band for loop in group.inner) else _turns(cost, group)
        plans = [replace(plan, groups=(*before, other, *after)) for other in turns]
        best = min(plans, key=lambda p: _cycles(cost, p), default=plan)
        if best is not plan and _cycles(cost, best) < FASTER * _cycles(cost, plan):
            name = best.groups[position].inner[-1].name
            reasons.append(f"{name} innermost: its steps share what they read, or are few")
            plan = best
    return plan


def _turns(cost: KernelCost, group: Group) -> Iterator[Group]:
    """The group with each of its loops innermost that is not, if it is one reduction."""
    alone = len(group.statements) == 1 and cost.model.statements[group.statements[0]].reduced
    if alone and not any(m.vector for m in group.inner):
        for last in group.inner[:-1]:
            yield replace(group, inner=(*(m for m in group.inner if m is not last), last))


def _cycles(cost: KernelCost, plan: Plan) -> float:
    return cost.prediction(tree_of(cost.model, plan), 1).cycles
