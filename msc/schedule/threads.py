"""The choice of the kernels that threads share, and of the loop.

A team costs little; fetching data that another core wrote costs more. Kernels that take about that long therefore stay
on one thread, except those that read results of several threads, which would fetch them anyway. A kernel in a loop,
such as a step of a recurrent network, finds the team awake, and loop-invariant data in the cache of the thread that
read it before: only new data is fetched. Of the loops that let all threads end at about the same time, the one with the
largest stride in the output is chosen, so that consecutive kernels give a thread the same rows of an image. Data that
all threads then read, mostly weights, must stay in L2 of each; if it does not for any loop, the loop with the least
such data is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from msc.cost.access import block_size, strides
from msc.cost.prediction import KernelCost, busiest
from msc.dialects.element_types import BYTES
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.moves import fuse, listed, parallelise, put, shared_loop
from msc.poly.schedule_tree.nodes import Axis, Block, Loop, Tree, below, loops
from msc.poly.schedule_tree.parts import bound_of
from msc.schedule.tiles.register_tiles import retiled
from msc.targets.machine import Machine, Synchronisation

WASTE = 1.125
"""The busiest thread may have this many times its even share of the work if the loop is better otherwise."""


@dataclass(frozen=True)
class Surroundings:
    """The context of a kernel.

    `follows`: several threads wrote what it reads. `kept`, if it is in a loop: the numbers of its inputs that are the
    same in all iterations.
    """

    follows: bool = False
    kept: frozenset[int] | None = None

    @property
    def otherwise(self) -> Surroundings:
        """The same, but for `follows`."""
        return replace(self, follows=not self.follows)

    def cost(self, model: KernelModel, costs: Synchronisation) -> float:
        """Cycles that sharing the kernel costs."""
        most = costs.following if self.follows else costs.team
        if self.kept is None:
            return most
        moved = (a for k, a in enumerate(model.arrays) if a.kind != "internal" and k not in self.kept)
        fetched = costs.fetched_byte * sum(prod(a.shape) * BYTES[a.dtype] for a in moved)
        return min(most, costs.awake + fetched)

    def fresh(self, model: KernelModel) -> frozenset[int]:
        """The inputs of a kernel in a loop that change in each iteration."""
        inputs = (k for k, a in enumerate(model.arrays) if a.kind == "input")
        return frozenset() if self.kept is None else frozenset(inputs) - self.kept


NOWHERE = Surroundings()


@dataclass(frozen=True)
class Sharing:
    """A tree with the loop that threads share, if any; `either` if it does not depend on `follows`."""

    tree: Tree
    either: bool = True


def shared(
    model: KernelModel,
    tree: Tree,
    names: Sequence[str],
    target: Machine,
    threads: int,
    reasons: list[str],
    around: Surroundings = NOWHERE,
    whole: Callable[[Tree], Tree] = lambda tree: tree,
) -> Sharing:
    """The tree with one of the loops `names` outermost around all nodes and parallel, if that saves more than it costs.

    `whole` adds the nodes that the tree lacks.
    """
    candidates = [axis for axis in tree.axes if axis.name in names]
    team = threads or target.cores
    if threads == 1:
        return Sharing(tree)
    cost, single = KernelCost(model, target), tree
    tree = _with_parts(cost, tree, team)
    best = _loop(model, tree, candidates, target, team)
    if best is None:
        return Sharing(single)
    axis, loop = best
    options = [_parallel(model, tree, axis, loop, size) for size in _sizes(model, tree, axis, loop, team)]
    cycles = [cost.prediction(whole(option), team).cycles for option in options]
    least = min(cycles)
    alone = cost.prediction(whole(single), 1).cycles
    costs, otherwise = (each.cost(model, target.synchronisation) for each in (around, around.otherwise))
    if alone - least < costs:
        return Sharing(single, alone - least < otherwise)
    tree = options[cycles.index(least)]
    reasons.append(f"threads share {axis.name} ({axis.extent // _size(shared_loop(tree, axis.name))} iterations)")
    found = _from_least(model, tree, axis, alone, costs, team)
    return Sharing(
        found, alone - least >= otherwise and found == _from_least(model, tree, axis, alone, otherwise, team)
    )


def shared_blocks(
    model: KernelModel, tree: Tree, target: Machine, threads: int, reasons: list[str], around: Surroundings
) -> Sharing:
    """The tree of a kernel with members; threads share its outermost loop over blocks if that saves more than it costs.

    A thread runs adjacent blocks one after the other, and has one buffer for each intermediate.
    """
    loop, team = tree.body.nodes[-1], threads or target.cores
    if threads == 1 or not isinstance(loop, Loop) or any(below(loop).isdisjoint(m) for m in model.members):
        return Sharing(tree)
    size = loop.tile or 1
    trips = tree.axis(loop.axis).extent // size
    each = neighbours(trips, team)
    saved = KernelCost(model, target).prediction(tree, 1).cycles * (1 - busiest(trips, each, team) / trips)
    is_shared, otherwise = (saved >= a.cost(model, target.synchronisation) for a in (around, around.otherwise))
    if not is_shared:
        return Sharing(tree, not otherwise)
    reasons.append(f"threads share {loop.axis} ({trips // each} iterations)")
    outer = Loop(loop.axis, Block((loop,)), each * size, "parallel") if each > 1 else replace(loop, mark="parallel")
    return Sharing(put(tree, loop, outer), otherwise)


def neighbours(trips: int, team: int) -> int:
    """The most consecutive iterations for one thread with which all threads end at about the same time.

    One of them also runs the tail.
    """
    most = {each: busiest(trips, each, team) for each in range(1, max(2, trips // 2 + 1))}
    return max(each for each, longest in most.items() if longest <= WASTE * min(most.values()))


def _with_parts(cost: KernelCost, tree: Tree, team: int) -> Tree:
    """The tree with its only loop, if that is a vector loop, split into a part of whole vectors for each thread."""
    match tree.body.nodes:
        case (Loop(mark="vector", tile=None) as loop,):
            axis = tree.axis(loop.axis)
            whole = bound_of(cost.model, axis, frozenset(axis.dims)) is None
            part = ceil(axis.extent / (team * cost.lanes)) * cost.lanes
            return retiled(cost.model, tree, axis.name, part, "vector") if whole and part < axis.extent else tree
        case _:
            return tree


def _size(loop: Loop | None) -> int:
    """Iterations of the axis in one of the loop."""
    return 1 if loop is None or loop.tile is None else loop.tile


def _parallel(model: KernelModel, tree: Tree, axis: Axis, loop: Loop, size: int) -> Tree:
    if size != _size(loop):
        tree = retiled(model, fuse(tree, axis.name), axis.name, size, "unroll")
    found = shared_loop(tree, axis.name)
    return listed(tree if found is None else parallelise(tree, found), [axis.name])


def _from_least(model: KernelModel, tree: Tree, axis: Axis, alone: float, costs: float, team: int) -> Tree:
    """The tree that shares its loop only from the number of iterations that saves more than sharing costs.

    A call decides this number. A single iteration is never shared.
    """
    loop = shared_loop(tree, axis.name)
    if loop is None or bound_of(model, axis, frozenset(axis.dims)) is None:
        return tree
    trips = ceil(axis.extent / _size(loop))
    worth = costs / (alone / trips)
    fewest = next((n for n in range(max(2, ceil(worth)), trips) if n - ceil(n / team) >= worth), trips)
    return put(tree, loop, replace(loop, least=fewest)) if fewest > 2 else tree


def _sizes(model: KernelModel, tree: Tree, axis: Axis, loop: Loop, threads: int) -> list[int]:
    """The tile of a shared loop, and one with fewer rows if that leaves no thread without work at the end.

    The tile stays if vectors run along a sum: with fewer sums at a time, each would be split into more vectors.
    """
    blocks = [block_size(model.statements[s], d) for s, d in axis.dims.items()]
    vectors = any(n.mark == "vector" and (n.axis == axis.name or _is_summed(model, tree, n)) for n in loops(tree))
    size = _size(loop)
    if vectors or any(blocks) or _waste(axis, size, threads) <= WASTE:
        return [size]
    parts = ceil(ceil(axis.extent / size) / threads) * threads
    return [size, ceil(axis.extent / parts)]


def _is_summed(model: KernelModel, tree: Tree, loop: Loop) -> bool:
    """Whether a statement sums along a loop."""
    dims = tree.axis(loop.axis).dims
    return any(dims[s] in model.statements[s].reduced for s in below(loop))


def _loop(
    model: KernelModel, tree: Tree, candidates: Sequence[Axis], target: Machine, threads: int
) -> tuple[Axis, Loop] | None:
    """The best loop of all nodes to share; None if no candidate is one."""
    whole = max((len(axis.dims) for axis in candidates), default=0)
    found = [(axis, loop) for axis in candidates if (loop := shared_loop(tree, axis.name)) is not None]
    fitting = [(a, loop) for a, loop in found if a.extent // _size(loop) > 1 and len(a.dims) == whole]

    def preference(each: tuple[Axis, Loop]) -> tuple[float, int]:
        return -max(WASTE, _waste(each[0], _size(each[1]), threads)), _reach(model, each[0], target)

    return max(fitting, key=preference, default=None)


def _waste(axis: Axis, size: int, threads: int) -> float:
    """The work of the busiest thread, as a multiple of its even share."""
    return busiest(axis.extent, size, threads) * threads / axis.extent


def _reach(model: KernelModel, axis: Axis, target: Machine) -> int:
    """The stride of a loop in an output; if all threads would read too many bytes, minus these."""
    moving, reach = set[int](), 0
    for number, dim in axis.dims.items():
        statement = model.statements[number]
        steps = strides(model, statement, dim)
        moving |= {array for (array, _), step in zip(statement.accesses(), steps, strict=True) if step}
        if model.arrays[statement.target].kind == "output":
            reach = max(reach, abs(steps[0]))
    still = (a for k, a in enumerate(model.arrays) if a.kind == "input" and k not in moving)
    common = sum(prod(a.shape) * BYTES[a.dtype] for a in still)
    return reach if common <= target.l2 // 2 else -common
