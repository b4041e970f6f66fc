"""The clause `prefetch ARRAY ahead N of AXIS` of a schedule tree: its text, its move, and what it cannot say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msc.poly.scalar import reads
from msc.poly.schedule_tree.moves import find, prefetch, without_places, without_prefetches
from msc.poly.schedule_tree.nodes import Prefetch, ScheduleError, Tree
from msc.poly.schedule_tree.prefetches import requests
from msc.poly.schedule_tree.text import to_lines
from msc.poly.schedule_tree.verify import verify
from msc.poly.storage import bodies, outermost
from msc.targets.abilities import PLAIN
from tests.unit.poly.kernels import matmul_relu
from tests.unit.poly.trees import nests_of, tree

MATMUL = matmul_relu(7, 10, 12)
"""S1 adds products of in0[m, k] and in1[k, n] to t0[m, n]."""


def product(*clauses: str) -> Tree:
    """A product of matrices with clauses in front of S1, the first of them on line 7."""
    lines = ["axis m 7: S0.0 S1.0 S2.0", "axis n 10: S0.1 S1.1 S2.1", "axis k 12: S1.2", "for m, n", "  run S0"]
    lines += ["  for k"]
    lines += [*(f"    {clause}" for clause in clauses), "    run S1", "  run S2"]
    return tree("\n".join(lines))


def test_a_prefetch_is_a_move_and_reads_back() -> None:
    plain = product()
    moved = prefetch(plain, find(plain, "k").body, Prefetch("in1", 4, "k"))
    assert moved == product("prefetch in1 ahead 4 of k")
    assert tree("\n".join(to_lines(moved))) == moved
    verify(MATMUL, moved)
    assert without_prefetches(moved) == plain
    assert without_places(moved) == plain


def test_a_block_prefetches_an_array_along_an_axis_at_one_distance() -> None:
    first = product("prefetch in0 ahead 4 of k", "prefetch in0 ahead 1 of m")
    moved = prefetch(first, find(first, "k").body, Prefetch("in0", 2, "k"))
    assert moved == product("prefetch in0 ahead 1 of m", "prefetch in0 ahead 2 of k")


def test_distances_are_elements_of_the_array() -> None:
    schedule = product("prefetch in1 ahead 4 of k", "prefetch in0 ahead 2 of m")
    first, second = next(iter(requests(MATMUL, schedule).values()))
    left, right = reads(MATMUL.statements[1].body)
    assert str(first.distance(MATMUL, 1, right)) == "40"
    assert str(second.distance(MATMUL, 1, left)) == "24"


def test_the_loops_have_the_block_of_a_prefetch() -> None:
    schedule = product("prefetch in1 ahead 4 of k")
    found = [body.block for body, _ in bodies(nests_of(MATMUL, schedule), outermost(MATMUL, ()))]
    assert found == list(requests(MATMUL, schedule))


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("prefetch in7 ahead 2 of k", "there is no array in7: there are in0, in1, out0, t0"),
        ("prefetch in0 ahead 2 of z", "no loop around runs over z: there are m, n, k"),
        ("prefetch out0 ahead 2 of m", "no statement here reads out0 at an index that is known ahead"),
        ("prefetch in0 ahead 1 of n", "read the same of in0 in all iterations of n"),
        ("prefetch in0 ahead 84 of k", "in0 has 84 elements: it ends before what lies 84 iterations ahead"),
        ("prefetch in0 ahead 7 of m", "in0 has 84 elements: it ends before what lies 7 iterations ahead"),
    ],
)
def test_a_prefetch_of_nothing(clause: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message) as caught:
        verify(MATMUL, product(clause))
    assert caught.value.line == 7


def test_a_distance_may_reach_past_the_axis_into_the_array() -> None:
    verify(MATMUL, product("prefetch in0 ahead 13 of k"))


def test_a_prefetch_stands_twice_along_one_axis() -> None:
    with pytest.raises(ScheduleError, match="in0 is prefetched along k already") as caught:
        verify(MATMUL, product("prefetch in0 ahead 1 of k", "prefetch in0 ahead 2 of k"))
    assert caught.value.line == 8


def test_a_prefetch_stands_in_front_of_statements() -> None:
    lines = ["axis m 7: S0.0 S1.0 S2.0", "axis n 10: S0.1 S1.1 S2.1", "axis k 12: S1.2", "for m, n", "  run S0"]
    lines += ["for m", "  prefetch in0 ahead 1 of m", "  for n, k", "    run S1", "for m, n", "  run S2"]
    assert to_lines(tree("\n".join(lines))) == lines
    with pytest.raises(ScheduleError, match="line 7: a prefetch stands right in front of the statements"):
        verify(MATMUL, tree("\n".join(lines)))


@pytest.mark.parametrize("scope", ["register", "stack"])
def test_what_does_not_lie_in_memory_is_not_prefetched(scope: str) -> None:
    schedule = product(f"place in0 in {scope}", "prefetch in0 ahead 1 of m")
    with pytest.raises(ScheduleError, match="line 8: in0 does not lie in memory whole"):
        verify(MATMUL, schedule)


def test_a_machine_without_caches_does_not_prefetch() -> None:
    with pytest.raises(ScheduleError, match="has no caches"):
        verify(MATMUL, product("prefetch in0 ahead 1 of m"), replace(PLAIN, prefetches=False))


@pytest.mark.parametrize(
    "clause", ["prefetch in0", "prefetch in0 ahead 1", "prefetch in0 ahead 0 of k", "prefetch in0 ahead -1 of k"]
)
def test_text_that_is_no_prefetch(clause: str) -> None:
    with pytest.raises(ScheduleError, match="prefetch ARRAY ahead N of NAME"):
        product(clause)


def test_places_come_before_prefetches() -> None:
    with pytest.raises(ScheduleError, match="line 8: places stand at the beginning of their block"):
        product("prefetch in0 ahead 1 of m", "place in1 in stack")


def test_prefetches_come_before_nodes() -> None:
    lines = ["axis m 7: S0.0 S1.0 S2.0", "for m", "  run S0", "  prefetch in0 ahead 1 of m"]
    with pytest.raises(ScheduleError, match="line 4: prefetches stand in front of the nodes of their block"):
        tree("\n".join(lines))
