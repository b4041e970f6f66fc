"""Detours between areas, against what following every use finds."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from msc.graph_kernel.fusion.areas import Area, AreaGraph
from tests.unit.graph_kernel.graphs import function, main_of

GRAPHS = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=2, max_size=14)
"""For each operation, which of the values before it are its operands."""


def graph_of(operands: list[tuple[int, int]]) -> AreaGraph:
    lines = [f"%v{k} = ms.add %v{a % k}, %v{b % k}" for k, (a, b) in enumerate(operands, 1)]
    lines = ["%v0 = ms.relu %x", *lines, f"%y = ms.relu %v{len(operands)}"]
    return AreaGraph(main_of(function("%x: tensor<4xf32>", "\n".join(lines))).body.block)


def leads(graph: AreaGraph, start: Area, goal: Area) -> bool:
    return start is goal or any(leads(graph, user, goal) for user in graph.users(start))


def has_detour(graph: AreaGraph, producer: Area, consumer: Area) -> bool:
    return any(leads(graph, user, consumer) for user in graph.users(producer) if user is not consumer)


@given(GRAPHS, st.sets(st.integers(0, 12)))
def test_detours_are_those_that_following_uses_finds(operands: list[tuple[int, int]], merged: set[int]) -> None:
    """Among areas of one operation and of several."""
    graph = graph_of(operands)
    for k, (first, second) in enumerate(list(pairwise(graph.block.ops))):
        producer, consumer = graph.area_of(first), graph.area_of(second)
        joined = consumer in graph.users(producer) and not has_detour(graph, producer, consumer)
        if k in merged and joined and producer is not consumer:
            graph.merge(producer, consumer, consumer.pattern, consumer.anchor)
    for producer in graph.areas():
        for consumer in graph.users(producer):
            assert graph.has_detour(producer, consumer) == has_detour(graph, producer, consumer)
