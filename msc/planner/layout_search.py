"""The three searches for layouts, under MindSpore's names."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Literal, TypeAlias

import numpy as np

from msc.planner.elimination import ChoiceProblem, Numbers, solve
from msc.planner.layout_costs import NONE, Cuts, LayoutCosts

SearchMode: TypeAlias = Literal["dynamic_programming", "recursive_programming", "sharding_propagation"]
MODES: tuple[SearchMode, ...] = ("dynamic_programming", "recursive_programming", "sharding_propagation")
_SWEEPS = 4


def search(costs: LayoutCosts, mode: SearchMode, limit: float = inf) -> list[Cuts] | None:
    """How each operator is cut; None if no cut of dynamic programming fits the limit of memory."""
    if mode == "dynamic_programming":
        return dynamic_programming(costs, limit)
    return recursive_programming(costs) if mode == "recursive_programming" else sharding_propagation(costs)


def problem_of(costs: LayoutCosts) -> ChoiceProblem:
    """The choices of all operators, and what each pair along an edge costs."""
    ops = costs.graph.operators
    candidates = [costs.candidates(op) for op in ops]
    found = [[costs.operator(number, cuts) for cuts in each] for number, each in enumerate(candidates)]
    problem = ChoiceProblem(
        [np.array([each.seconds for each in row]) for row in found],
        [np.array([each.memory for each in row]) for row in found],
    )
    tables: dict[tuple[object, ...], Numbers] = {}
    for u, v, place in costs.graph.edges():
        made, used = ops[u].result, ops[v].operands[place]
        tensor = costs.graph.tensors[made.tensor]
        key = (ops[u].axes, ops[u].given, made.axes, ops[v].axes, ops[v].given, used.axes, tensor.shape, tensor.dtype)
        if key not in tables:
            tables[key] = _moves(costs, u, v, place, candidates[u], candidates[v])
        problem.edges[u, v] = problem.edges[u, v] + tables[key] if (u, v) in problem.edges else tables[key]
    return problem


def _moves(costs: LayoutCosts, u: int, v: int, place: int, sources: Sequence[Cuts], targets: Sequence[Cuts]) -> Numbers:
    """Seconds for each pair of cuts; many give the same pair of layouts."""
    made, used = costs.graph.operators[u].result, costs.graph.operators[v].operands[place]
    rows = [costs.layout(made, cuts) for cuts in sources]
    columns = [costs.layout(used, cuts) for cuts in targets]
    unique_rows, unique_columns = list(dict.fromkeys(rows)), list(dict.fromkeys(columns))
    lines = np.array([[costs.move_line(row, column) for column in unique_columns] for row in unique_rows])
    small = lines[..., 0] + lines[..., 1] * costs.whole_bytes(made)
    where = [unique_rows.index(row) for row in rows], [unique_columns.index(column) for column in columns]
    return small[np.ix_(*where)]


def dynamic_programming(costs: LayoutCosts, limit: float = inf) -> list[Cuts] | None:
    """The cuts of least cost within the limit of memory, exactly, by eliminations on the graph."""
    candidates = [costs.candidates(op) for op in costs.graph.operators]
    guess = recursive_programming(costs)
    start = [row.index(cuts) for row, cuts in zip(candidates, guess, strict=True)]
    problem = problem_of(costs)
    found = solve(problem, start=start)
    if found is not None and problem.held(found) > limit:
        found = solve(problem, limit, start)
    return None if found is None else [row[choice] for row, choice in zip(candidates, found, strict=True)]


def recursive_programming(costs: LayoutCosts) -> list[Cuts]:
    """Cuts found axis by axis of the mesh: operators in order of their work take the cheapest axis beside neighbours.

    The same is then tried for the whole cut of each operator, until nothing changes.
    """
    ops = costs.graph.operators
    around = _around(costs)
    whole = tuple(NONE for _ in costs.sizes)
    weight = [costs.operator(number, whole).compute for number in range(len(ops))]
    order = sorted(range(len(ops)), key=lambda number: -weight[number])
    fixed = {number: costs.candidates(op)[0] for number, op in enumerate(ops) if op.given is not None}
    cuts = [fixed.get(number, whole) for number in range(len(ops))]
    for axis in range(len(costs.sizes)):
        done = set(fixed)
        for number in order:
            if number in fixed:
                continue
            tried = [
                (*cuts[number][:axis], choice, *cuts[number][axis + 1 :])
                for choice in (*range(len(ops[number].axes)), NONE)
            ]
            tried = [each for each in tried if _divides(costs, number, each)]
            cuts[number] = min(tried, key=lambda each: _beside(costs, around, cuts, number, each, done))
            done.add(number)
    best, least = cuts, costs.total(cuts)
    for begin in (cuts, *uniform_cuts(costs, fixed)):
        found = _improved(costs, around, list(begin), fixed)
        total = costs.total(found)
        if total < least:
            best, least = found, total
    return best


def _divides(costs: LayoutCosts, number: int, cuts: Cuts) -> bool:
    axes = costs.graph.operators[number].axes
    return all(axis.size % costs.parts(cuts, i) == 0 for i, axis in enumerate(axes))


def _around(costs: LayoutCosts) -> list[list[tuple[int, int, int]]]:
    around: list[list[tuple[int, int, int]]] = [[] for _ in costs.graph.operators]
    for u, v, place in costs.graph.edges():
        around[u].append((u, v, place))
        if u != v:
            around[v].append((u, v, place))
    return around


def _beside(
    costs: LayoutCosts, around: list[list[tuple[int, int, int]]], cuts: Sequence[Cuts], number: int, tried: Cuts,
    known: set[int] | None = None,
) -> float:  # fmt: skip
    """The cost of an operator's cut with the moves from and to the neighbours that are known."""
    total = costs.operator(number, tried).seconds
    for u, v, place in around[number]:
        other = v if u == number else u
        if known is None or other in known:
            total += costs.edge_seconds(
                u, v, place, tried if u == number else cuts[u], tried if v == number else cuts[v]
            )
    return total


