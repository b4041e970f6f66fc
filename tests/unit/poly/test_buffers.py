"""Where the values of internal arrays live, which outputs may lie on inputs, and the numbers behind both."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir.affine import AffineExpr

from msc.poly.affine import bounds, linear_form, simplified
from msc.poly.buffers import ArrayAccess, body_accesses, fills_box, forwarded, local_buffer, local_buffers
from msc.poly.compute import dims
from msc.poly.model import KernelModel
from msc.poly.nest import Body, ForLoop, Nest
from msc.poly.overwriting import aliased_outputs, may_overwrite
from msc.poly.scalar import apply
from msc.poly.schedule_tree.nodes import Tree
from tests.unit.poly.kernels import array, matmul_relu, read, statement
from tests.unit.poly.trees import nests_of, tree


def body_of(nests: tuple[Nest, ...], depth: int = 0) -> tuple[Body, int]:
    """The first place for local buffers, and how many loops are around it."""
    (first, *_) = nests
    if isinstance(first, ForLoop):
        return body_of(first.body, depth + 1)
    assert isinstance(first, Body)
    return first, depth


def matmul_body(tile: int) -> tuple[KernelModel, Body, int]:
    model = matmul_relu(8, 8, 4)
    schedule = tree(f"""
        axis m 8: S0.0 S1.0 S2.0
        axis n 8: S0.1 S1.1 S2.1
        axis k 4: S1.2
        for m, n tile {tile}
          place t0 in stack
          for n
            run S0
          for k, n
            run S1
          for n
            run S2
    """)
    return model, *body_of(nests_of(model, schedule))


@pytest.mark.parametrize("tile", [1, 2, 4, 8])
def test_an_accumulator_is_as_large_as_its_tile(tile: int) -> None:
    model, body, depth = matmul_body(tile)
    accesses = body_accesses(model, body, dict.fromkeys(range(depth), range(8)), {3})
    buffer = local_buffer(accesses, depth)
    assert buffer is not None
    assert sorted(buffer.shape) == sorted((1, tile))
    assert forwarded(accesses) == set()


def test_a_part_with_vectors_across_is_a_buffer_of_its_own() -> None:
    model = matmul_relu(8, 17, 4)
    halves = """head n to 16
            for {0}m unroll, n vector
              run {1}
          tail n from 16
            for {0}n unroll, m vector
              run {1}"""
    schedule = tree(f"""
        axis m 8: S0.0 S1.0 S2.0
        axis n 17: S0.1 S1.1 S2.1
        axis k 4: S1.2
        for m tile 4
          place t0 in stack
          {halves.format("", "S0")}
          {halves.format("k, ", "S1")}
          {halves.format("", "S2")}
    """)
    body, depth = body_of(nests_of(model, schedule))
    accesses = body_accesses(model, body, dict.fromkeys(range(depth), range(2)), {3})
    buffers = local_buffers(accesses, depth)
    assert buffers is not None
    assert sorted(b.shape for b in buffers) == [(1, 4), (4, 16)]
    assert all(sum(b.holds(a.index, a.inner) for b in buffers) == 1 for a in accesses)


def chain(n: int = 6) -> KernelModel:
    """S0: t = -x; S1: y = t t."""
    (i,) = dims(1)
    value = read(2, 1, i)
    return KernelModel(
        (array(n, kind="input"), array(n, kind="output"), array(n)),
        (
            statement((n,), 2, (i,), apply("neg", read(0, 1, i))),
            statement((n,), 1, (i,), apply("mul", value, value)),
        ),
        ("neg", "square"),
    )


def test_a_value_used_where_it_is_made_needs_no_memory() -> None:
    model = chain()
    body, depth = body_of(nests_of(model, tree("axis i 6: S0.0 S1.0\nfor i\n  place t0 in register\n  run S0 S1")))
    assert forwarded(body_accesses(model, body, dict.fromkeys(range(depth), range(8)), {2})) == {2}


def test_a_value_used_later_needs_memory() -> None:
    model = chain()
    apart = tree("axis i 6: S0.0 S1.0\nplace t0 in stack\nfor i\n  run S0\nfor i\n  run S1")
    body, depth = body_of(nests_of(model, apart))
    accesses = body_accesses(model, body, dict.fromkeys(range(depth), range(8)), {2})
    assert forwarded(accesses) == set()
    buffer = local_buffer(accesses, depth)
    assert buffer is not None
    assert buffer.shape == (6,)


def overwrites(model: KernelModel, schedule: Tree, source: int, target: int) -> bool:
    return may_overwrite(model, schedule, source, target)


def square_kernel(body_index: tuple[AffineExpr, ...]) -> tuple[KernelModel, Tree]:
    """y[i, j] = -x[...] in two loops."""
    i, j = dims(2)
    model = KernelModel(
        (array(4, 4, kind="input"), array(4, 4, kind="output")),
        (statement((4, 4), 1, (i, j), apply("neg", read(0, 2, *body_index))),),
        ("neg",),
    )
    return model, tree("axis i 4: S0.0\naxis j 4: S0.1\nfor i, j vector\n  run S0")


def test_what_reads_and_writes_one_place_may_overwrite_its_input() -> None:
    i, j = dims(2)
    assert overwrites(*square_kernel((i, j)), 0, 1)
    assert not overwrites(*square_kernel((j, i)), 0, 1)
    assert not overwrites(*square_kernel((i * -1 + 3, j)), 0, 1)


def test_a_product_may_not_overwrite_its_factors() -> None:
    model = matmul_relu(4, 4, 4)
    schedule = tree("""
        axis m 4: S0.0 S1.0 S2.0
        axis n 4: S0.1 S1.1 S2.1
        axis k 4: S1.2
        for m, n
          run S0
          for k
            run S1
          run S2
    """)
    assert not overwrites(model, schedule, 0, 2)
    assert not overwrites(model, schedule, 1, 2)


def normalised_rows(of: str) -> tuple[KernelModel, Tree]:
    """t = -x; m = max of t's rows; u = t - m; y = u `of`'s element, or that of the next column."""
    i, j = dims(2)
    nearby = {"same": read(3, 2, i, j), "next": apply("add", read(3, 2, i, j), read(3, 2, i, j * -1 + 3))}[of]
    arrays = (array(4, 4, kind="input"), array(4, 4, kind="output"), array(4, 4), array(4, 4), array(4))
    statements = (
        statement((4, 4), 2, (i, j), apply("neg", read(0, 2, i, j))),
        statement((4,), 4, (i,), read(2, 1, i, 0)),
        statement((4, 4), 4, (i,), read(2, 2, i, j), "max"),
        statement((4, 4), 3, (i, j), apply("sub", read(2, 2, i, j), read(4, 2, i))),
        statement((4, 4), 1, (i, j), nearby),
    )
    schedule = tree("""
        axis i 4: S0.0 S1.0 S2.0 S3.0 S4.0
        axis j 4: S0.1 S2.1 S3.1 S4.1
        for i
          for j vector
            run S0
          run S1
          for j vector
            run S2
          for j vector
            run S3
          for j vector
            run S4
    """)
    return KernelModel(arrays, statements, ("rows",)), schedule


def test_arrays_lie_in_the_output_that_is_made_of_them() -> None:
    model, rows = normalised_rows("same")
    assert aliased_outputs(model, rows, [2, 3]) == {2: 1, 3: 1}
    assert aliased_outputs(model, rows, [3]) == {3: 1}
    assert aliased_outputs(model, rows, []) == {}


def test_an_array_that_is_read_elsewhere_once_more_does_not() -> None:
    model, rows = normalised_rows("next")
    assert aliased_outputs(model, rows, [2, 3]) == {2: 1}


def test_a_reduction_does_not_lie_in_an_output() -> None:
    model = matmul_relu(4, 4, 4)
    schedule = tree("""
        axis m 4: S0.0 S1.0 S2.0
        axis n 4: S0.1 S1.1 S2.1
        axis k 4: S1.2
        for m, n
          run S0
        for m, n, k
          run S1
        for m, n
          run S2
    """)
    assert aliased_outputs(model, schedule, [3]) == {}


@st.composite
def linear_expressions(draw: st.DrawFn) -> AffineExpr:
    """Sums of multiples of three dimensions, built up in any order."""
    expr: AffineExpr = AffineExpr.constant(draw(st.integers(-9, 9)))
    for _ in range(draw(st.integers(0, 5))):
        term: AffineExpr = AffineExpr.dimension(draw(st.integers(0, 2)))
        expr = draw(st.sampled_from([expr + term, term + expr, (expr + term) * draw(st.integers(-3, 3))]))
    return expr


RANGES = {0: range(0, 3), 1: range(1, 4), 2: range(2, 4)}


@given(linear_expressions())
def test_canonical_expressions_are_equal(expr: AffineExpr) -> None:
    form = linear_form(expr)
    assert form is not None
    assert all(form.coefficients.values())
    for point in product(*RANGES.values()):
        assert simplified(expr).eval(point, ()) == expr.eval(point, ())


@given(linear_expressions())
def test_bounds_are_reached(expr: AffineExpr) -> None:
    values = [expr.eval(point, ()) for point in product(*RANGES.values())]
    assert bounds(expr, RANGES) == (min(values), max(values))


@given(linear_expressions(), st.integers(1, 9), st.booleans())
def test_divisions_that_ranges_decide(expr: AffineExpr, divisor: int, remainder: bool) -> None:
    divided = expr % divisor if remainder else expr // divisor
    for point in product(*RANGES.values()):
        assert simplified(divided, RANGES).eval(point, ()) == divided.eval(point, ())
    assert linear_form(AffineExpr.dimension(0) // 2) is None


@pytest.mark.parametrize(
    ("writes", "reads", "fills"),
    [
        (["4 i + j"], ["4 i + j"], True),
        (["4 i + 2 j"], ["4 i + 2 j"], False),
        (["4 i + j"], ["4 i + j - 1"], False),
        (["4 i + j", "4 i + j + 4"], ["4 i + j + 2"], True),
        (["4 i + j", "4 i + j + 5"], ["4 i + j"], False),
        ([], ["4 i + j"], False),
    ],
)
def test_what_is_written_fills_the_box_that_is_touched(writes: list[str], reads: list[str], fills: bool) -> None:
    i, j = dims(2)
    known = {
        "4 i + j": i * 4 + j, "4 i + 2 j": i * 4 + j * 2, "4 i + j - 1": i * 4 + j - 1, "4 i + j + 2": i * 4 + j + 2,
        "4 i + j + 4": i * 4 + j + 4, "4 i + j + 5": i * 4 + j + 5,
    }  # fmt: skip
    inner = {0: range(8), 1: range(4)}
    texts = [*((text, True) for text in writes), *((text, False) for text in reads)]
    uses = [ArrayAccess(0, (known[text],), written, False, 1, inner, None) for text, written in texts]
    assert fills_box(uses, 1) == fills
