"""Special functions, composed of elementary ones, so that they have gradients and are compiled."""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msc.frontend.tensor import Tensor, tensor_method
from msc.ops import arithmetic, comparison, creation, selection, unary
from msc.ops.operands import as_float, pair
from msc.ops.primitive import operator

__all__ = [
    "BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "Digamma", "Erfinv", "Igamma", "Igammac", "Lgamma", "Mvlgamma",
    "Polygamma", "Zeta", "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "digamma", "erfinv", "i0", "igamma",
    "igammac", "lgamma", "mvlgamma", "polygamma", "zeta",
]  # fmt: skip

_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip
"""For g = 7 (Godfrey, 2001)."""


def lgamma(input: Tensor) -> Tensor:
    """The log of the size of the gamma function."""
    whole = as_float(input)
    is_zero, is_infinite = comparison.equal(whole, 0), comparison.equal(whole, float("inf"))
    x = selection.where(comparison.logical_or(is_zero, is_infinite), 1.5, whole)
    reflected = x < 0.5
    y = arithmetic.sub(selection.where(reflected, arithmetic.sub(1.0, x), x), 1.0)
    # Divided by y, the terms of the sum stay small where y is large.
    total = creation.full_like(y, _LANCZOS[0])
    for i, c in enumerate(_LANCZOS[1:], start=1):
        total = arithmetic.add(total, arithmetic.div(c, arithmetic.add(y, float(i))))
    t = arithmetic.add(y, 7.5)
    body = arithmetic.sub(arithmetic.mul(arithmetic.add(y, 0.5), arithmetic.sub(unary.log(t), 1.0)), 7.0)
    found = arithmetic.add(arithmetic.add(body, unary.log(total)), 0.5 * math.log(2 * math.pi))
    near = arithmetic.sub(x, unary.round(x))
    sine = unary.abs(unary.sin(arithmetic.mul(near, math.pi)))
    mirrored = arithmetic.sub(arithmetic.sub(math.log(math.pi), unary.log(sine)), found)
    found = selection.where(reflected, mirrored, found)
    # At 0 and at infinity it behaves as functions whose slopes are infinite there.
    zero, infinite = selection.where(is_zero, whole, 1.0), selection.where(is_infinite, whole, 2.0)
    found = selection.where(is_zero, unary.neg(unary.log(zero)), found)
    return selection.where(is_infinite, arithmetic.pow(infinite, 1.5), found)


def digamma(input: Tensor) -> Tensor:
    """The derivative of the log of the gamma function."""
    x = as_float(input)
    reflected = x < 0.5
    y = selection.where(reflected, arithmetic.sub(1.0, x), x)
    total = creation.zeros_like(y)
    for _ in range(8):
        small = y < 8.0
        total = arithmetic.sub(total, selection.where(small, arithmetic.div(1.0, y), 0.0))
        y = selection.where(small, arithmetic.add(y, 1.0), y)
    z = arithmetic.div(1.0, unary.square(y))
    series = _polynomial(z, (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132))
    found = arithmetic.sub(arithmetic.sub(unary.log(y), arithmetic.div(0.5, y)), arithmetic.mul(z, series))
    found = arithmetic.add(found, total)
    near = arithmetic.mul(arithmetic.sub(x, unary.round(x)), math.pi)
    mirrored = arithmetic.sub(found, arithmetic.div(math.pi, unary.tan(near)))
    pole = comparison.logical_and(comparison.equal(unary.floor(x), x), x <= 0)
    return selection.where(pole, float("nan"), selection.where(reflected, mirrored, found))


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """By Horner's scheme, the constant first."""
    total = creation.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = arithmetic.add(arithmetic.mul(total, x), c)
    return total


_EULER = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000)
"""Bernoulli's numbers of even order 2k over (2k)!."""


