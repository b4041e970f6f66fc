"""Scalar operators as vector instructions: which one does it, or which sum of several."""

from __future__ import annotations

from collections.abc import Mapping

from msc.poly.scalar import OPERATORS, Apply, Cast, Constant, Read, Scalar, apply

BINARY: Mapping[str, str] = {"add": "vadd", "sub": "vsub", "mul": "vmul", "div": "vdiv", "max": "vmax", "min": "vmin"}
"""Of two floats; of 32-bit integers the first three."""
UNARY: Mapping[str, str] = {"exp": "vexp", "log": "vln", "sqrt": "vsqrt", "rsqrt": "vrsqrt", "abs": "vabs"}
COMPARISONS: Mapping[str, int] = {"lt": 0, "gt": 1, "eq": 2, "le": 3, "ge": 4, "ne": 5}
"""The number that vcmp takes."""
WITH_CONSTANT: Mapping[str, str] = {"add": "vadds", "mul": "vmuls", "max": "vmaxs", "min": "vmins"}
"""Of an array and a literal."""

_NARROW = ("f16", "bf16")


def formula(s: Apply) -> Scalar | None:
    """An operator over others, in f32; None for one that is an instruction, or nothing for the vector unit."""
    if s.dtype not in ("f32", *_NARROW):
        return None
    if s.op == "pow":
        return _power(s)
    operator = OPERATORS[s.op]
    made = operator.single or operator.formula
    if made is None or s.op in UNARY:
        return None
    if s.dtype in _NARROW:
        return Cast(made(*(Cast(arg, "f32") for arg in s.args)), s.dtype)
    return made(*s.args)


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
