"""The verdict on an access against trying every iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from msc.poly.access_bounds import LoopRange, VectorAccess, escaping_iteration


def iterations(loops: list[LoopRange], point: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    if len(point) == len(loops):
        yield point
        return
    loop = loops[len(point)]
    known = [*point, *[0] * (len(loops) - len(point))]
    lower = max(expr.eval(known, []) for expr in loop.lower)
    upper = min(expr.eval(known, []) for expr in loop.upper)
    for value in range(lower, upper, loop.step):
        yield from iterations(loops, (*point, value))


def leaves(access: VectorAccess, point: tuple[int, ...]) -> bool:
    starts = [expr.eval(list(point), []) for expr in access.index]
    return any(
        not 0 <= start + step * lane < size
        for start, size, step in zip(starts, access.shape, access.steps, strict=True)
        for lane in range(access.lanes)
    )


@st.composite
def sums(draw: st.DrawFn, dims: int) -> AffineExpr:
    result: AffineExpr = AffineConstantExpr(draw(st.integers(-2, 4)))
    for k in range(dims):
        result = result + AffineDimExpr(k) * draw(st.integers(-1, 2))
    return result


@st.composite
def expressions(draw: st.DrawFn, dims: int) -> AffineExpr:
    result = draw(sums(dims))
    match draw(st.sampled_from(["plain", "mod", "floor", "ceil"])):
        case "mod":
            return result % draw(st.integers(1, 4))
        case "floor":
            return result // draw(st.integers(1, 4))
        case "ceil":
            return result.ceil_div(draw(st.integers(1, 4)))
        case _:
            return result


@st.composite
def nests(draw: st.DrawFn, deepest: int, bound: Callable[[int], st.SearchStrategy[AffineExpr]]) -> list[LoopRange]:
    depth = draw(st.integers(0, deepest))
    bounds = [
        (draw(st.lists(bound(k), min_size=1, max_size=2)), draw(st.lists(bound(k), min_size=1, max_size=2)))
        for k in range(depth)
    ]
    return [
        LoopRange(tuple(lower), (*upper, AffineConstantExpr(9)), draw(st.integers(1, 3))) for lower, upper in bounds
    ]


@st.composite
def accesses(draw: st.DrawFn, dims: int, axes: int) -> VectorAccess:
    rank = draw(st.integers(0, axes))
    index = tuple(draw(expressions(dims)) for _ in range(rank))
    shape = tuple(draw(st.integers(1, 20)) for _ in range(rank))
    steps = tuple(draw(st.integers(-1, 2)) for _ in range(rank))
    return VectorAccess(index, shape, steps, draw(st.sampled_from([1, 4])))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_verdict_is_that_of_trying(data: st.DataObject) -> None:
    loops = data.draw(nests(3, expressions))
    access = data.draw(accesses(len(loops), 2))
    escaping = [point for point in iterations(loops) if leaves(access, point)]
    assert escaping_iteration(loops, access) in (escaping or [None])


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_with_few_divisions_it_is_the_first_iteration(data: st.DataObject) -> None:
    loops = data.draw(nests(2, sums))
    access = data.draw(accesses(len(loops), 1))
    first = next((point for point in iterations(loops) if leaves(access, point)), None)
    assert escaping_iteration(loops, access) == first


def test_many_divisions_are_decided_quickly() -> None:
    dims = [AffineExpr.dimension(k) for k in range(12)]
    total = AffineExpr.constant(0)
    for k, dim in enumerate(dims):
        total = total + (dim * (997 + k * 131)) % (1009 + k * 17)
    loops = [LoopRange((AffineExpr.constant(0),), (AffineExpr.constant(1000 + k),)) for k in range(12)]
    found = escaping_iteration(loops, VectorAccess((total % 5003,), (5002,), (0,)))
    assert found is not None
    assert (total % 5003).eval(found, ()) == 5002
