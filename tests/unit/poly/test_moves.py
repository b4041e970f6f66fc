"""Moves on schedule trees: they keep what a tree runs, and these are legal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir.affine import AffineExpr

from msc.poly.dependences import dependences
from msc.poly.model import KernelModel
from msc.poly.nest import ForLoop
from msc.poly.schedule_tree.moves import (
    cache_read,
    cache_write,
    compute_at,
    enclose,
    find,
    fuse,
    parallelise,
    pipeline,
    prefetch,
    reorder,
    shared_loop,
    sink,
    split,
    tensorise,
    unroll,
    vectorise,
)
from msc.poly.schedule_tree.nodes import Axis, Loop, Prefetch, ScheduleError, Tree, below, loops
from msc.poly.schedule_tree.proof import broken
from msc.poly.schedule_tree.text import to_lines
from msc.poly.schedule_tree.to_isl import to_isl
from msc.poly.schedule_tree.verify import verify
from msc.poly.valid_extents import Size
from msc.schedule.loops.sharing import Group, declared, grouped_node, initial
from msc.schedule.tiles.register_tiles import tiled
from tests.unit.poly.kernels import array, executed, instances, matmul_relu, read, staged_product, statement
from tests.unit.poly.trees import nests_of, tree

MATMUL = matmul_relu(7, 10, 12)
BAND = (Axis("m", 7, {0: 0, 1: 0, 2: 0}), Axis("n", 10, {0: 1, 1: 1, 2: 1}))
GROUPS = (Group((0,)), Group((1,), (Axis("k", 12, {1: 2}),)), Group((2,)))


def is_right(model: KernelModel, schedule: Tree) -> bool:
    """Whether a tree runs all of a kernel once, in a legal order."""
    run = list(executed(nests_of(model, schedule)))
    legal = not list(broken(model, dependences(model), schedule, to_isl(model, schedule)))
    return legal and sorted(run) == sorted(instances(model))


@settings(max_examples=12, deadline=None)
@given(st.permutations(["m", "n"]), st.integers(1, 7), st.integers(2, 10), st.booleans())
def test_a_product_by_moves(order: list[str], rows: int, columns: int, parallel: bool) -> None:
    """Two levels of tiles: of the columns, and the register tile."""
    schedule = reorder(initial(BAND, GROUPS), order)
    schedule = split(schedule, find(schedule, "n"), columns)
    schedule = tiled(tiled(schedule, "n", min(4, columns), "vector"), "m", rows, "unroll")
    if parallel and 2 * columns <= BAND[0].extent and (loop := shared_loop(schedule, "n")) is not None:
        schedule = parallelise(schedule, loop)
        assert next(loops(schedule)).mark == "parallel"
    assert [axis.name for axis in schedule.axes] == [*order, "k"]
    assert is_right(MATMUL, schedule)


def test_reorder_takes_the_outermost_loops() -> None:
    schedule = initial(BAND, GROUPS)
    assert to_lines(reorder(schedule, ["n", "m"]))[3] == "for n, m"
    with pytest.raises(ScheduleError, match="the outermost loops are m, n, not k, m"):
        reorder(schedule, ["k", "m"])


def test_a_copy_is_computed_at_a_loop() -> None:
    """Of the band, around all that reads it."""
    model = staged_product(7, 10, 3)
    band = (Axis("n", 10, {0: 1, 1: 1, 2: 1}), Axis("m", 7, {1: 0, 2: 0}))
    schedule = tiled(initial(band, [Group((1,)), Group((2,), (Axis("k", 3, {2: 2}),))]), "n", 4, "vector")
    points = [loop for loop in loops(schedule) if loop.mark == "vector"][:1]
    schedule, node = grouped_node(schedule, Group((0,), (Axis("r", 3, {0: 0}),)), points)
    schedule = compute_at(schedule, node, shared_loop(schedule, "n"))
    assert to_lines(schedule)[4:7] == ["for n tile 4", "  for r, n vector", "    run S0"]
    assert is_right(model, schedule)


def test_enclose_and_fuse() -> None:
    schedule = initial(BAND[1:], GROUPS, BAND[:1])
    assert to_lines(enclose(schedule, "m"))[3] == "for m, n"
    whole = enclose(schedule, "m")
    assert fuse(tiled(whole, "n", 4, "vector"), "n") == whole
    assert is_right(MATMUL, whole)


MARKS = """
axis m 7: S0.0 S1.0 S2.0
axis n 10: S0.1 S1.1 S2.1
axis k 12: S1.2
for m tile 4, m
  for n
    run S0
  for k, n
    run S1
  for n
    run S2
