"""Plans, the trees isl makes of them, the proof of legality, and the nests: against running them."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise, permutations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from xdsl.ir.affine import AffineExpr

from msc.poly import plan as plans
from msc.poly.compute import dims
from msc.poly.dependences import dependences
from msc.poly.model import KernelModel
from msc.poly.nest import Body, Loop, Nest, generate
from msc.poly.plan import Group, Member, Plan, from_lines, to_lines
from msc.poly.plan_fit import check_fit
from msc.poly.tree import carried, schedule_tree, violated
from msc.poly.vector_order import lanes_collide
from tests.unit.poly.kernels import (
    KERNELS,
    array,
    conflicts,
    executed,
    instances,
    matmul_relu,
    read,
    staged_product,
    statement,
    stencil,
)

members = st.builds(
    Member,
    name=st.from_regex(r"[a-z][a-z0-9]{0,4}", fullmatch=True),
    extent=st.integers(1, 99),
    dims=st.dictionaries(st.integers(0, 9), st.integers(0, 5), max_size=4),
    tile=st.integers(1, 20),
    vector=st.booleans(),
    parallel=st.booleans(),
)
members |= st.builds(replace, members, rest=st.integers(1, 9), along=st.just("oc"))
groups = st.builds(
    Group,
    statements=st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple),
    inner=st.lists(members, max_size=3).map(tuple),
)


@given(st.builds(Plan, band=st.lists(members, max_size=3).map(tuple), groups=st.lists(groups, max_size=3).map(tuple)))
def test_a_plan_reads_back(plan: Plan) -> None:
    assert from_lines(to_lines(plan)) == plan


@pytest.mark.parametrize("line", ["", "m", "m extent x: S0.0", "m extent 3 tile: S0.0", "do S0 over m"])
def test_a_line_that_is_none_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=r"not a line|invalid literal"):
        from_lines([line])


def one_by_one(model: KernelModel, order: tuple[int, ...]) -> Plan:
    """Statements one after the other, each in loops of its own."""
    made = [
        Group((k,), tuple(Member(f"d{d}", n, {k: d}) for d, n in enumerate(model.statements[k].extents))) for k in order
    ]
    return Plan((), tuple(made))


def runs_right(model: KernelModel, order: list[tuple[int, tuple[int, ...]]]) -> bool:
    place = {at: i for i, at in enumerate(order)}
    return all(place[first] < place[second] for first, second in conflicts(model))


@pytest.mark.parametrize("name", KERNELS)
def test_isl_refuses_exactly_the_orders_that_break_a_conflict(name: str) -> None:
    model = KERNELS[name]
    deps = dependences(model)
    for order in permutations(range(len(model.statements))):
        schedule = schedule_tree(model, one_by_one(model, order))
        run = list(executed(generate(schedule)))
        assert sorted(run) == sorted(instances(model))
        assert violated(schedule, deps).is_empty() is runs_right(model, run)


MATMUL = matmul_relu(7, 10, 3)


@settings(max_examples=30, deadline=None)
@given(tiles=st.tuples(st.integers(1, 7), st.integers(1, 10)), swapped=st.booleans(), vector=st.booleans())
def test_tiles_cover_everything_once_in_order(tiles: tuple[int, int], swapped: bool, vector: bool) -> None:
    """Whatever the tiles: every loop has constant bounds, every instance runs once, no conflict is broken."""
    every = range(3)
    band = (
        Member("m", 7, dict.fromkeys(every, 0), tiles[0]),
        Member("n", 10, dict.fromkeys(every, 1), tiles[1], vector=vector),
    )
    inner = Group((1,), (Member("k", 3, {1: 2}),))
    plan = Plan(band[::-1] if swapped else band, (Group((0,)), inner, Group((2,))))
    deps = dependences(MATMUL)
    schedule = schedule_tree(MATMUL, plan)
    nests = generate(schedule)
    run = list(executed(nests))
    assert violated(schedule, deps).is_empty()
    assert sorted(run) == sorted(instances(MATMUL))
    assert runs_right(MATMUL, run)
    for loop in loops(nests):
        assert not loop.upper.used_dims() or loop.lower.used_dims()


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 7), columns=st.sampled_from([3, 4, 7, 10]), along=st.sampled_from("mk"), data=st.data())
def test_what_fills_no_vector_runs_along_rows_or_along_the_sums(
    rows: int, columns: int, along: str, data: st.DataObject
) -> None:
    assume(along == "k" or rows > 1)
    every = range(3)
    rest = data.draw(st.integers(1, 10 % columns or 10))
    band = (
        Member("m", 7, dict.fromkeys(every, 0), rows),
        Member("n", 10, dict.fromkeys(every, 1), columns, vector=True, rest=rest, along=along),
    )
    plan = Plan(band, (Group((0,)), Group((1,), (Member("k", 3, {1: 2}),)), Group((2,))))
    check_fit(MATMUL, plan)
    schedule = schedule_tree(MATMUL, plan)
    nests = generate(schedule)
    run = list(executed(nests))
    assert violated(schedule, dependences(MATMUL)).is_empty()
    assert sorted(run) == sorted(instances(MATMUL))
    assert runs_right(MATMUL, run)
    assert not lanes_collide(MATMUL, dependences(MATMUL), plan)
    assert along in {loop.name for loop in loops(nests) if loop.kind == "vector"}


STAGED = staged_product(7, 10, 3)


@settings(max_examples=20, deadline=None)
@given(tiles=st.tuples(st.integers(1, 7), st.integers(1, 10)), parallel=st.booleans())
def test_a_copy_runs_in_front_of_the_loops_that_it_is_not_in(tiles: tuple[int, int], parallel: bool) -> None:
    band = (
        Member("n", 10, {0: 1, 1: 1, 2: 1}, tiles[1], vector=True, parallel=parallel),
        Member("m", 7, {1: 0, 2: 0}, tiles[0]),
    )
    copy, sums = Group((0,), (Member("r", 3, {0: 0}),)), Group((2,), (Member("k", 3, {2: 2}),))
    deps = dependences(STAGED)
    schedule = schedule_tree(STAGED, Plan(band, (copy, Group((1,)), sums)))
    run = list(executed(generate(schedule)))
    assert violated(schedule, deps).is_empty()
    assert all(carried(member, deps, STAGED).is_empty() for member in band)
    assert sorted(run) == sorted(instances(STAGED))
    assert runs_right(STAGED, run)
    copied = [number == 0 for number, _ in run]
    panels = -(-10 // tiles[1])
    assert sum(after and not before for before, after in pairwise([False, *copied])) == panels


@pytest.mark.parametrize(
    ("outer", "inner", "groups"),
    [
        ({1: 0, 2: 0}, {0: 1, 1: 1, 2: 1}, (Group((0,)), Group((1,)), Group((2,)))),  # back in a loop it was not in
        ({0: 1, 1: 1, 2: 1}, {1: 0, 2: 0}, (Group((0, 1)), Group((2,)))),  # a part of a group
        ({0: 1, 1: 1, 2: 1}, {}, (Group((0,)), Group((1,)), Group((2,)))),  # no loop of any
    ],
)
def test_loops_of_some_groups_are_the_inner_ones(
    outer: dict[int, int], inner: dict[int, int], groups: tuple[Group, ...]
) -> None:
    with pytest.raises(ValueError, match="not a loop of every statement below it"):
        schedule_tree(STAGED, Plan((Member("a", 7, outer), Member("b", 10, inner)), groups))


def loops(nests: tuple[Nest, ...]) -> list[Loop]:
    found: list[Loop] = []
    for nest in nests:
        if isinstance(nest, Loop):
            found += [nest, *loops(nest.body)]
        elif isinstance(nest, Body):
            found += loops(nest.inside)
    return found


def test_what_a_shared_loop_carries() -> None:
    model = stencil()
    shared = Member("i", 7, {0: 0, 1: 0})
    assert not carried(shared, dependences(model), model).is_empty()
    rows = Member("m", 3, dict.fromkeys(range(3), 0))
    matmul = matmul_relu()
    assert carried(rows, dependences(matmul), matmul).is_empty()


def test_kinds_of_loops_reach_the_nest() -> None:
    model = matmul_relu(8, 8, 4)
    every = range(3)
    band = (
        Member("m", 8, dict.fromkeys(every, 0), 2, parallel=True),
        Member("n", 8, dict.fromkeys(every, 1), 8, vector=True),
    )
    plan = Plan(band, (Group((0,)), Group((1,), (Member("k", 4, {1: 2}),)), Group((2,))))
    (outer,) = generate(schedule_tree(model, plan))
    assert isinstance(outer, Loop)
    assert (outer.name, outer.kind) == ("m", "parallel")


def shifted(n: int = 9) -> KernelModel:
    """S0: t[i + 1] = x[i]; S1: y[i] = t[i], which the iteration before has written."""
    (i,) = dims(1)
    return KernelModel(
        (array(n, kind="input"), array(n, kind="output"), array(n + 1)),
        (statement((n,), 2, (i + 1,), read(0, 1, i)), statement((n,), 1, (i,), read(2, 1, i))),
        ("pad", "copy"),
    )


@pytest.mark.parametrize(("order", "collides"), [((0, 1), False), ((1, 0), True)])
def test_lanes_run_a_statement_at_a_time(order: tuple[int, int], collides: bool) -> None:
    """In both orders the loop is right one iteration after the other; vectors read what S0 writes only after it."""
    model = shifted()
    deps = dependences(model)
    plan = Plan((), (Group(order, (Member("i", 9, {0: 0, 1: 0}, vector=True),)),))
    assert violated(schedule_tree(model, plan), deps).is_empty()
    assert lanes_collide(model, deps, plan) is collides


@pytest.mark.parametrize(("order", "collides"), [((0, 1), False), ((1, 0), True)])
def test_a_rest_along_an_inner_loop_runs_a_statement_at_a_time(order: tuple[int, int], collides: bool) -> None:
    """S0: t[j, i + 1] = x[j, i]; S1: y[j, i] = t[j, i]: vectors along j are right, of its rest along i not."""
    j, i = dims(2)
    arrays = (array(5, 9, kind="input"), array(5, 9, kind="output"), array(5, 10))
    copies = (statement((5, 9), 2, (j, i + 1), read(0, 2, j, i)), statement((5, 9), 1, (j, i), read(2, 2, j, i)))
    model = KernelModel(arrays, copies, ("pad", "copy"))
    group = Group(order, (Member("i", 9, {0: 1, 1: 1}),))
    lanes = Member("j", 5, {0: 0, 1: 0}, 5, vector=True)
    deps = dependences(model)
    assert not lanes_collide(model, deps, Plan((lanes,), (group,)))
    across = Plan((replace(lanes, rest=1, along="i"),), (group,))
    assert violated(schedule_tree(model, across), deps).is_empty()
    assert lanes_collide(model, deps, across) is collides


def test_lanes_of_a_sum_do_not_collide() -> None:
    model = matmul_relu()
    rows = {0: 0, 1: 0, 2: 0}
    band = (Member("m", 3, rows), Member("n", 5, dict.fromkeys(rows, 1)))
    plan = Plan(band, (Group((0,)), Group((1,), (Member("k", 4, {1: 2}, vector=True),)), Group((2,))))
    assert not lanes_collide(model, dependences(model), plan)


@pytest.mark.parametrize(
    ("write", "collides"), [(dims(1)[0] // 2, True), (dims(1)[0] * 2, False), (AffineExpr.constant(0), False)]
)
def test_lanes_that_share_some_places_collide(write: AffineExpr, collides: bool) -> None:
    """Lanes may update one place all together, or a place each; nothing between."""
    arrays = (array(8, kind="input"), array(16))
    update = statement((8,), 1, (write,), read(0, 1, dims(1)[0]), "add")
    model = KernelModel(arrays, (update,), ("scatter",))
    plan = Plan((), (Group((0,), (Member("i", 8, {0: 0}, vector=True),)),))
    assert lanes_collide(model, dependences(model), plan) is collides


def test_the_plans_of_the_documentation_are_plans() -> None:
    """Four spaces before each line, two or more between it and what it means."""
    lines = [line.strip() for line in (plans.__doc__ or "").splitlines() if line.startswith("    ")]
    plan = from_lines([re.split(r"  +", line)[0].rstrip(",") for line in lines])
    assert len(plan.band) + len(plan.groups) + len(plan.first) == len(lines)
