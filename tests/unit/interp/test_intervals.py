"""Bounds of affine expressions hold for every point."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir.affine import AffineExpr

from msc.poly.intervals import interval

DIVISORS = st.integers(1, 7).map(AffineExpr.constant)


def larger(inner: st.SearchStrategy[AffineExpr]) -> st.SearchStrategy[AffineExpr]:
    return st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, st.integers(-5, 5)).map(lambda p: p[0] * p[1]),
        st.tuples(inner, DIVISORS).map(lambda p: p[0] // p[1]),
        st.tuples(inner, DIVISORS).map(lambda p: p[0] % p[1]),
        st.tuples(inner, DIVISORS).map(lambda p: p[0].ceil_div(p[1])),
    )


LEAVES = st.one_of(st.integers(0, 1).map(AffineExpr.dimension), st.integers(-20, 20).map(AffineExpr.constant))
RANGES = st.tuples(st.integers(-9, 9), st.integers(0, 6)).map(lambda p: (p[0], p[0] + p[1]))


@given(expr=st.recursive(LEAVES, larger, max_leaves=6), first=RANGES, second=RANGES)
def test_every_value_lies_in_the_interval(expr: AffineExpr, first: tuple[int, int], second: tuple[int, int]) -> None:
    bounds = interval(expr, [first, second])
    assert bounds is not None
    for i in range(first[0], first[1] + 1):
        for j in range(second[0], second[1] + 1):
            assert bounds[0] <= expr.eval([i, j], []) <= bounds[1]


def test_unknown_dimensions_have_no_bounds() -> None:
    assert interval(AffineExpr.dimension(0) + 1, [None]) is None
    assert interval(AffineExpr.constant(3), [None]) == (3, 3)
