"""The cheapest choice for each node of a graph, exactly: nodes are eliminated one by one.

A node that goes leaves a table over its neighbours' choices. MindSpore's eliminations of operators, edges, triangles
and stars are the cases of one, two, three and more neighbours. Where memory is limited, a table has for each entry all
pairs of cost and memory that no other beats in both, so that the limit is kept exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]
_LARGEST = 1 << 24
"""Entries of the largest table; a node with so many neighbours is fixed instead."""
_WIDTH = 64
"""Pairs of cost and memory of one entry; of more, evenly spread ones are kept."""


@dataclass
class ChoiceProblem:
    """Costs and memory of each choice of each node, and of each pair of choices along edges."""

    costs: list[Numbers]
    memory: list[Numbers]
    edges: dict[tuple[int, int], Numbers] = field(default_factory=dict[tuple[int, int], Numbers])

    def total(self, choices: Sequence[int]) -> float:
        """The cost of a choice for each node."""
        nodes = sum(float(costs[c]) for costs, c in zip(self.costs, choices, strict=True))
        return nodes + sum(float(table[choices[u], choices[v]]) for (u, v), table in self.edges.items())

    def held(self, choices: Sequence[int]) -> float:
        """The memory of a choice for each node."""
        return sum(float(held[c]) for held, c in zip(self.memory, choices, strict=True))


@dataclass
class _Table:
    """Cost and memory over the choices of `nodes` and, last, over alternatives."""

    nodes: tuple[int, ...]
    cost: Numbers
    memory: Numbers
    made: _Made | None = None


@dataclass
class _Made:
    """How a table was made: which alternatives of what it was joined from each of its alternatives is."""

    gone: int
    order: Places
    widths: tuple[int, ...]
    parts: list[_Table]
    choices: int


def solve(problem: ChoiceProblem, limit: float = inf, start: Sequence[int] | None = None) -> list[int] | None:
    """The choices of least cost whose memory is within the limit; None if there are none.

    It is exact while no table is too large; then the node with most neighbours keeps its choice of `start`, or its own
    cheapest.
    """
    tables = [
        _Table((node,), problem.costs[node][:, None], _memory(problem, node, limit))
        for node in range(len(problem.costs))
    ]
    for (u, v), table in problem.edges.items():
        cost = table if u < v else table.T
        tables.append(_Table((min(u, v), max(u, v)), cost[:, :, None], np.zeros((*cost.shape, 1))))
    fixed: dict[int, int] = {}
    left, ended = set(range(len(problem.costs))), list[_Table]()
    sizes = [len(costs) for costs in problem.costs]
    while left:
        around = {node: _neighbours(tables, node) for node in left}
        node = min(left, key=lambda each: (prod(sizes[other] for other in around[each]) * sizes[each], each))
        if prod(sizes[other] for other in around[node]) * sizes[node] > _LARGEST:
            node = max(left - fixed.keys(), key=lambda each: len(around[each]))
            fixed[node] = start[node] if start is not None else int(np.argmin(problem.costs[node]))
            tables = [_restricted(table, node, fixed[node]) for table in tables]
            sizes[node] = 1
            continue
        left.remove(node)
        parts = [table for table in tables if node in table.nodes]
        tables = [table for table in tables if node not in table.nodes]
        made = _eliminated(parts, node, sizes)
        (tables if made.nodes else ended).append(made)
    return _traced(reduce(_both, ended), limit, len(sizes), fixed) if ended else []


def _memory(problem: ChoiceProblem, node: int, limit: float) -> Numbers:
    return problem.memory[node][:, None] if limit < inf else np.zeros((len(problem.costs[node]), 1))


def _neighbours(tables: Sequence[_Table], node: int) -> set[int]:
    return {other for table in tables if node in table.nodes for other in table.nodes} - {node}


def _restricted(table: _Table, node: int, choice: int) -> _Table:
    if node not in table.nodes:
        return table
    axis = table.nodes.index(node)
    picked = [np.take(values, [choice], axis) for values in (table.cost, table.memory)]
    made = table.made
    if made is not None:
        made = _Made(made.gone, np.take(made.order, [choice], axis), made.widths, made.parts, made.choices)
    return _Table(table.nodes, picked[0], picked[1], made)


def _eliminated(parts: list[_Table], node: int, sizes: Sequence[int]) -> _Table:
    rest = tuple(sorted({other for table in parts for other in table.nodes} - {node}))
    order = (*rest, node)
    shape = tuple(sizes[other] for other in order)
    cost, memory = np.zeros((*shape, 1)), np.zeros((*shape, 1))
    for table in parts:
        added = [_spread(values, table.nodes, order) for values in (table.cost, table.memory)]
        cost = (cost[..., :, None] + added[0][..., None, :]).reshape(*shape, -1)
        memory = (memory[..., :, None] + added[1][..., None, :]).reshape(*shape, -1)
    flat = (*shape[:-1], -1)
    cost, memory, kept = _unbeaten(cost.reshape(flat), memory.reshape(flat))
    widths = tuple(table.cost.shape[-1] for table in parts)
    return _Table(rest, cost, memory, _Made(node, kept, widths, parts, shape[-1]))


def _spread(values: Numbers, nodes: tuple[int, ...], order: tuple[int, ...]) -> Numbers:
    """A table whose axes are in another order, with new axes of size 1."""
    there = [node for node in order if node in nodes]
    turned = np.transpose(values, [*(nodes.index(node) for node in there), len(nodes)])
    sizes = iter(turned.shape)
    return turned.reshape(*(next(sizes) if node in nodes else 1 for node in order), values.shape[-1])


def _unbeaten(cost: Numbers, memory: Numbers) -> tuple[Numbers, Numbers, Places]:
    """The alternatives, along the last axis, that no other beats in both; others are infinite."""
    if not memory.any():
        best: Places = np.argmin(cost, axis=-1)[..., None].astype(np.int64)
        return np.take_along_axis(cost, best, -1), np.zeros(best.shape), best
    by_cost: Places = np.argsort(cost, axis=-1, kind="stable")
    order: Places = np.take_along_axis(
        by_cost, np.argsort(np.take_along_axis(memory, by_cost, -1), axis=-1, kind="stable"), -1
    )
    cost, memory = np.take_along_axis(cost, order, -1), np.take_along_axis(memory, order, -1)
    before = np.minimum.accumulate(cost, axis=-1)
    good = np.concatenate([np.isfinite(cost[..., :1]), cost[..., 1:] < before[..., :-1]], axis=-1)
    first: Places = np.argsort(~good, axis=-1, kind="stable")
    cost = np.where(good, cost, inf)
    width = max(1, int(good.sum(axis=-1).max()))
    first = first[..., :width]
    cost, memory = np.take_along_axis(cost, first, -1), np.take_along_axis(memory, first, -1)
    order = np.take_along_axis(order, first, -1)
    if width > _WIDTH:
        kept = np.unique(np.linspace(0, width - 1, _WIDTH).astype(int))
        cost, memory, order = cost[..., kept], memory[..., kept], order[..., kept]
    return cost, memory, order


def _both(a: _Table, b: _Table) -> _Table:
    """One table of two parts of the graph that no edge connects."""
    cost = (a.cost[:, None] + b.cost[None, :]).ravel()
    cost, memory, kept = _unbeaten(cost, (a.memory[:, None] + b.memory[None, :]).ravel())
    return _Table((), cost, memory, _Made(-1, kept, (a.cost.size, b.cost.size), [a, b], 1))


def _traced(last: _Table, limit: float, nodes: int, fixed: dict[int, int]) -> list[int] | None:
    allowed = np.where(last.memory <= limit, last.cost, inf)
    best = int(np.argmin(allowed))
    if not np.isfinite(allowed[best]):
        return None
    choices = [fixed.get(node, 0) for node in range(nodes)]
    waiting = [(last, best)]
    while waiting:
        table, alternative = waiting.pop()
        made = table.made
        if made is None:
            continue
        sizes = made.order.shape  # a table made after a node was fixed has one choice of it
        place = tuple(choices[node] if sizes[axis] > 1 else 0 for axis, node in enumerate(table.nodes))
        number = int(made.order[(*place, alternative)])
        inner = prod(made.widths)
        choice, number = divmod(number, inner)
        if made.gone >= 0:
            choices[made.gone] = fixed.get(made.gone, choice)
        for part, width in zip(reversed(made.parts), reversed(made.widths), strict=True):
            number, alternative = divmod(number, width)
            waiting.append((part, alternative))
    return choices