def zeta(input: Any, other: Any) -> Tensor:
    """Hurwitz's zeta function, the sum of 1 / (q + k)^x (Euler and Maclaurin's formula)."""
    x, q = map(as_float, pair("zeta", input, other))
    total = creation.zeros_like(arithmetic.add(x, q))
    for k in range(10):
        total = arithmetic.add(total, arithmetic.pow(arithmetic.add(q, float(k)), unary.neg(x)))
    y = arithmetic.add(q, 10.0)
    power = arithmetic.pow(y, unary.neg(x))
    total = arithmetic.add(total, arithmetic.div(arithmetic.mul(y, power), arithmetic.sub(x, 1.0)))
    total = arithmetic.add(total, arithmetic.mul(power, 0.5))
    factor, falling = arithmetic.div(arithmetic.mul(x, power), y), 1
    for c in _EULER:
        total = arithmetic.add(total, arithmetic.mul(factor, c))
        for _ in range(2):
            factor = arithmetic.div(arithmetic.mul(factor, arithmetic.add(x, float(falling))), y)
            falling += 1
    return selection.where(x > 1.0, total, selection.where(comparison.equal(x, 1.0), float("inf"), float("nan")))


def polygamma(n: Any, input: Tensor) -> Tensor:
    """The n-th derivative of `digamma`."""
    order = int(n)
    if order == 0:
        return digamma(input)
    sign = 1.0 if order % 2 else -1.0
    x = as_float(input)
    return arithmetic.mul(zeta(creation.full_like(x, float(order + 1)), x), sign * math.factorial(order))


def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The log of the multivariate gamma function of dimension p."""
    x = as_float(input)
    total = creation.full_like(x, p * (p - 1) / 4 * math.log(math.pi))
    for i in range(p):
        total = arithmetic.add(total, lgamma(arithmetic.sub(x, i / 2)))
    return total


_NEAR = (
    1.50140941,
    0.246640727,
    -0.00417768164,
    -0.00125372503,
    0.00021858087,
    -4.39150654e-06,
    -3.5233877e-06,
    3.43273939e-07,
    2.81022636e-08,
)
_FAR = (
    2.83297682,
    1.00167406,
    0.00943887047,
    -0.0076224613,
    0.00573950773,
    -0.00367342844,
    0.00134934322,
    0.000100950558,
    -0.000200214257,
)


def erfinv(input: Tensor) -> Tensor:
    """The inverse of erf (Giles, 2010), and a step of Newton's method."""
    x = as_float(input)
    inside = unary.abs(x) < 1.0
    safe = selection.where(inside, x, 0.0)
    w = unary.neg(unary.log(arithmetic.mul(arithmetic.sub(1.0, safe), arithmetic.add(1.0, safe))))
    is_near = w < 5.0
    near = _polynomial(arithmetic.sub(selection.where(is_near, w, 2.5), 2.5), _NEAR)
    far = _polynomial(arithmetic.sub(unary.sqrt(selection.where(is_near, 9.0, w)), 3.0), _FAR)
    y = arithmetic.mul(selection.where(is_near, near, far), safe)
    slope = arithmetic.mul(unary.exp(unary.neg(unary.square(y))), 2 / math.sqrt(math.pi))
    y = arithmetic.sub(y, arithmetic.div(arithmetic.sub(unary.erf(y), safe), slope))
    return selection.where(inside, y, unary.atanh(x))  # Infinite at 1, with an infinite slope, and NaN beyond.


_TERMS = 60


