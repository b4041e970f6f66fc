"""The scalar operators: one record each (`msc.poly.scalar.ScalarOperator`)."""

from __future__ import annotations

import math
from collections.abc import Callable

from msc.poly.derivative import absorbed, number, unless_zero
from msc.poly.scalar import Apply, Constant, Scalar, ScalarOperator, Slope, apply, register


def _add(a: Scalar, b: Scalar | float) -> Scalar:
    return apply("add", a, b if isinstance(b, Scalar) else number(b, a))


def _mul(a: Scalar, b: Scalar | float) -> Scalar:
    return apply("mul", a, b if isinstance(b, Scalar) else number(b, a))


def _sub(a: Scalar, b: Scalar | float) -> Scalar:
    return apply("sub", a, b if isinstance(b, Scalar) else number(b, a))


def _neg(a: Scalar) -> Scalar:
    return apply("neg", a)


def _inverse(a: Scalar) -> Scalar:
    return apply("div", number(1, a), a)


def _square(a: Scalar) -> Scalar:
    return _mul(a, a)


def _one_minus_square(a: Scalar) -> Scalar:
    return apply("sub", number(1, a), _square(a))


def _where(relation: str, a: Scalar, value: float, then: Scalar, otherwise: Scalar) -> Scalar:
    return apply("select", apply(relation, a, number(value, a)), then, otherwise)


def _by(slope: Callable[[Scalar, Scalar], Scalar]) -> Slope:
    """The slope of a function of one argument, from that and the value."""
    return lambda op: (slope(op.args[0], op),)


def function(
    name: str, slope: Callable[[Scalar, Scalar], Scalar], cost: str, doc: str, *, onnx: str = "",
    numpy: str | None = None, tensor: str | None = None, mlir: str | None = None, c: str | None = None,
    unbounded: bool = False, times: int = 1, python: Callable[[float], float] | None = None,
    formula: Callable[[Scalar], Scalar] | None = None, single: Callable[[Scalar], Scalar] | None = None,
) -> ScalarOperator:  # fmt: skip
    """A function of one real argument: NumPy, `ms`, the `math` dialect and C have it by its name if nothing is said.

    `slope` takes the argument and the value.
    """
    return ScalarOperator(
        name=name, slope=_by(slope), cost=cost, doc=doc, unbounded=unbounded, times=times,
        formula=formula, single=single, tensors={name if tensor is None else tensor: onnx} if tensor != "" else {},
        numpy="" if python is not None else name if numpy is None else numpy, python=python,
        mlir=f"math.{name}" if mlir is None else mlir, c=name if c is None else c,
    )  # fmt: skip


def _rounding(name: str, doc: str, *, numpy: str, mlir: str, c: str, onnx: str = "") -> ScalarOperator:
    return ScalarOperator(name=name, tensors={name: onnx}, doc=doc, numpy=numpy, mlir=f"math.{mlir}", c=c)


def _log1p(x: Scalar) -> Scalar:
    """With u = 1 + x: log(u) x / (u - 1), and x where u is 1: what rounding takes from u, the quotient gives back."""
    u = _add(x, 1)
    exact = apply("div", _mul(apply("log", u), x), _sub(u, 1))
    return _where("eq", u, 1, x, _where("eq", u, math.inf, u, exact))


def _expm1(x: Scalar) -> Scalar:
    """With u = exp(x): (u - 1) x / log(u), x where u is 1, and u - 1 where log(u) says no more."""
    u = apply("exp", x)
    less = _sub(u, 1)
    exact = apply("div", _mul(less, x), apply("log", u))
    return _where("eq", u, 1, x, _where("gt", apply("abs", x), 40, less, exact))


def _tanh(x: Scalar) -> Scalar:
    """With t = exp(2 x) - 1: t / (t + 2), which is 1 in f32 from 9.1 on."""
    near = apply("max", apply("min", x, number(9.1, x)), number(-9.1, x))
    t = _expm1(_mul(near, 2))
    return apply("div", t, _add(t, 2))


def _polynomial(x: Scalar, *coefficients: float) -> Scalar:
    """Horner's scheme, the highest power first."""
    total = _mul(x, coefficients[0])
    for coefficient in coefficients[1:-1]:
        total = _mul(_add(total, coefficient), x)
    return _add(total, coefficients[-1])


def _erf(x: Scalar) -> Scalar:
    """Eigen's rational approximation on [-4, 4], which XLA uses too: within 1 ulp or so of f32."""
    near = apply("max", apply("min", x, number(4, x)), number(-4, x))
    square = _square(near)
    above = _polynomial(
        square, -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
        -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
    )  # fmt: skip
    below = _polynomial(
        square, -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
        -1.42647390514189e-02,
    )  # fmt: skip
    return apply("div", _mul(near, above), below)


