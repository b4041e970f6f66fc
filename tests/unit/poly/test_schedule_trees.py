"""Schedule trees: their text, what isl makes of them, the proof of legality, and moves: against running them."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir.affine import AffineExpr

from msc.poly.compute import dims
from msc.poly.dependences import dependences
from msc.poly.model import KernelModel
from msc.poly.nest import Body, ForLoop, Nest, generate
from msc.poly.schedule_tree import nodes as node_module
from msc.poly.schedule_tree.nodes import MARKS, Axis, Block, Cut, Loop, Node, Place, Run, ScheduleError, Tree
from msc.poly.schedule_tree.proof import broken, violated
from msc.poly.schedule_tree.text import from_lines, to_lines
from msc.poly.schedule_tree.to_isl import to_isl
from msc.poly.schedule_tree.verify import verify
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
from tests.unit.poly.trees import nests_of, tree

names = st.from_regex(r"[a-z][a-z0-9_]{0,4}", fullmatch=True)
sizes = st.integers(1, 99)
runs = st.lists(st.integers(0, 9), min_size=1, max_size=3).map(lambda numbers: Run(tuple(numbers)))
places = st.builds(Place, names, st.sampled_from(["register", "stack", "workspace", "out0"]), st.booleans())


def blocks_of(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[Block]:
    return st.builds(Block, st.lists(nodes, min_size=1, max_size=3).map(tuple), st.lists(places, max_size=2).map(tuple))


def with_blocks(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    blocks = blocks_of(nodes)
    loops = st.builds(Loop, names, blocks, st.none() | sizes, st.sampled_from(["", *MARKS]))
    return loops | st.builds(Cut, names, sizes, blocks, blocks)


trees = st.builds(
    Tree,
    st.lists(
        st.builds(Axis, names, sizes, st.dictionaries(st.integers(0, 9), st.integers(0, 5), min_size=1, max_size=4)),
        max_size=3,
    ).map(tuple),
    blocks_of(st.recursive(runs, with_blocks, max_leaves=6)),
)


@given(trees)
def test_a_tree_reads_back(schedule: Tree) -> None:
    assert from_lines(to_lines(schedule)) == schedule


@given(st.text(alphabet="forun axisplcehdtmSk0123.:, \n", max_size=80))
def test_text_is_a_tree_or_an_error_with_its_line(text: str) -> None:
    found = read_or_refused(text.split("\n"))
    if isinstance(found, ScheduleError):
        assert 1 <= found.line <= text.count("\n") + 1
    else:
        assert from_lines(to_lines(found)) == found


def read_or_refused(lines: list[str]) -> Tree | ScheduleError:
    try:
        return from_lines(lines)
    except ScheduleError as problem:
        return problem


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("axis m 3: S0.0\nfore m\n  run S0", 2, "not with 'fore'"),
        ("axis m: S0.0", 1, "is not of the form"),
        ("axis m 3: S0.0 S0.1", 1, "twice"),
        ("for m", 1, "no indented lines below"),
        ("for m\nrun S0", 1, "no indented lines below"),
        ("for m\n  run S0\n    run S1", 3, "deeper"),
        ("for m\n    run S0\n  run S1", 3, "deeper than its block: by 2 spaces instead of 0"),
        ("run S0\naxis m 3: S0.0", 2, "axes precede"),
        (" axis m 3: S0.0", 1, "not indented"),
        ("for m tile\n  run S0", 1, "is not of the form"),
        ("for m paralel\n  run S0", 1, "is not of the form"),
        ("for m parallel from 0\n  run S0", 1, "is not of the form"),
        ("for m vector from 8\n  run S0", 1, "is not of the form"),
        ("for m parallel 0\n  run S0", 1, "is not of the form"),
        ("run S0\nplace t0 in stack", 2, "at the beginning of their block"),
        ("place t0 at stack\nrun S0", 1, "is not of the form"),
        ("tail n from 4\n  run S0", 1, "follows its head directly"),
        ("head n to 4\n  run S0\nrun S1", 1, "missing after it"),
        ("head n to 4\n  run S0\ntail n from 5\n  run S0", 3, "ends elsewhere"),
        ("run 0", 1, "is not of the form"),
        ("\trun S0", 1, "indentation is spaces"),
    ],
)
def test_text_that_is_no_tree(text: str, line: int, message: str) -> None:
    with pytest.raises(ScheduleError, match=message) as raised:
        from_lines(text.split("\n"))
    assert raised.value.line == line


def test_loops_in_one_line_are_loops_in_each_other() -> None:
    one = tree("axis m 4: S0.0\naxis n 4: S0.1\nfor m tile 2, m, n vector\n  run S0")
    assert one == tree("axis m 4: S0.0\naxis n 4: S0.1\nfor m tile 2\n  for m\n     for n vector\n        run S0")
    assert to_lines(one)[2] == "for m tile 2, m, n vector"


def test_the_tree_of_the_documentation_is_one() -> None:
    """Of a product of 1000 by 64 over 512."""
    lines = [line[4:] for line in (node_module.__doc__ or "").splitlines() if line.startswith("    ")]
    model = matmul_relu(1000, 64, 512)
    schedule = from_lines(lines)
    verify(model, schedule)
    assert not list(broken(model, dependences(model), schedule, to_isl(model, schedule)))


def runs_right(model: KernelModel, order: list[tuple[int, tuple[int, ...]]]) -> bool:
    place = {at: i for i, at in enumerate(order)}
    return all(place[first] < place[second] for first, second in conflicts(model))


def one_by_one(model: KernelModel, order: tuple[int, ...]) -> Tree:
    """Statements one after the other, each in loops of its own."""
    axes = [Axis(f"d{k}_{d}", n, {k: d}) for k, s in enumerate(model.statements) for d, n in enumerate(s.extents)]
    made: list[Node] = []
    for k in order:
        node: Node = Run((k,))
        for axis in reversed([axis for axis in axes if k in axis.dims]):
            node = Loop(axis.name, Block((node,)))
        made.append(node)
    return Tree(tuple(axes), Block(tuple(made)))


@pytest.mark.parametrize("name", KERNELS)
def test_isl_refuses_exactly_the_orders_that_break_a_conflict(name: str) -> None:
    model = KERNELS[name]
    deps = dependences(model)
    for order in permutations(range(len(model.statements))):
        schedule = one_by_one(model, order)
        run = list(executed(nests_of(model, schedule)))
        assert sorted(run) == sorted(instances(model))
        assert violated(to_isl(model, schedule).schedule, deps).is_empty() is runs_right(model, run)


MATMUL = matmul_relu(7, 10, 12)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_tiles_of_all_axes_at_any_depth_run_everything_once_in_order(data: st.DataObject) -> None:
    """Up to two levels of tiles of rows and of the sum: constant bounds, every instance once, no conflict broken."""
    m1, n1, k1 = (data.draw(st.integers(1, extent)) for extent in (7, 10, 12))
    m2, k2 = data.draw(st.integers(1, m1)), data.draw(st.integers(1, k1))
    schedule = tree(f"""
        axis m 7: S0.0 S1.0 S2.0
        axis n 10: S0.1 S1.1 S2.1
        axis k 12: S1.2
        for n tile {n1}
          for m, n
            run S0
          for k tile {k1}
            for m tile {m1}, m tile {m2}
              for k tile {k2}, k, m unroll, n vector
                run S1
          for m, n
            run S2
    """)
    nests = nests_of(MATMUL, schedule)
    run = list(executed(nests))
    assert sorted(run) == sorted(instances(MATMUL))
    assert runs_right(MATMUL, run)
    assert not list(broken(MATMUL, dependences(MATMUL), schedule, to_isl(MATMUL, schedule)))
    for loop in loops(nests):
        assert not loop.upper.used_dims()
        assert not loop.lower.used_dims()


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 7), columns=st.sampled_from([3, 4, 7, 10]), data=st.data())
def test_what_fills_no_vector_runs_along_rows_or_along_the_sums(rows: int, columns: int, data: st.DataObject) -> None:
    at = 10 - data.draw(st.integers(1, 10 % columns or 10))
    if at == 0:
        at = 1
    schedule = tree(f"""
        axis m 7: S0.0 S1.0 S2.0
        axis n 10: S0.1 S1.1 S2.1
        axis k 12: S1.2
        for n tile {columns}, m tile {rows}
          place t0 in stack
          for m, n
            run S0
          head n to {at}
            for k, m unroll, n vector
              run S1
          tail n from {at}
            for k vector, m unroll, n unroll
              run S1
          head n to {at}
            for m, n vector
              run S2
          tail n from {at}
            for n, m vector
              run S2
    """)
    if columns < 10 and at < 10 - 10 % columns:
        with pytest.raises(ScheduleError, match="cannot be cut here") as raised:
            to_isl(MATMUL, schedule)
        assert raised.value.line == 8
        return
    nests = nests_of(MATMUL, schedule)
    run = list(executed(nests))
    assert sorted(run) == sorted(instances(MATMUL))
    assert runs_right(MATMUL, run)
    assert not list(broken(MATMUL, dependences(MATMUL), schedule, to_isl(MATMUL, schedule)))


STAGED = staged_product(7, 10, 3)


@settings(max_examples=20, deadline=None)
@given(tiles=st.tuples(st.integers(1, 7), st.integers(1, 10)), parallel=st.sampled_from(["", " parallel"]))
def test_a_copy_runs_in_front_of_the_loops_that_it_is_not_in(tiles: tuple[int, int], parallel: str) -> None:
    schedule = tree(f"""
        axis n 10: S0.1 S1.1 S2.1
        axis m 7: S1.0 S2.0
        axis r 3: S0.0
        axis k 3: S2.2
        for n tile {tiles[1]}{parallel if tiles[1] <= 5 else ""}
          place t0 in stack
          for r, n vector
            run S0
          for m tile {tiles[0]}
            for m unroll, n vector
              run S1
            for k, m unroll, n vector
              run S2
    """)
    run = list(executed(nests_of(STAGED, schedule)))
    assert not list(broken(STAGED, dependences(STAGED), schedule, to_isl(STAGED, schedule)))
    assert sorted(run) == sorted(instances(STAGED))
    assert runs_right(STAGED, run)
    copied = [number == 0 for number, _ in run]
    panels = -(-10 // tiles[1])
    assert sum(after and not before for before, after in pairwise([False, *copied])) == panels


def loops(nests: tuple[Nest, ...]) -> list[ForLoop]:
    found: list[ForLoop] = []
    for nest in nests:
        if isinstance(nest, ForLoop):
            found += [nest, *loops(nest.body)]
        elif isinstance(nest, Body):
            found += loops(nest.inside)
    return found


def problems(model: KernelModel, text: str) -> list[str]:
    schedule = tree(text)
    verify(model, schedule)
    return [str(problem) for problem in broken(model, dependences(model), schedule, to_isl(model, schedule))]


def test_a_parallel_loop_carries_nothing() -> None:
    shared = "axis i 7: S1.0\naxis j 8: S0.0\nfor j{0}\n  run S0\nfor i{0}\n  run S1"
    assert problems(stencil(), shared.format(" parallel")) == []
    carried = problems(
        MATMUL,
        "axis m 7: S0.0 S1.0 S2.0\naxis n 10: S0.1 S1.1 S2.1\naxis k 12: S1.2\n"
        "for m, n\n  run S0\nfor k tile 4 parallel\n  for m, n, k\n    run S1\nfor m, n\n  run S2",
    )
    assert carried == ["line 6: iterations of k depend on each other: it is not parallel"]


def test_an_array_lives_around_what_reads_it() -> None:
    text = (
        "axis m 7: S0.0 S1.0 S2.0\naxis n 10: S0.1 S1.1 S2.1\naxis k 12: S1.2\n"
        "for m, n\n  run S0\nfor k tile 4\n  {0}for m\n    for n, k\n      run S1\nfor m, n\n  run S2"
    )
    assert problems(MATMUL, text.format("")) == []
    assert problems(MATMUL, text.format("place t0 in stack\n  ")) == [
        "line 7: t0 is read where it has no storage, outside of this block or in another iteration"
    ]


def test_marks_reach_the_nest() -> None:
    (outer,) = nests_of(
        matmul_relu(8, 8, 4),
        tree("""
        axis m 8: S0.0 S1.0 S2.0
        axis n 8: S0.1 S1.1 S2.1
        axis k 4: S1.2
        for m tile 2 parallel
          for m unroll, n vector
            run S0
          for k, m unroll, n vector
            run S1
          for m unroll, n vector
            run S2
    """),
    )
    assert isinstance(outer, ForLoop)
    assert (outer.name, outer.kind) == ("m", "parallel")
    assert {loop.kind for loop in loops(outer.body)} == {"sequential", "unroll", "vector"}


def shifted(n: int = 9) -> KernelModel:
    """S0: t[i + 1] = x[i]; S1: y[i] = t[i], which the iteration before has written."""
    (i,) = dims(1)
    return KernelModel(
        (array(n, kind="input"), array(n, kind="output"), array(n + 1)),
        (statement((n,), 2, (i + 1,), read(0, 1, i)), statement((n,), 1, (i,), read(2, 1, i))),
        ("pad", "copy"),
    )


@pytest.mark.parametrize(("order", "collides"), [("S0 S1", False), ("S1 S0", True)])
def test_lanes_run_a_statement_at_a_time(order: str, collides: bool) -> None:
    """In both orders the loop is right one iteration after the other; vectors read what S0 writes only after it."""
    text = f"axis i 9: S0.0 S1.0\nfor i{{0}}\n  run {order}"
    assert problems(shifted(), text.format("")) == []
    message = "line 2: lanes of i depend on each other: it is no vector loop"
    assert problems(shifted(), text.format(" vector")) == ([message] if collides else [])


def test_lanes_run_the_loops_below_together() -> None:
    """S0: t[i + 1, j] = x[i, j]; S1: y[i, j] = t[i, 3 - j]: i after i it is right, all of them at each j are not."""
    i, j = dims(2)
    arrays = (array(9, 4, kind="input"), array(9, 4, kind="output"), array(10, 4))
    copies = (
        statement((9, 4), 2, (i + 1, j), read(0, 2, i, j)),
        statement((9, 4), 1, (i, j), read(2, 2, i, j * -1 + 3)),
    )
    model = KernelModel(arrays, copies, ("pad", "copy"))
    text = "axis i 9: S0.0 S1.0\naxis j 4: S0.1 S1.1\nfor i{0}, j\n  run S0 S1"
    assert problems(model, text.format("")) == []
    assert problems(model, text.format(" vector")) == ["line 3: lanes of i depend on each other: it is no vector loop"]


def test_lanes_of_a_sum_do_not_collide() -> None:
    assert not problems(
        matmul_relu(),
        "axis m 3: S0.0 S1.0 S2.0\naxis n 5: S0.1 S1.1 S2.1\naxis k 4: S1.2\n"
        "for m, n\n  run S0\n  for k vector\n    run S1\n  run S2",
    )


@pytest.mark.parametrize(
    ("write", "collides"), [(dims(1)[0] // 2, True), (dims(1)[0] * 2, False), (AffineExpr.constant(0), False)]
)
def test_lanes_that_share_some_places_collide(write: AffineExpr, collides: bool) -> None:
    """Lanes may update one place all together, or a place each; nothing between."""
    arrays = (array(8, kind="input"), array(16))
    update = statement((8,), 1, (write,), read(0, 1, dims(1)[0]), "add")
    model = KernelModel(arrays, (update,), ("scatter",))
    assert bool(problems(model, "axis i 8: S0.0\nfor i vector\n  run S0")) is collides


def test_generated_loops_have_the_name_of_their_axis_without_its_number() -> None:
    (loop,) = generate(shifted(), tree("axis i_1 9: S0.0 S1.0\nfor i_1\n  run S0 S1"))
    assert isinstance(loop, ForLoop)
    assert loop.name == "i"


def test_trees_of_the_same_loops_share_what_isl_makes_of_them() -> None:
    """Wherever arrays live; each keeps the lines of its own text and its own places."""
    model, loops = shifted(), "axis i_1 9: S0.0 S1.0\nfor i_1\n"
    trees = [tree(loops + rest) for rest in ("  run S0 S1", "\n  place t0 in stack\n  run S0 S1")]
    bare, placed = (to_isl(model, each) for each in trees)
    other = to_isl(model, tree("axis i_1 9: S0.0 S1.0\nfor i_1 unroll\n  run S0 S1"))
    assert placed.schedule is bare.schedule is not other.schedule
    assert not bare.places
    assert [rows.places for rows in placed.places] == [(Place("t0", "stack"),)]
    (without,), (with_place,) = (generate(model, each) for each in trees)
    assert isinstance(with_place, ForLoop)
    assert isinstance(without, ForLoop)
    assert with_place.body == (Body(1, without.body),)
