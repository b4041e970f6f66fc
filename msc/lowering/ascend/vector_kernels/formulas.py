"""Scalar operators as vector instructions: which one does it, or which sum of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from msc.poly.scalar import Apply, Cast, Constant, Read, Scalar, apply

BINARY: Mapping[str, str] = {"add": "vadd", "sub": "vsub", "mul": "vmul", "div": "vdiv", "max": "vmax", "min": "vmin"}
"""Of two floats; of 32-bit integers the first three."""
UNARY: Mapping[str, str] = {"exp": "vexp", "log": "vln", "sqrt": "vsqrt", "rsqrt": "vrsqrt", "abs": "vabs"}
COMPARISONS: Mapping[str, int] = {"lt": 0, "gt": 1, "eq": 2, "le": 3, "ge": 4, "ne": 5}
"""The number that vcmp takes."""
WITH_CONSTANT: Mapping[str, str] = {"add": "vadds", "mul": "vmuls", "max": "vmaxs", "min": "vmins"}
"""Of an array and a literal."""

_F = Callable[[Scalar], Scalar]


def _c(value: float) -> Constant:
    return Constant(value, "f32")


def _sigmoid(x: Scalar) -> Scalar:
    """1 / (1 + exp(-x)): exp(-x) is infinite where the result is 0."""
    return apply("div", _c(1.0), apply("add", apply("exp", apply("neg", x)), _c(1.0)))


def _log1p(x: Scalar) -> Scalar:
    """With u = 1 + x: log(u) x / (u - 1), and x where u is 1: what rounding takes from u, the quotient gives back."""
    u = apply("add", x, _c(1.0))
    exact = apply("div", apply("mul", apply("log", u), x), apply("sub", u, _c(1.0)))
    finite = apply("select", apply("eq", u, _c(math.inf)), u, exact)
    return apply("select", apply("eq", u, _c(1.0)), x, finite)


def _expm1(x: Scalar) -> Scalar:
    """With u = exp(x): (u - 1) x / log(u), x where u is 1, and u - 1 where log(u) says no more."""
    u = apply("exp", x)
    less = apply("sub", u, _c(1.0))
    exact = apply("div", apply("mul", less, x), apply("log", u))
    far = apply("select", apply("gt", apply("abs", x), _c(40.0)), less, exact)
    return apply("select", apply("eq", u, _c(1.0)), x, far)


def _tanh(x: Scalar) -> Scalar:
    """With t = exp(2 x) - 1: t / (t + 2), which is 1 in f32 from 9.1 on."""
    near = apply("max", apply("min", x, _c(9.1)), _c(-9.1))
    t = _expm1(apply("mul", near, _c(2.0)))
    return apply("div", t, apply("add", t, _c(2.0)))


def _softplus(x: Scalar) -> Scalar:
    """max(x, 0) + log1p(exp(-|x|))."""
    return apply("add", apply("max", x, _c(0.0)), _log1p(apply("exp", apply("neg", apply("abs", x)))))


def _polynomial(x: Scalar, coefficients: tuple[float, ...]) -> Scalar:
    """Horner's scheme, the highest power first."""
    total: Scalar = apply("mul", x, _c(coefficients[0]))
    for coefficient in coefficients[1:-1]:
        total = apply("mul", apply("add", total, _c(coefficient)), x)
    return apply("add", total, _c(coefficients[-1]))


_ERF_ABOVE = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05, -7.34990630326855e-04,
    -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
_ERF_BELOW = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)
"""Eigen's rational approximation of erf on [-4, 4], which XLA uses too: within 1 ulp or so of f32."""


def _erf(x: Scalar) -> Scalar:
    near = apply("max", apply("min", x, _c(4.0)), _c(-4.0))
    square = apply("mul", near, near)
    return apply("div", apply("mul", near, _polynomial(square, _ERF_ABOVE)), _polynomial(square, _ERF_BELOW))


_FORMULAS: Mapping[str, _F] = {
    "sigmoid": _sigmoid,
    "tanh": _tanh,
    "softplus": _softplus,
    "erf": _erf,
    "expm1": _expm1,
    "log1p": _log1p,
    "log2": lambda x: apply("mul", apply("log", x), _c(1.0 / math.log(2.0))),
}
_NARROW = ("f16", "bf16")


def formula(s: Apply) -> Scalar | None:
    """An operator over others, in f32; None for one that is an instruction, or nothing for the vector unit."""
    if s.dtype not in ("f32", *_NARROW):
        return None
    if s.op == "pow":
        return _power(s)
    made = _FORMULAS.get(s.op)
    if made is None:
        return None
    if s.dtype in _NARROW:
        return Cast(made(Cast(s.args[0], "f32")), s.dtype)
    return made(s.args[0])


def is_one_instruction(s: Scalar) -> bool:
    """Whether a body of arrays and literals is one instruction, which reads each element before it writes it."""
    if not isinstance(s, Apply) or not all(isinstance(arg, Read | Constant) for arg in s.args):
        return False
    return formula(s) is None and (s.op in UNARY or s.op in BINARY or s.op == "neg")


def _power(s: Apply) -> Scalar | None:
    """A power with one of the exponents that multiplication and roots give."""
    x, exponent = s.args
    if not isinstance(exponent, Constant):
        return None
    match float(exponent.value):
        case 1.0:
            return x
        case 2.0:
            return apply("mul", x, x)
        case 3.0:
            return apply("mul", apply("mul", x, x), x)
        case 0.5:
            return apply("sqrt", x)
        case -0.5:
            return apply("rsqrt", x)
        case -1.0:
            return apply("div", Constant(1.0, s.dtype), x)
        case _:
            return None