def _dot_bytes(a: Scalar, b: Scalar, c: Scalar) -> Scalar:
    """The products of the bytes of two words, without a sign in a and with one in b, added to c: all of i32."""
    total = c
    for place in range(0, 32, 8):
        byte = apply("and", apply("shr", a, number(place, a)), number(255, a))
        signed = apply("shr", apply("shl", b, number(24 - place, b)), number(24, b))
        total = _add(total, _mul(byte, signed))
    return total


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


def _first(op: Apply) -> tuple[Scalar | None, ...]:
    """One for the first of two integers that is not smaller (larger), for the other one elsewhere."""
    holds = "ge" if op.op == "max" else "le"
    by_a = apply("select", apply(holds, *op.args), number(1, op), number(0, op))
    return by_a, apply("sub", number(1, op), by_a)


def _power(op: Apply) -> tuple[Scalar | None, ...]:
    """At exponent 0 the power is constant, also for base 0; base 0 is constant for positive exponents."""
    base, exponent = op.args
    zero = number(0, base)
    if isinstance(exponent, Constant):
        by_base = None if exponent.value == 0 else _mul(exponent, _lower_power(base, exponent))
        return by_base, None
    by_base = absorbed(exponent, apply("pow", base, _add(exponent, -1)))
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
    length = unless_zero(_add(_square(x), _square(y)))
    return apply("div", x, length), _neg(apply("div", y, length))


def _sum(op: Apply) -> tuple[Scalar | None, ...]:
    return number(1, op), number(1, op)


def _difference(op: Apply) -> tuple[Scalar | None, ...]:
    return number(1, op), number(-1, op)


def _product(op: Apply) -> tuple[Scalar | None, ...]:
    return op.args[1], op.args[0]


def _remainder(rounding: str) -> Slope:
    return lambda op: (number(1, op), _neg(apply(rounding, apply("div", *op.args))))


def _of_dividend(op: Apply) -> tuple[Scalar | None, ...]:
    return number(1, op), None


_negated = _by(lambda x, y: number(-1, x))
_signed = _by(lambda x, y: apply("sign", x))

