"""Derivatives of scalar bodies: what each read contributes to a change of the value, as scalars again.

`adjoints(body, seed)` walks a body from its value to its reads (reverse mode); a read that occurs twice is given twice.
Where a function has a kink, the derivative is the one that the field takes: 0 for |x| at 0, for max(x, c) at the
constant c, and one half each for the maximum of two equal values. What is constant between jumps has none.

A slope may be infinite: that of a root at 0, of a logarithm, of a quotient, of an exponential that overflows. What does
not count (a seed of 0, behind a `select` for example) stays 0 beside it: their product is `absorbed`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from msc.poly.scalar import Apply, Cast, Constant, Index, Read, Scalar, apply

UNBOUNDED = frozenset("exp exp2 expm1 log log2 log1p sqrt rsqrt asin acos atanh acosh sinh cosh tan div pow".split())
"""Operators whose slope may be infinite, or no number, where their value is finite or not chosen."""

Local: TypeAlias = Callable[[Apply], "tuple[Scalar | None, ...]"]
"""From an applied operator to its derivative by each argument; None if it has no derivative."""


def number(value: float, like: Scalar) -> Constant:
    """A literal of the element type of another scalar."""
    return Constant(float(value) if is_float(like.dtype) else int(value), like.dtype)


def _mul(a: Scalar, b: Scalar) -> Scalar:
    return apply("mul", a, b)


def _neg(a: Scalar) -> Scalar:
    return apply("neg", a)


def _inverse(a: Scalar) -> Scalar:
    return apply("div", number(1, a), a)


def _plus(a: Scalar, value: float) -> Scalar:
    return apply("add", a, number(value, a))


def _square(a: Scalar) -> Scalar:
    return _mul(a, a)


def _one_minus_square(a: Scalar) -> Scalar:
    return apply("sub", number(1, a), _square(a))


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


# Each takes x, the argument, and y, the value.
_UNARY: Mapping[str, Callable[[Scalar, Scalar], Scalar]] = {
    "neg": lambda x, y: number(-1, x),
    "abs": lambda x, y: apply("sign", x),
    "exp": lambda x, y: y,
    "exp2": lambda x, y: _mul(y, number(math.log(2), x)),
    "expm1": lambda x, y: _plus(y, 1),
    "log": lambda x, y: _inverse(x),
    "log2": lambda x, y: apply("div", number(1 / math.log(2), x), x),
    "log1p": lambda x, y: _inverse(_plus(x, 1)),
    "sqrt": lambda x, y: apply("div", number(0.5, x), y),
    "rsqrt": lambda x, y: _mul(_mul(y, number(-0.5, x)), _square(y)),
    "sin": lambda x, y: apply("cos", x),
    "cos": lambda x, y: _neg(apply("sin", x)),
    "tan": lambda x, y: _plus(_square(y), 1),
    "asin": lambda x, y: apply("rsqrt", _one_minus_square(x)),
    "acos": lambda x, y: _neg(apply("rsqrt", _one_minus_square(x))),
    "atan": lambda x, y: _inverse(_plus(_square(x), 1)),
    "sinh": lambda x, y: apply("cosh", x),
    "cosh": lambda x, y: apply("sinh", x),
    "tanh": lambda x, y: _one_minus_square(y),
    "asinh": lambda x, y: apply("rsqrt", _plus(_square(x), 1)),
    "acosh": lambda x, y: apply("rsqrt", _plus(_square(x), -1)),
    "atanh": lambda x, y: _inverse(_one_minus_square(x)),
    "erf": lambda x, y: _mul(apply("exp", _neg(_square(x))), number(2 / math.sqrt(math.pi), x)),
    "sigmoid": lambda x, y: _mul(y, apply("sub", number(1, x), y)),
    "softplus": lambda x, y: apply("sigmoid", x),
}


def _larger(op: Apply) -> tuple[Scalar | None, ...]:
    """1 for the larger (smaller) argument, a half for equal ones; beside a constant, 1 for one strictly beyond it."""
    a, b = op.args
    beyond = "gt" if op.op == "max" else "lt"
    zero, half, one = (number(v, a) for v in (0, 0.5, 1))
    if isinstance(a, Constant):
        return None, apply("select", apply(beyond, b, a), one, zero)
    if isinstance(b, Constant):
        return apply("select", apply(beyond, a, b), one, zero), None
    tie = apply("eq", a, b)
    by_a = apply("select", tie, half, apply("select", apply(beyond, a, b), one, zero))
    return by_a, apply("sub", one, by_a)


def _power(op: Apply) -> tuple[Scalar | None, ...]:
    """At exponent 0 the power is constant, also for base 0; base 0 is constant for positive exponents."""
    base, exponent = op.args
    zero = number(0, base)
    if isinstance(exponent, Constant):
        by_base = None if exponent.value == 0 else _mul(exponent, _lower_power(base, exponent))
        return by_base, None
    by_base = absorbed(exponent, apply("pow", base, _plus(exponent, -1)))
    constant = apply("and", apply("eq", base, zero), apply("ge", exponent, zero))
    return by_base, apply("select", constant, zero, absorbed(op, apply("log", base)))


def _lower_power(base: Scalar, exponent: Constant) -> Scalar:
    lower = float(exponent.value) - 1
    if lower == 0:
        return number(1, base)
    return base if lower == 1 else apply("pow", base, number(lower, base))


def _arc_tangent(op: Apply) -> tuple[Scalar | None, ...]:
    """At the origin, which has no angle, 0."""
    y, x = op.args
    length = unless_zero(apply("add", _square(x), _square(y)))
    return apply("div", x, length), _neg(apply("div", y, length))


def unless_zero(a: Scalar) -> Scalar:
    """A divisor: infinite where it is 0, so that quotients, and their slopes, are 0 there."""
    return apply("select", apply("eq", a, number(0, a)), number(math.inf, a), a)


_OTHERS: Mapping[str, Local] = {
    "add": lambda op: (number(1, op), number(1, op)),
    "sub": lambda op: (number(1, op), number(-1, op)),
    "mul": lambda op: (op.args[1], op.args[0]),
    "div": lambda op: (_inverse(op.args[1]), _neg(apply("div", op, op.args[1]))),
    "rem": lambda op: (number(1, op), _neg(apply("trunc", apply("div", *op.args)))),
    "mod": lambda op: (number(1, op), _neg(apply("floor", apply("div", *op.args)))),
    "max": _larger,
    "min": _larger,
    "pow": _power,
    "atan2": _arc_tangent,
}


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


_OF_INTEGERS: Mapping[str, Local] = {
    **{name: _OTHERS[name] for name in ("add", "sub", "mul")},
    "neg": lambda op: (number(-1, op),),
    "abs": lambda op: (apply("sign", op.args[0]),),
    "rem": lambda op: (number(1, op), None),
    "mod": lambda op: (number(1, op), None),
    "max": lambda op: _first(op, "ge"),
    "min": lambda op: _first(op, "le"),
    "pow": lambda op: (_power(op)[0], None),
}
"""What integers have a whole derivative of; a quotient that is rounded has none."""


def _first(op: Apply, holds: str) -> tuple[Scalar | None, ...]:
    """One for the first of two integers where the comparison holds, for the other one elsewhere."""
    by_a = apply("select", apply(holds, *op.args), number(1, op), number(0, op))
    return by_a, apply("sub", number(1, op), by_a)


def _locals(op: Apply) -> tuple[Scalar | None, ...]:
    if not is_float(op.dtype):
        whole = _OF_INTEGERS.get(op.op)
        return whole(op) if whole is not None else (None,) * len(op.args)
    unary = _UNARY.get(op.op)
    if unary is not None:
        return (unary(op.args[0], op),)
    other = _OTHERS.get(op.op)
    return other(op) if other is not None else (None,) * len(op.args)


def is_unbounded(op: Apply) -> bool:
    """Whether a slope of an operator may be infinite. That of x / 2 and x^2 is not."""
    last = op.args[-1]
    if isinstance(last, Constant) and op.op in ("div", "pow"):
        return last.value == 0 if op.op == "div" else last.value < 1
    return op.op in UNBOUNDED


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
