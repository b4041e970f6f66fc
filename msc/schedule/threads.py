"""Which kernels threads share, and along which loop.

A team costs little; what one core wrote, the other must fetch from it, and that costs more. So kernels that take about
that long stay on one thread, but for those that read what several threads wrote: alone they would fetch it too. A
kernel in a loop, as a step of a recurrent network, finds the team awake, and what is the same in all iterations in the
cache of the thread that read it before: only what is new is fetched. Of the loops that let all threads end at about the
same time, the one that moves furthest in the output is taken, so that one kernel after the other gives a thread the
same rows of an image. What all threads then read, weights mostly, must stay in L2 of each; where it does
not for any loop, the least is read by all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from msc.cost.access import block_size, strides
from msc.cost.prediction import KernelCost
from msc.dialects.element_types import BYTES
from msc.poly.model import KernelModel
from msc.poly.plan import Member, Plan
from msc.poly.tile_parts import member_bound
from msc.schedule.blocks import Blocked, loops_over_blocks
from msc.schedule.plan_tree import tree_of
from msc.targets.machine import Machine, Synchronisation

WASTE = 1.125
"""Times its even share that the busiest thread may have: that much is made up for by what a loop does better."""


@dataclass(frozen=True)
class Surroundings:
    """What stands around a kernel.

    `follows`: several threads wrote what it reads. `kept`, if it stands in a loop: the numbers of its inputs that
    are the same in all iterations. `blocked`: what other kernels hand to it, or it to others, block by block.
    """

    follows: bool = False
    kept: frozenset[int] | None = None
    blocked: tuple[Blocked, ...] = ()

    def cost(self, model: KernelModel, costs: Synchronisation) -> float:
        """Cycles that sharing the kernel costs."""
        most = costs.following if self.follows else costs.team
        if self.kept is None:
            return most
        moved = (a for k, a in enumerate(model.arrays) if a.kind != "internal" and k not in self.kept)
        fetched = costs.fetched_byte * sum(prod(a.shape) * BYTES[a.dtype] for a in moved)
        return min(most, costs.awake + fetched)

    def fresh(self, model: KernelModel) -> frozenset[int]:
        """The inputs of a kernel in a loop that are others in each iteration."""
        inputs = (k for k, a in enumerate(model.arrays) if a.kind == "input")
        return frozenset() if self.kept is None else frozenset(inputs) - self.kept


NOWHERE = Surroundings()


def shared(
    model: KernelModel, plan: Plan, target: Machine, threads: int, reasons: list[str], around: Surroundings = NOWHERE
) -> Plan:
    """The plan with one outer loop, of all groups, first and parallel, if that saves more than it costs.

    Where a kernel works block by block, that is the loop over blocks.
    """
    candidates = loops_over_blocks(model, plan.band, around.blocked)[:1] or plan.band
    team = threads or target.cores
    best = _loop(model, plan, candidates, target, team) if threads != 1 else None
    if best is None:
        return plan
    rest = tuple(m for m in plan.band if m is not best)
    loops = [replace(best, tile=tile, parallel=True) for tile in _tiles(model, plan, best, team)]
    plans = [replace(plan, band=(loop, *rest)) for loop in loops]
    cost = KernelCost(model, target)
    cycles = [cost.prediction(tree_of(model, parallel), team).cycles for parallel in plans]
    least = min(cycles)
    parallel = plans[cycles.index(least)]
    alone, costs = cost.prediction(tree_of(model, plan), 1).cycles, around.cost(model, target.synchronisation)
    if alone - least < costs:
        return plan
    parallel = _from_least(model, parallel, alone, costs, team)
    reasons.append(f"threads share {best.name} ({best.extent // parallel.band[0].tile} iterations)")
    return parallel


def _from_least(model: KernelModel, plan: Plan, alone: float, costs: float, team: int) -> Plan:
    """Where a call decides how many iterations the shared loop has: shared from as many on as save what it costs.

    A single one is never shared.
    """
    shared, *rest = plan.band
    if member_bound(model, shared) is None:
        return plan
    trips = ceil(shared.extent / shared.tile)
    worth = costs / (alone / trips)
    fewest = next((n for n in range(max(2, ceil(worth)), trips) if n - ceil(n / team) >= worth), trips)
    return replace(plan, band=(replace(shared, least=fewest), *rest)) if fewest > 2 else plan


def _tiles(model: KernelModel, plan: Plan, member: Member, threads: int) -> list[int]:
    """The tile of a shared loop, and a smaller one of rows if with that no thread is left without work at the end."""
    blocks = [block_size(model.statements[s], d) for s, d in member.dims.items()]
    fixed = member.vector or any(m.along == member.name for m in plan.band) or any(blocks)
    if fixed or _waste(member, threads) <= WASTE:
        return [member.tile]
    parts = ceil(ceil(member.extent / member.tile) / threads) * threads
    return [member.tile, ceil(member.extent / parts)]


def _loop(model: KernelModel, plan: Plan, candidates: Sequence[Member], target: Machine, threads: int) -> Member | None:
    """The loop of all groups that is best shared, None if there is none among the candidates."""
    whole = max((len(m.dims) for m in plan.band), default=0)
    loops = [m for m in candidates if m.extent // m.tile > 1 and len(m.dims) == whole]
    return max(loops, key=lambda m: (-max(WASTE, _waste(m, threads)), _reach(model, m, target)), default=None)


def _waste(member: Member, threads: int) -> float:
    """Times its even share that the busiest thread has, who also does what is left of the last tile."""
    tiles, rest = divmod(member.extent, member.tile)
    return (ceil(tiles / threads) + rest / member.tile) * threads * member.tile / member.extent


def _reach(model: KernelModel, member: Member, target: Machine) -> int:
    """How far apart in an output neighbours along a loop lie; if all threads would read too much, minus the bytes."""
    moving, reach = set[int](), 0
    for number, dim in member.dims.items():
        statement = model.statements[number]
        steps = strides(model, statement, dim)
        moving |= {array for (array, _), step in zip(statement.accesses(), steps, strict=True) if step}
        if model.arrays[statement.target].kind == "output":
            reach = max(reach, abs(steps[0]))
    still = (a for k, a in enumerate(model.arrays) if a.kind == "input" and k not in moving)
    common = sum(prod(a.shape) * BYTES[a.dtype] for a in still)
    return reach if common <= target.l2 // 2 else -common