register(
    ScalarOperator(
        name="neg", tensors={"neg": "Neg"}, dtypes="a signed number", doc="The negative. MindSpore Neg, ONNX Neg.",
        numpy="negative", mlir="arith.negf", slope=_negated, integer_slope=_negated,
    ),
    ScalarOperator(
        name="abs", tensors={"abs": "Abs"}, dtypes="a number", numpy="abs", mlir="math.absf", slope=_signed,
        doc="The absolute value; the smallest signed integer stays what it is. MindSpore Abs, ONNX Abs.",
        integer_slope=_signed,
    ),
    ScalarOperator(
        name="sign", tensors={"sign": "Sign"}, dtypes="a number", numpy="sign",
        doc="-1, 0 or 1; NaN stays NaN. MindSpore Sign, ONNX Sign.",
    ),
    ScalarOperator(name="not", tensors={"logical_not": "Not", "bitwise_not": "BitwiseNot"}, numpy="invert"),
    function("exp", lambda x, y: y, "exponential", "e to the x. MindSpore Exp, ONNX Exp.", onnx="Exp", unbounded=True),
    function("exp2", lambda x, y: _mul(y, math.log(2)), "exponential", "", tensor="", unbounded=True),
    function(
        "expm1", lambda x, y: _add(y, 1), "exponential", "e to the x, minus 1, exact near 0. MindSpore Expm1.",
        unbounded=True, formula=_expm1,
    ),
    function(
        "log", lambda x, y: _inverse(x), "exponential", "The natural logarithm. MindSpore Log, ONNX Log.", onnx="Log",
        unbounded=True,
    ),
    function(
        "log2", lambda x, y: apply("div", number(1 / math.log(2), x), x), "exponential", "", tensor="", unbounded=True,
        formula=lambda x: _mul(apply("log", x), 1 / math.log(2)),
    ),
    function(
        "log1p", lambda x, y: _inverse(_add(x, 1)), "exponential", unbounded=True, formula=_log1p,
        doc="The natural logarithm of 1 + x, exact near 0. MindSpore Log1p.",
    ),
    function(
        "sqrt", lambda x, y: apply("div", number(0.5, x), y), "division", "", onnx="Sqrt", unbounded=True,
    ),
    function(
        "rsqrt", lambda x, y: _mul(_mul(y, -0.5), _square(y)), "division", "1 by the square root. MindSpore Rsqrt.",
        numpy="", c="", unbounded=True, formula=lambda x: _inverse(apply("sqrt", x)),
    ),
    function(
        "sin", lambda x, y: apply("cos", x), "trigonometric",
        "The sine of an angle in radians. MindSpore Sin, ONNX Sin.", onnx="Sin",
    ),
    function(
        "cos", lambda x, y: _neg(apply("sin", x)), "trigonometric",
        "The cosine of an angle in radians. MindSpore Cos, ONNX Cos.", onnx="Cos",
    ),
    function(
        "tan", lambda x, y: _add(_square(y), 1), "trigonometric",
        "The tangent of an angle in radians. MindSpore Tan, ONNX Tan.", onnx="Tan", unbounded=True,
    ),
    function(
        "asin", lambda x, y: apply("rsqrt", _one_minus_square(x)), "trigonometric",
        "The inverse sine, in radians. MindSpore Asin, ONNX Asin.", onnx="Asin", numpy="arcsin", unbounded=True,
    ),
    function(
        "acos", lambda x, y: _neg(apply("rsqrt", _one_minus_square(x))), "trigonometric",
        "The inverse cosine, in radians. MindSpore ACos, ONNX Acos.", onnx="Acos", numpy="arccos", unbounded=True,
    ),
    function(
        "atan", lambda x, y: _inverse(_add(_square(x), 1)), "trigonometric",
        "The inverse tangent, in radians. MindSpore Atan, ONNX Atan.", onnx="Atan", numpy="arctan",
    ),
    function(
        "sinh", lambda x, y: apply("cosh", x), "trigonometric",
        "The hyperbolic sine. MindSpore Sinh, ONNX Sinh.", onnx="Sinh", unbounded=True,
    ),
    function(
        "cosh", lambda x, y: apply("sinh", x), "trigonometric",
        "The hyperbolic cosine. MindSpore Cosh, ONNX Cosh.", onnx="Cosh", unbounded=True,
    ),
    function(
        "tanh", lambda x, y: _one_minus_square(y), "exponential",
        "The hyperbolic tangent. MindSpore Tanh, ONNX Tanh.", onnx="Tanh", single=_tanh,
    ),
    function(
        "asinh", lambda x, y: apply("rsqrt", _add(_square(x), 1)), "trigonometric",
        "The inverse hyperbolic sine. MindSpore Asinh, ONNX Asinh.", onnx="Asinh", numpy="arcsinh",
    ),
    function(
        "acosh", lambda x, y: apply("rsqrt", _add(_square(x), -1)), "trigonometric",
        "The inverse hyperbolic cosine. MindSpore Acosh, ONNX Acosh.", onnx="Acosh", numpy="arccosh", unbounded=True,
    ),
    function(
        "atanh", lambda x, y: _inverse(_one_minus_square(x)), "trigonometric",
        "The inverse hyperbolic tangent. MindSpore Atanh, ONNX Atanh.", onnx="Atanh", numpy="arctanh", unbounded=True,
    ),
    function(
        "erf", lambda x, y: _mul(apply("exp", _neg(_square(x))), 2 / math.sqrt(math.pi)), "exponential",
        "The error function. MindSpore Erf, ONNX Erf.", onnx="Erf", python=math.erf, single=_erf,
    ),
    function(
        "sigmoid", lambda x, y: _mul(y, apply("sub", number(1, x), y)), "exponential",
        "1 / (1 + e^-x). MindSpore Sigmoid, ONNX Sigmoid.", onnx="Sigmoid", numpy="", mlir="", c="",
        formula=lambda x: _inverse(apply("add", number(1, x), apply("exp", _neg(x)))),
    ),
    function(
        "softplus", lambda x, y: apply("sigmoid", x), "exponential",
        "log(1 + e^x). MindSpore Softplus, ONNX Softplus.", onnx="Softplus", numpy="", mlir="", c="", times=2,
        formula=lambda x: _add(apply("max", x, number(0, x)), apply("log1p", apply("exp", _neg(apply("abs", x))))),
    ),
    _rounding(
        "floor", "The largest whole number not above x. MindSpore Floor, ONNX Floor.", numpy="floor", mlir="floor",
        c="floor", onnx="Floor",
    ),
    _rounding(
        "ceil", "The smallest whole number not below x. MindSpore Ceil, ONNX Ceil.", numpy="ceil", mlir="ceil",
        c="ceil", onnx="Ceil",
    ),
    _rounding(
        "round", "The nearest whole number, halves to even. MindSpore Rint, ONNX Round.", numpy="rint",
        mlir="roundeven", c="rint", onnx="Round",
    ),
    _rounding(
        "trunc", "The nearest whole number towards zero. MindSpore Trunc.", numpy="trunc", mlir="trunc", c="trunc",
    ),
    ScalarOperator(
        name="isnan", boolean=True, tensors={"is_nan": "IsNaN"}, numpy="isnan",
        doc="Whether x is NaN, as i1. MindSpore IsNan, ONNX IsNaN.",
    ),
    ScalarOperator(
        name="isinf", boolean=True, tensors={"is_inf": "IsInf"}, numpy="isinf",
        doc="Whether x is infinite of either sign, as i1. MindSpore IsInf, ONNX IsInf.",
    ),
    ScalarOperator(
        name="add", arity=2, tensors={"add": "Add"}, numpy="add", mlir="arith.addf", integers=("arith.addi",),
        slope=_sum, integer_slope=_sum,
    ),
    ScalarOperator(
        name="sub", arity=2, tensors={"sub": "Sub"}, numpy="subtract", mlir="arith.subf", integers=("arith.subi",),
        slope=_difference, integer_slope=_difference,
    ),
    ScalarOperator(
        name="mul", arity=2, tensors={"mul": "Mul"}, numpy="multiply", mlir="arith.mulf", integers=("arith.muli",),
        slope=_product, integer_slope=_product,
    ),
    ScalarOperator(
        name="div", arity=2, tensors={"div": "Div"}, mlir="arith.divf", integers=("arith.divsi", "arith.divui"),
        cost="division", unbounded=True,
        slope=lambda op: (_inverse(op.args[1]), _neg(apply("div", op, op.args[1]))),
    ),
    ScalarOperator(
        name="rem", arity=2, tensors={"rem": ""}, numpy="fmod", mlir="arith.remf",
        integers=("arith.remsi", "arith.remui"), c="fmod", cost="division", slope=_remainder("trunc"),
        integer_slope=_of_dividend,
    ),
    ScalarOperator(
        name="mod", arity=2, tensors={"mod": ""}, numpy="mod", cost="division", slope=_remainder("floor"),
        integer_slope=_of_dividend,
    ),
    ScalarOperator(
        name="max", arity=2, tensors={"maximum": "Max"}, numpy="maximum", mlir="arith.maximumf",
        integers=("arith.maxsi", "arith.maxui"), slope=_larger, integer_slope=_first,
    ),
    ScalarOperator(
        name="min", arity=2, tensors={"minimum": "Min"}, numpy="minimum", mlir="arith.minimumf",
        integers=("arith.minsi", "arith.minui"), slope=_larger, integer_slope=_first,
    ),
    ScalarOperator(
        name="pow", arity=2, tensors={"pow": "Pow"}, mlir="math.powf", integers=("math.ipowi",), c="pow", cost="power",
        unbounded=True, slope=_power, integer_slope=lambda op: (_power(op)[0], None),
    ),
    ScalarOperator(
        name="atan2", arity=2, tensors={"atan2": ""}, numpy="arctan2", mlir="math.atan2", c="atan2", cost="power",
        slope=_arc_tangent,
    ),
    ScalarOperator(
        name="and", arity=2, tensors={"logical_and": "And", "bitwise_and": "BitwiseAnd"}, numpy="bitwise_and",
        integers=("arith.andi",),
    ),
    ScalarOperator(
        name="or", arity=2, tensors={"logical_or": "Or", "bitwise_or": "BitwiseOr"}, numpy="bitwise_or",
        integers=("arith.ori",),
    ),
    ScalarOperator(
        name="xor", arity=2, tensors={"logical_xor": "Xor", "bitwise_xor": "BitwiseXor"}, numpy="bitwise_xor",
        integers=("arith.xori",),
    ),
    ScalarOperator(name="shl", arity=2, tensors={"shift_left": ""}, numpy="left_shift", integers=("arith.shli",)),
    ScalarOperator(
        name="shr", arity=2, tensors={"shift_right": ""}, numpy="right_shift", integers=("arith.shrsi", "arith.shrui")
    ),
    ScalarOperator(name="dot_bytes", arity=3, integers=("loop.dot_bytes",), formula=_dot_bytes),
    ScalarOperator(name="eq", arity=2, boolean=True, tensors={"equal": "Equal"}, numpy="equal"),
    ScalarOperator(name="ne", arity=2, boolean=True, tensors={"not_equal": ""}, numpy="not_equal"),
    ScalarOperator(name="lt", arity=2, boolean=True, tensors={"less": "Less"}, numpy="less"),
    ScalarOperator(name="le", arity=2, boolean=True, tensors={"less_equal": "LessOrEqual"}, numpy="less_equal"),
    ScalarOperator(name="gt", arity=2, boolean=True, tensors={"greater": "Greater"}, numpy="greater"),
    ScalarOperator(
        name="ge", arity=2, boolean=True, tensors={"greater_equal": "GreaterOrEqual"}, numpy="greater_equal"
    ),
    ScalarOperator(name="select", arity=3, tensors={"select": "Where"}, numpy="where"),
)  # fmt: skip