"""


def test_marks_and_places_are_moves() -> None:
    schedule = tree(MARKS)
    schedule = vectorise(schedule, find(schedule, "n", 1))
    schedule = unroll(schedule, find(schedule, "m"))
    schedule = cache_read(schedule, "in1", find(schedule, "m tile 4"), "stack")
    schedule = cache_write(schedule, "t0", find(schedule, "m"), "register")
    schedule = pipeline(schedule, find(schedule, "m tile 4"))
    schedule = tensorise(schedule, find(schedule, "n", 2), "cube")
    assert to_lines(schedule)[3:] == [
        "for m tile 4 pipeline 2",
        "  place in1 in stack",
        "  for m unroll",
        "    place t0 in register",
        "    for n",
        "      run S0",
        "    for k, n vector",
        "      run S1",
        "    for n intrinsic cube",
        "      run S2",
    ]


def test_loops_are_found_by_their_names() -> None:
    schedule = tree(MARKS)
    assert find(schedule, "m tile 4") is next(loops(schedule))
    assert below(find(schedule, "n", 2)) == {2}
    with pytest.raises(ScheduleError, match="there is no loop 'for m tile 5'"):
        find(schedule, "m tile 5")
    with pytest.raises(ScheduleError, match="there is no loop 'for k' around S0"):
        find(schedule, "k", 0)


def test_a_node_moves_to_a_loop() -> None:
    schedule = tree(MARKS)
    moved = compute_at(schedule, find(schedule, "n", 2), find(schedule, "m tile 4"))
    assert to_lines(moved)[3:6] == ["for m tile 4", "  for n", "    run S2"]
    assert to_lines(moved)[6] == "  for m"
    inside = compute_at(schedule, find(schedule, "k"), find(schedule, "m"))
    assert to_lines(inside)[4:6] == ["  for k, n", "    run S1"]
    first = compute_at(schedule, find(schedule, "n", 2), None)
    assert to_lines(first)[3:5] == ["for n", "  run S2"]


def test_moves_of_what_is_not_there_are_refused() -> None:
    """None of them returns a tree that lacks a statement, or is as it was."""
    schedule = tree("axis m 8: S0.0\naxis n 8: S0.1\nfor m, n\n  run S0")
    m, n = find(schedule, "m"), find(schedule, "n")
    with pytest.raises(ScheduleError, match="'for n' is inside the node"):
        compute_at(schedule, m, n)
    with pytest.raises(ScheduleError, match="'for m' is inside the node"):
        compute_at(schedule, m, m)
    later = split(schedule, n, 4)
    with pytest.raises(ScheduleError, match="this loop 'for m' is not in the tree"):
        unroll(later, m)
    with pytest.raises(ScheduleError, match="this loop 'for m' is not in the tree"):
        sink(later, m)
    with pytest.raises(ScheduleError, match="this block is not in the tree"):
        prefetch(later, m.body, Prefetch("in0", 4, "m"))
    with pytest.raises(ScheduleError, match="there is no axis q: there are m, n"):
        fuse(schedule, "q")


def test_loops_inside_are_reordered() -> None:
    schedule = tree(MARKS)
    schedule = reorder(schedule, ["n", "k"], find(schedule, "k"))
    assert "  for n, k" in to_lines(schedule)


def test_statements_share_an_axis_of_one_name_and_extent() -> None:
    schedule, name = declared(initial(BAND, GROUPS), Axis("k", 12, {0: 5}))
    assert (name, schedule.axis("k").dims) == ("k", {1: 2, 0: 5})
    assert declared(schedule, Axis("k", 12, {1: 3}))[1] == "k_1"
    assert declared(schedule, Axis("k", 9, {2: 3}))[1] == "k_1"


def doubled() -> KernelModel:
    """y[i] = x[i] for as many i as a call says, 60 at most."""
    each = statement((60,), 1, (AffineExpr.dimension(0),), read(0, 1, AffineExpr.dimension(0)))
    bounded = replace(each, bounds=(AffineExpr.dimension(0),))
    arrays = (array(60, kind="input"), array(60, kind="output"))
    return KernelModel(arrays, (bounded,), ("copy",), (Size("rows", 1, 60),))


def test_threads_share_tiles_of_an_open_axis_and_not_its_tail() -> None:
    nests = nests_of(doubled(), tree("axis i 60: S0.0\nfor i tile 8 parallel from 3, i\n  run S0"))
    outer = [(each.kind, each.least) for each in nests if isinstance(each, ForLoop)]
    assert outer == [("parallel", 3), *[("sequential", 0)] * (len(outer) - 1)]
    assert len(outer) > 1


@pytest.mark.parametrize(
    ("model", "text", "message"),
    [
        (MATMUL, "for m parallel from 4, n\n  run S0\n", "axis m has 7 iterations in every call"),
        (doubled(), "for i tile 8 parallel from 9, i\n  run S0", "threads share 2 to 8 iterations here, not from 9 on"),
        (doubled(), "for i parallel from 1\n  run S0", "threads share 2 to 60 iterations here, not from 1 on"),
    ],
)
def test_from_says_something(model: KernelModel, text: str, message: str) -> None:
    if model is MATMUL:
        text = "axis m 7: S0.0 S1.0 S2.0\naxis n 10: S0.1 S1.1 S2.1\naxis k 12: S1.2\n" + text
        text += "for m, n, k\n  run S1\nfor m, n\n  run S2"
    else:
        text = "axis i 60: S0.0\n" + text
    with pytest.raises(ScheduleError, match=message):
        verify(model, tree(text))


def test_split_shares_as_many_iterations_as_before() -> None:
    schedule = tree("axis i 60: S0.0\nfor i parallel from 20\n  run S0")
    cut = split(schedule, find(schedule, "i"), 8)
    assert to_lines(cut)[1] == "for i tile 8 parallel from 3, i"
    (outer, _) = loops(cut)
    assert isinstance(outer, Loop)