def _bessel(x: Tensor, order: int, scaled: bool) -> Tensor:
    """The modified Bessel function of the first kind: its power series, or far out its asymptotic one (times e^-x)."""
    x = as_float(x)
    size = unary.abs(x)
    is_near = size < 16.0
    near = selection.where(is_near, x, 1.0)
    quarter = arithmetic.mul(unary.square(near), 0.25)
    term = creation.full_like(near, 1.0) if order == 0 else arithmetic.mul(near, 0.5)
    total = term
    for k in range(1, _TERMS):
        term = arithmetic.mul(term, arithmetic.mul(quarter, 1 / (k * (k + order))))
        total = arithmetic.add(total, term)
    far = selection.where(is_near, 16.0, size)
    part = series = creation.full_like(far, 1.0)
    for k in range(1, 12):
        part = arithmetic.div(arithmetic.mul(part, -(4 * order * order - (2 * k - 1) ** 2) / (8 * k)), far)
        series = arithmetic.add(series, part)
    outer = arithmetic.div(series, unary.sqrt(arithmetic.mul(far, 2 * math.pi)))
    outer = outer if scaled else arithmetic.mul(outer, unary.exp(far))
    outer = arithmetic.mul(outer, unary.sign(x)) if order else outer
    near_part = arithmetic.mul(total, unary.exp(unary.neg(unary.abs(near)))) if scaled else total
    return selection.where(is_near, near_part, outer)


def bessel_i0(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
    return _bessel(x, 0, False)


def bessel_i0e(x: Tensor) -> Tensor:
    """The same times e^-|x|."""
    return _bessel(x, 0, True)


def bessel_i1(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""
    return _bessel(x, 1, False)


def bessel_i1e(x: Tensor) -> Tensor:
    """The same times e^-|x|."""
    return _bessel(x, 1, True)


i0 = bessel_i0


def igamma(input: Any, other: Any) -> Tensor:
    """The regularised lower incomplete gamma function P(a, x): its series, or Legendre's continued fraction."""
    a, x = map(as_float, pair("igamma", input, other))
    below = x < arithmetic.add(a, 1.0)
    scale = unary.exp(arithmetic.sub(arithmetic.sub(arithmetic.mul(a, unary.log(x)), x), lgamma(a)))
    low = selection.where(below, x, arithmetic.mul(a, 0.5))
    term = arithmetic.div(1.0, a)
    total = term
    for k in range(1, 2 * _TERMS):
        term = arithmetic.div(arithmetic.mul(term, low), arithmetic.add(a, float(k)))
        total = arithmetic.add(total, term)
    high = selection.where(below, arithmetic.add(a, 2.0), x)
    fraction = creation.zeros_like(total)
    for k in range(2 * _TERMS, 0, -1):
        top = arithmetic.mul(arithmetic.sub(a, float(k)), float(k))
        bottom = arithmetic.add(arithmetic.sub(high, a), float(2 * k + 1))
        fraction = arithmetic.div(top, arithmetic.add(bottom, fraction))
    upper = arithmetic.div(scale, arithmetic.add(arithmetic.add(arithmetic.sub(high, a), 1.0), fraction))
    found = selection.where(below, arithmetic.mul(scale, total), arithmetic.sub(1.0, upper))
    return selection.where(
        comparison.equal(x, 0), 0.0, selection.where((x < 0).logical_or(a <= 0), float("nan"), found)
    )


def igammac(input: Any, other: Any) -> Tensor:
    """The regularised upper incomplete gamma function, 1 - P(a, x)."""
    return arithmetic.sub(1.0, igamma(input, other))


for _function in (lgamma, digamma, erfinv, igamma, igammac, mvlgamma, i0):
    tensor_method("i0" if _function is i0 else _function.__name__)(_function)

BesselI0, BesselI0e = operator("BesselI0", bessel_i0), operator("BesselI0e", bessel_i0e)
BesselI1, BesselI1e = operator("BesselI1", bessel_i1), operator("BesselI1e", bessel_i1e)
Digamma, Erfinv, Lgamma = operator("Digamma", digamma), operator("Erfinv", erfinv), operator("Lgamma", lgamma)
Igamma, Igammac = operator("Igamma", igamma), operator("Igammac", igammac)
Mvlgamma = operator("Mvlgamma", mvlgamma, "p")
Polygamma, Zeta = operator("Polygamma", polygamma), operator("Zeta", zeta)
