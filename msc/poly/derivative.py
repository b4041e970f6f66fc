"""Derivatives of scalar bodies: what each read contributes to a change of the value, as scalars again.

`adjoints(body, seed)` walks a body from its value to its reads (reverse mode); a read that occurs twice is given twice.
Where a function has a kink, the derivative is the one that the field takes: 0 for |x| at 0, for max(x, c) at the
constant c, and one half each for the maximum of two equal values. What is constant between jumps has none.

A slope may be infinite: that of a root at 0, of a logarithm, of a quotient, of an exponential that overflows. What does
not count (a seed of 0, behind a `select` for example) stays 0 beside it: their product is `absorbed`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from msc.poly.scalar import OPERATORS, Apply, Cast, Constant, Index, Read, Scalar, apply


def number(value: float, like: Scalar) -> Constant:
    """A literal of the element type of another scalar."""
    return Constant(float(value) if is_float(like.dtype) else int(value), like.dtype)


def _mul(a: Scalar, b: Scalar) -> Scalar:
    return apply("mul", a, b)


def _neg(a: Scalar) -> Scalar:
    return apply("neg", a)


def absorbed(a: Scalar, b: Scalar) -> Scalar:
    """The product; 0 where a is 0, even if b is infinite or no number there, which no integer is.

    On tensors it is `ms.mul_no_nan`, whose derivative by a is b: that of the selection would be 0 where a is 0.
    """
    if not is_float(a.dtype):
        return _mul(a, b)
    zero = number(0, a)
    return apply("select", apply("eq", a, zero), zero, _mul(a, b))


def factors_absorbed(scalar: Scalar) -> tuple[Scalar, Scalar] | None:
    """The factors of such a product; None of another scalar."""
    match scalar:
        case Apply("select", (Apply("eq", (a, Constant(value=0))), Constant(value=0), Apply("mul", (same, b)))):
            return (a, b) if a == same else None
        case _:
            return None


def unless_zero(a: Scalar) -> Scalar:
    """A divisor: infinite where it is 0, so that quotients, and their slopes, are 0 there."""
    return apply("select", apply("eq", a, number(0, a)), number(math.inf, a), a)


def is_float(dtype: str) -> bool:
    """Whether an element type is a real number, which has derivatives: f16, bf16, f32, f64."""
    return dtype[0] in "fb"


def is_number(dtype: str) -> bool:
    """Whether an element type is one of numbers: floats and integers, but no booleans."""
    return dtype != "i1"


def adjoints(body: Scalar, seed: Scalar) -> Iterator[tuple[Read, Scalar]]:
    """Every read of a number that a body depends on smoothly, with the derivative of `seed * body` by it.

    Reads inside indices that are data, and in conditions, have none. Integers are differentiated as the numbers that
    they are, each derivative rounded to their type; a float that is rounded to an integer has none.
    """
    match body:
        case Read() if is_number(body.dtype):
            yield body, seed
        case Cast() if not body.bits and is_number(body.arg.dtype) and is_float(body.dtype) >= is_float(body.arg.dtype):
            if is_number(body.dtype):
                yield from adjoints(body.arg, Cast(seed, body.arg.dtype) if body.dtype != body.arg.dtype else seed)
        case Apply("select", (condition, a, b)) if is_number(a.dtype):
            yield from adjoints(a, apply("select", condition, seed, number(0, seed)))
            yield from adjoints(b, apply("select", condition, number(0, seed), seed))
        case Apply() if is_number(body.dtype) and is_number(body.args[0].dtype):
            for argument, local in zip(body.args, _locals(body), strict=True):
                if local is not None:
                    yield from adjoints(argument, _scaled(seed, local, is_unbounded(body)))
        case Read() | Constant() | Index() | Apply() | Cast():
            return


def _locals(op: Apply) -> tuple[Scalar | None, ...]:
    operator = OPERATORS[op.op]
    slope = operator.slope if is_float(op.dtype) else operator.integer_slope
    return slope(op) if slope is not None else (None,) * len(op.args)


def is_unbounded(op: Apply) -> bool:
    """Whether a slope of an operator may be infinite. That of x / 2 and x^2 is not."""
    last = op.args[-1]
    if isinstance(last, Constant) and op.op in ("div", "pow"):
        return last.value == 0 if op.op == "div" else last.value < 1
    return OPERATORS[op.op].unbounded


def _scaled(seed: Scalar, local: Scalar, unbounded: bool) -> Scalar:
    """Their product, without factors of one and minus one."""
    if isinstance(local, Constant) and abs(local.value) == 1:
        return seed if local.value > 0 else _neg(seed)
    match local:
        case Apply("neg", (inner,)):
            return _neg(_scaled(seed, inner, unbounded))
        case _ if unbounded:
            return absorbed(seed, local)
        case Apply("div", (Constant(value=1), divisor)):
            return apply("div", seed, divisor)
        case Apply("select", (condition, Constant(value=1), Constant(value=0) as zero)):
            return apply("select", condition, seed, zero)
        case _:
            return _mul(seed, local)
