"""Element by element: arithmetic, comparison, activations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir.affine import AffineMap

from msc.dialects.arrays import numpy_dtype
from msc.dialects.element_types import is_float
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.quantisation import QuantisationOp
from msc.exporters.onnx.writer import TYPES, Writer, dtype, form, no_form, shape
from msc.poly.scalar import OPERATORS, Apply, Cast, Constant, Read, Scalar

SAME = {
    "reciprocal": "Reciprocal", "relu": "Relu", "identity": "Identity", "mish": "Mish", "softsign": "Softsign",
    "selu": "Selu", "hard_swish": "HardSwish", "global_avg_pool": "GlobalAveragePool",
    "global_max_pool": "GlobalMaxPool",
    **{tensor: onnx for o in OPERATORS.values() for tensor, onnx in o.tensors.items() if onnx},
}  # fmt: skip
"""Operations that ONNX has under another name, with the same operands and no attributes."""


for _name, _operator in SAME.items():

    @form(_name)
    def _write(w: Writer, op: MsOp, *inputs: str, operator: str = _operator) -> str:
        return w(operator, *inputs)


for _found in OPERATORS.values():
    if _found.formula is not None:

        @form(*(tensor for tensor, onnx in _found.tensors.items() if not onnx))
        def _by_formula(w: Writer, op: MsOp, *inputs: str, formula: Callable[..., Scalar] = _found.formula) -> str:
            """Over operators that ONNX has."""
            reads = [Read(k, AffineMap(0, 0, ()), op.dtype(k)) for k in range(len(inputs))]
            return _scalar(w, formula(*reads), inputs, {})


def _scalar(w: Writer, scalar: Scalar, inputs: Sequence[str], known: dict[Scalar, str]) -> str:
    """The value of a scalar at each place of the inputs, each once."""
    match scalar:
        case Read():
            return inputs[scalar.operand]
        case Constant():
            return w.scalar(scalar.value, scalar.dtype)
        case Cast(bits=False) if scalar not in known:
            known[scalar] = w("Cast", _scalar(w, scalar.arg, inputs, known), to=TYPES[scalar.dtype])
        case Apply() if scalar not in known:
            arguments = [_scalar(w, argument, inputs, known) for argument in scalar.args]
            known[scalar] = w(next(filter(None, OPERATORS[scalar.op].tensors.values())), *arguments)
        case Apply() | Cast(bits=False):
            pass
        case _:
            raise TypeError(f"{scalar} in a formula")
    return known[scalar]


@form("quantize", "dequantize", "requantize")
def _quantisation(w: Writer, op: QuantisationOp, *inputs: str) -> str:
    """ONNX's operator where it says the same: one scale a tensor or an index of an axis, bytes, f32; else the steps."""
    operator = {"ms.quantize": "QuantizeLinear", "ms.dequantize": "DequantizeLinear"}.get(op.name)
    whole = op.result_dtype() if operator == "QuantizeLinear" else op.dtype(0)
    reals = {op.dtype(1), op.dtype(0) if operator == "QuantizeLinear" else op.result_dtype()}
    shapes = {shape(each) for each in op.operands[1:]}
    axes = [a for a, n in enumerate(shape(op.scale), len(shape(op.x)) - len(shape(op.scale))) if n != 1]
    if operator is None or whole not in ("i8", "ui8", "i32") or reals != {"f32"} or len(shapes) > 1 or len(axes) > 1:
        reads = [Read(k, AffineMap(0, 0, ()), op.dtype(k)) for k in range(len(inputs))]
        return _scalar(w, op.scalar(*reads), inputs, {})
    x, *given = inputs
    if len(shape(op.scale)) != len(axes):
        given = [w("Reshape", each, w.ints([-1] if axes else [])) for each in given]
    if op.zero is None and whole != "i32":
        zero = np.zeros([shape(op.scale)[a - len(shape(op.x))] for a in axes], numpy_dtype(whole))
        given.append(w.constant(zero))
    return w(operator, x, *given, axis=axes[0] if axes else 0)


@form("barrier")
def _barrier(w: Writer, op: MsOp, x: str, after: str) -> str:
    """ONNX says nothing about when a node runs."""
    return w("Identity", x)


@form("not_equal")
def _not_equal(w: Writer, op: MsOp, a: str, b: str) -> str:
    return w("Not", w("Equal", a, b))


@form("square")
def _square(w: Writer, op: MsOp, x: str) -> str:
    return w("Mul", x, x)


@form("mul_no_nan")
def _mul_no_nan(w: Writer, op: MsOp, a: str, b: str) -> str:
    zero = w.scalar(0, op.dtype(0))
    return w("Where", w("Equal", a, zero), zero, w("Mul", a, b))


@form("xlogy")
def _xlogy(w: Writer, op: MsOp, a: str, b: str) -> str:
    zero = w.scalar(0, op.dtype(0))
    return w("Where", w("Equal", a, zero), zero, w("Mul", a, w("Log", b)))


@form("log_add_exp")
def _log_add_exp(w: Writer, op: MsOp, a: str, b: str) -> str:
    """Of what is not the same infinity twice."""
    return w("Add", w("Max", a, b), w("Softplus", w("Neg", w("Abs", w("Sub", a, b)))))


@form("logit")
def _logit(w: Writer, op: MsOp, x: str) -> str:
    return w("Log", w("Div", x, w("Sub", w.scalar(1, op.dtype(0)), x)))