def uniform_cuts(costs: LayoutCosts, fixed: dict[int, Cuts]) -> list[list[Cuts]]:
    """Cuts of every operator along its first axis, as data parallelism is, and of none."""
    ops = costs.graph.operators
    first, whole = tuple(0 for _ in costs.sizes), tuple(NONE for _ in costs.sizes)
    able = [bool(op.axes) and _divides(costs, number, first) for number, op in enumerate(ops)]
    return [
        [fixed.get(number, first if able[number] else whole) for number in range(len(ops))],
        [fixed.get(number, whole) for number in range(len(ops))],
    ]


def _improved(
    costs: LayoutCosts, around: list[list[tuple[int, int, int]]], cuts: list[Cuts], fixed: dict[int, Cuts]
) -> list[Cuts]:
    """Each operator takes the best cut beside its neighbours', with one axis of the mesh changed, until none does."""
    waiting = deque(number for number in range(len(cuts)) if number not in fixed)
    queued, left = set(waiting), _SWEEPS * len(cuts)
    while waiting and left:
        number, left = waiting.popleft(), left - 1
        queued.discard(number)
        axes = (*range(len(costs.graph.operators[number].axes)), NONE)
        now, least = cuts[number], _beside(costs, around, cuts, number, cuts[number])
        for place in range(len(now)):
            for choice in axes:
                each = (*now[:place], choice, *now[place + 1 :])
                if each == now or not _divides(costs, number, each):
                    continue
                found = _beside(costs, around, cuts, number, each)
                if found < least * (1 - 1e-12):
                    cuts[number], least = each, found
        if cuts[number] != now:
            more = {_other(edge, number) for edge in around[number]} | {number}
            waiting.extend(sorted(more - queued - fixed.keys()))
            queued |= more - fixed.keys()
    return cuts


def sharding_propagation(costs: LayoutCosts) -> list[Cuts]:
    """From the operators that a person cut, breadth first: each takes the cut whose tensors move least on its edges.

    Among those that move the same it takes the one that costs least. Without marks, the heaviest operator is cut first.
    """
    ops = costs.graph.operators
    around = _around(costs)
    cuts: dict[int, Cuts] = {n: costs.candidates(op)[0] for n, op in enumerate(ops) if op.given is not None}
    whole = tuple(NONE for _ in costs.sizes)
    while len(cuts) < len(ops):
        if not cuts or not _next(cuts, around):
            rest = [number for number in range(len(ops)) if number not in cuts]
            first = max(rest, key=lambda number: costs.operator(number, whole).compute)
            cuts[first] = min(costs.candidates(ops[first]), key=lambda each: costs.operator(first, each).seconds)
        for number in _next(cuts, around):
            candidates = costs.candidates(ops[number])
            cuts[number] = min(candidates, key=partial(_moved, costs, around[number], dict(cuts), number))
    return [cuts[number] for number in range(len(ops))]


def _moved(
    costs: LayoutCosts, edges: list[tuple[int, int, int]], cuts: dict[int, Cuts], number: int, tried: Cuts
) -> tuple[float, float]:
    """Seconds of moves to and from neighbours with a cut, and then of the operator itself."""
    seconds = 0.0
    for u, v, place in edges:
        if _other((u, v, place), number) in cuts:
            source, target = tried if u == number else cuts[u], tried if v == number else cuts[v]
            seconds += costs.edge_seconds(u, v, place, source, target)
    return seconds, costs.operator(number, tried).seconds


def _other(edge: tuple[int, int, int], number: int) -> int:
    return edge[1] if edge[0] == number else edge[0]


def _next(cuts: dict[int, Cuts], around: list[list[tuple[int, int, int]]]) -> list[int]:
    """Operators without a cut beside some with one, in order."""
    return sorted({_other(edge, number) for number in cuts for edge in around[number]} - cuts.keys())
