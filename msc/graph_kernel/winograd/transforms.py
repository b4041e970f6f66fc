"""The matrices of fast convolution along one axis (Toom 1963, Cook 1966; Winograd 1980, Lavin and Gray 2015).

A filter g of r taps slides over a tile d of n = m + r - 1 elements; its m results are those of the products of
polynomials, which are found by their values at n - 1 points and their leading coefficient:

    y = output ((filter g) * (input d))        n products, where sliding takes m r
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

Matrix = tuple[tuple[Fraction, ...], ...]

TAPS = 3
"""Taps of the filter along an axis."""

_POINTS = {
    2: (Fraction(0), Fraction(1), Fraction(-1)),
    4: (Fraction(0), Fraction(5, 8), Fraction(-5, 8), Fraction(3, 2), Fraction(-3, 2)),
}
"""Where the polynomials of F(m, 3) are evaluated, by m.

Points around one keep powers, and with them rounding errors, small; pairs of opposite ones share half of their terms.
"""

TILES = tuple(_POINTS)
"""The numbers of results of a tile along an axis that there are."""


@dataclass(frozen=True)
class FilteringMatrices:
    """The transformations of F(m, r): `input` n by n, `filter` n by r, `output` m by n."""

    input: Matrix
    filter: Matrix
    output: Matrix


def filtering_matrices(m: int) -> FilteringMatrices:
    """F(m, TAPS); m is one of TILES."""
    return matrices_at(_POINTS[m], m, TAPS)


def matrices_at(points: Sequence[Fraction], m: int, r: int) -> FilteringMatrices:
    """F(m, r) by m + r - 2 different points; the last row belongs to the leading coefficient."""
    if len(set(points)) != m + r - 2:
        raise ValueError(f"F({m}, {r}) takes {m + r - 2} different points, not {len(set(points))}")
    others = [[b for b in points if b != a] for a in points]
    scales = [1 / prod((a - b for b in rest), start=Fraction(1)) for a, rest in zip(points, others, strict=True)]
    return FilteringMatrices(
        input=(*((*_with_roots(rest), Fraction(0)) for rest in others), tuple(_with_roots(points))),
        filter=(*(tuple(scale * a**k for k in range(r)) for a, scale in zip(points, scales, strict=True)), _unit(r)),
        output=tuple((*(a**i for a in points), Fraction(i == m - 1)) for i in range(m)),
    )


def transposed(matrix: Matrix) -> Matrix:
    """Its columns as rows."""
    return tuple(zip(*matrix, strict=True))


def _with_roots(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients, lowest first, of the polynomial with these roots and leading coefficient 1."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted, scaled = [Fraction(0), *coefficients], [root * c for c in coefficients] + [Fraction(0)]
        coefficients = [a - b for a, b in zip(shifted, scaled, strict=True)]
    return coefficients


def _unit(size: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(k == size - 1) for k in range(size))