@form("binary_cross_entropy")
def _binary_cross_entropy(w: Writer, op: MsOp, chance: str, label: str) -> str:
    one, least = w.scalar(1, op.dtype(0)), w.scalar(-100, op.dtype(0))
    if_true = w("Mul", label, w("Max", w("Log", chance), least))
    other = w("Mul", w("Sub", one, label), w("Max", w("Log", w("Sub", one, chance)), least))
    return w("Neg", w("Add", if_true, other))


@form("trunc")
def _trunc(w: Writer, op: MsOp, x: str) -> str:
    return w("Where", w("Less", x, w.scalar(0, op.dtype(0))), w("Ceil", x), w("Floor", x))


@form("floor_div")
def _floor_div(w: Writer, op: MsOp, a: str, b: str) -> str:
    if is_float(op.dtype(0)):
        return w("Floor", w("Div", a, b))
    quotient, zero = w("Div", a, b), w.scalar(0, op.dtype(0))
    inexact = w("Not", w("Equal", w("Mod", a, b), zero))
    below = w("And", inexact, w("Xor", w("Less", a, zero), w("Less", b, zero)))
    return w("Where", below, w("Sub", quotient, w.scalar(1, op.dtype(0))), quotient)


@form("mod")
def _mod(w: Writer, op: MsOp, a: str, b: str) -> str:
    if not is_float(op.dtype(0)):
        return w("Mod", a, b)
    rest = w("Mod", a, b, fmod=1)
    zero = w.scalar(0, op.dtype(0))
    signs = w("Xor", w("Less", rest, zero), w("Less", b, zero))
    other = w("And", signs, w("Not", w("Equal", rest, zero)))
    return w("Where", other, w("Add", rest, b), rest)


@form("rem")
def _rem(w: Writer, op: MsOp, a: str, b: str) -> str:
    return w("Mod", a, b, fmod=1)


@form("atan2")
def _atan2(w: Writer, op: MsOp, y: str, x: str) -> str:
    """Of finite operands that are not both zero: the angle on the right, and half a turn beside it on the left."""
    kind = op.dtype(0)
    zero = w.scalar(0, kind)
    angle = w("Atan", w("Div", y, x))
    below = w("Or", w("Less", y, zero), w("Less", w("Reciprocal", y), zero))
    turn = w("Where", below, w.scalar(-math.pi, kind), w.scalar(math.pi, kind))
    left = w("Where", w("Less", x, zero), w("Add", angle, turn), angle)
    up = w("Mul", w("Sign", y), w.scalar(math.pi / 2, kind))
    return w("Where", w("Equal", x, zero), up, left)


@form("shift_left", "shift_right")
def _shift(w: Writer, op: MsOp, a: str, b: str) -> str:
    if not op.dtype(0).startswith("ui"):
        raise no_form(op, "BitShift is of unsigned integers")
    return w("BitShift", a, b, direction="LEFT" if op.name.endswith("left") else "RIGHT")


@form("cast")
def _cast(w: Writer, op: MsOp, x: str) -> str:
    return w("Cast", x, to=TYPES[op.result_dtype()])


@form("gelu")
def _gelu(w: Writer, op: MsOp, x: str) -> str:
    kind = op.dtype(0)
    if op.word("approximate") == "tanh":
        cube = w("Mul", w("Mul", w("Mul", x, x), x), w.scalar(0.044715, kind))
        inner = w("Tanh", w("Mul", w("Add", x, cube), w.scalar(math.sqrt(2 / math.pi), kind)))
    else:
        inner = w("Erf", w("Mul", x, w.scalar(math.sqrt(0.5), kind)))
    return w("Mul", w("Mul", x, w("Add", inner, w.scalar(1, kind))), w.scalar(0.5, kind))


@form("silu")
def _silu(w: Writer, op: MsOp, x: str) -> str:
    return w("Mul", x, w("Sigmoid", x))


@form("relu6")
def _relu6(w: Writer, op: MsOp, x: str) -> str:
    return w("Clip", x, w.scalar(0, op.dtype(0)), w.scalar(6, op.dtype(0)))


@form("clip")
def _clip(w: Writer, op: MsOp, x: str) -> str:
    bounds = [op.plain(name) for name in ("min", "max")]
    given = [w.scalar(b, op.dtype(0)) if isinstance(b, int | float) else "" for b in bounds]
    return w("Clip", x, *given)


@form("leaky_relu", "elu", "celu")
def _alpha(w: Writer, op: MsOp, x: str) -> str:
    operator = {"ms.leaky_relu": "LeakyRelu", "ms.elu": "Elu", "ms.celu": "Celu"}[op.name]
    return w(operator, x, alpha=op.real("alpha"))


@form("hard_sigmoid")
def _hard_sigmoid(w: Writer, op: MsOp, x: str) -> str:
    return w("HardSigmoid", x, alpha=op.real("alpha"), beta=op.real("beta"))


@form("prelu")
def _prelu(w: Writer, op: MsOp, x: str, slope: str) -> str:
    rank, sizes = len(op.shape(0)), shape(op.operands[1])
    if len(sizes) == 1 and rank > 1:
        slope = w("Reshape", slope, w.ints([sizes[0], *[1] * (rank - 2)]))
    return w("PRelu", x, slope)


@form("softmax", "log_softmax")
def _softmax(w: Writer, op: MsOp, x: str) -> str:
    return w("Softmax" if op.name == "ms.softmax" else "LogSoftmax", x, axis=op.int_("axis"))


def as_type(w: Writer, value: str, have: str, want: str) -> str:
    """A value in another element type; itself if it has that one."""
    return value if have == want else w("Cast", value, to=TYPES[want])


def result_type(op: MsOp) -> str:
    """The element type of the result."""
    return dtype(op.results[0])
