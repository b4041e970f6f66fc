"""The clause `prefetch ARRAY ahead N of AXIS` of a schedule tree: its text, its move, and what it cannot say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.ir.affine import AffineExpr

from msc.poly.affine import simplified
from msc.poly.requests import PrefetchRequest, requests
from msc.poly.schedule_tree.moves import find, prefetch, without_places, without_prefetches
from msc.poly.schedule_tree.nodes import Prefetch, ScheduleError, Tree, all_blocks
from msc.poly.schedule_tree.prefetches import requested as prefetches_of
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


def requested(schedule: Tree) -> list[PrefetchRequest]:
    """What all blocks of a product request, its loops with all their bounds constant."""
    found = requests(MATMUL, schedule, nests_of(MATMUL, schedule))
    return [request for each in found.values() for request in each]


def address(request: PrefetchRequest, columns: int, line: int) -> tuple[list[int], str]:
    """Loops over lines of so many elements that one iteration requests of a matrix, and where they are."""
    loops, ahead = request.share((columns, 1), line, 9)
    ranges = {**{k: range(12) for k in range(9)}, **{9 + k: range(trips) for k, trips in enumerate(loops)}}
    return loops, str(simplified(ahead, ranges))


def test_what_an_iteration_reads_is_requested_a_line_at_a_time() -> None:
    (request,) = requested(product("prefetch in1 ahead 4 of k"))
    assert (request.extents, request.moved, request.turns) == ((1, 1), (4, 0), ())
    assert address(request, 10, 16) == ([], "40")


def test_a_loop_of_one_iteration_has_no_later_one() -> None:
    """A tail alone may have one iteration, but some part of the loop has a later one."""
    loops = "axis m 7: S0.0 S1.0 S2.0\naxis n 10: S0.1 S1.1 S2.1\naxis k 12: S1.2\nfor m, n\n  run S0"
    body = "\n  for k tile {tile}\n    prefetch in1 ahead {tile} of k\n    for k\n      run S1\n  run S2"
    assert requested(tree((loops + body).format(tile=5)))
    with pytest.raises(ScheduleError, match="line 7: the innermost loop around over k has one iteration"):
        requested(tree((loops + body).format(tile=7)))


def test_loops_between_share_what_an_iteration_reads() -> None:
    """A row of 12 elements: each of the columns requests two of them, and each step of its sum one."""
    (request,) = requested(product("prefetch in0 ahead 2 of m"))
    assert (request.extents, request.moved) == ((1, 12), (2, 0))
    assert [trips for _, trips in request.turns] == [10, 12]
    assert address(request, 12, 16) == ([], "(((d1 * 2) + d2) + 24)")


def test_rows_that_lie_apart_are_shared_row_by_row() -> None:
    """Of a column of 12 elements each step of the sum requests one."""
    (request,) = requested(product("prefetch in1 ahead 2 of n"))
    assert (request.extents, request.moved) == ((12, 1), (0, 2))
    assert address(request, 10, 16) == ([], "((d2 * 10) + 2)")


def block_of_tile(clause: str) -> Tree:
    """A product in tiles of 3 x 5 with a clause around the loops of a tile, on line 5."""
    axes = ["axis m 7: S0.0 S1.0 S2.0", "axis n 10: S0.1 S1.1 S2.1", "axis k 12: S1.2"]
    lines = ["for m tile 3, n tile 5", f"  {clause}", "  for m, n", "    run S0", "  for m, n, k", "    run S1"]
    return tree("\n".join([*axes, *lines, "  for m, n", "    run S2"]))


def test_a_block_requests_all_where_no_loop_stands_between() -> None:
    first, *tails = requested(block_of_tile("prefetch in0 ahead 3 of m"))
    assert (first.extents, first.moved) == ((3, 12), (3, 0))
    assert [request.extents for request in tails] == []


def test_this_iteration_is_requested_before_it_is_read() -> None:
    found = requested(block_of_tile("prefetch t0 ahead 0 of n"))
    assert [(each.extents, each.moved) for each in found] == [((3, 5), (0, 0)), ((1, 5), (0, 0))]
    first, _ = found
    assert address(first, 10, 4) == ([3, 2], "((d9 * 10) + (d10 * 4))")


def test_rows_are_shared_in_lines() -> None:
    """Three rows of five elements, each two lines of four, by four iterations: the last has none left."""
    turn = AffineExpr.dimension(0)
    request = PrefetchRequest(0, (AffineExpr.constant(0),) * 2, (3, 5), (0, 0), ((turn, 4),))
    loops, ahead = request.share((10, 1), 4, 1)
    assert loops == [2]
    assert [ahead.eval([k, line], []) for k in range(3) for line in range(2)] == [0, 4, 10, 14, 20, 24]


def test_the_loops_have_the_blocks_of_a_prefetch_and_its_loop() -> None:
    schedule = block_of_tile("prefetch in0 ahead 3 of m")
    blocks = {body.block for body, _ in bodies(nests_of(MATMUL, schedule), outermost(MATMUL, schedule))}
    numbers = {id(block): k for k, block in enumerate(all_blocks(schedule.body))}
    (each,) = prefetches_of(schedule)
    assert {numbers[id(each.block)], numbers[id(each.loop.body)]} <= blocks


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("prefetch in7 ahead 2 of k", "there is no array in7: there are in0, in1, out0, t0"),
        ("prefetch in0 ahead 2 of z", "no loop around runs over z: there are m, n, k"),
        ("prefetch out0 ahead 2 of m", "no statement in the loop over m reads out0 at an affine index"),
        ("prefetch in0 ahead 1 of n", "read the same elements of in0 in all iterations of n"),
        ("prefetch in0 ahead 84 of k", "in0 has 84 elements: it ends before the element 84 iterations ahead"),
        ("prefetch in0 ahead 7 of m", "in0 has 84 elements: it ends before the element 7 iterations ahead"),
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


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        ("register", "in0 is not in cached memory: it is in register"),
        ("stack", "in0 is stored for one iteration"),
    ],
)
def test_what_does_not_lie_in_memory_is_not_prefetched(scope: str, message: str) -> None:
    schedule = product(f"place in0 in {scope}", "prefetch in0 ahead 1 of m")
    with pytest.raises(ScheduleError, match=f"line 8: {message}"):
        verify(MATMUL, schedule)


def test_what_lives_on_the_stack_around_the_loop_is() -> None:
    lines = to_lines(product("prefetch in0 ahead 1 of k"))
    verify(MATMUL, tree("\n".join([*lines[:4], "  place in0 in stack", *lines[4:]])))


def test_tiles_are_requested_whole() -> None:
    with pytest.raises(
        ScheduleError, match="line 5: the loop around runs over tiles of 3 m: ahead is a multiple of it"
    ):
        verify(MATMUL, block_of_tile("prefetch in0 ahead 1 of m"))


def test_what_was_read_before_is_not_requested() -> None:
    axes = [
        "axis m 7: S0.0 S1.0 S2.0",
        "axis n 10: S0.1 S1.1 S2.1",
        "axis k 12: S1.2",
        "for m",
        "  for n",
        "    run S0",
    ]
    lines = ["  for n, k", "    run S1", "  for n", "    prefetch in0 ahead 0 of m", "    run S2"]
    with pytest.raises(ScheduleError, match="line 10: the statements that read in0 in this iteration run before"):
        verify(MATMUL, tree("\n".join([*axes, *lines])))


def test_a_machine_without_caches_does_not_prefetch() -> None:
    with pytest.raises(ScheduleError, match="has no caches"):
        verify(MATMUL, product("prefetch in0 ahead 1 of m"), replace(PLAIN, prefetches=False))


@pytest.mark.parametrize(
    "clause", ["prefetch in0", "prefetch in0 ahead 1", "prefetch in0 of k", "prefetch in0 ahead -1 of k"]
)
def test_text_that_is_no_prefetch(clause: str) -> None:
    with pytest.raises(ScheduleError, match="prefetch ARRAY ahead N of NAME"):
        product(clause)


def test_places_come_before_prefetches() -> None:
    with pytest.raises(ScheduleError, match="line 8: places are at the beginning of their block"):
        product("prefetch in0 ahead 1 of m", "place in1 in stack")


def test_prefetches_come_before_nodes() -> None:
    lines = ["axis m 7: S0.0 S1.0 S2.0", "for m", "  run S0", "  prefetch in0 ahead 1 of m"]
    with pytest.raises(ScheduleError, match="line 4: prefetches precede the nodes of their block"):
        tree("\n".join(lines))
