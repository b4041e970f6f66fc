"""What follows the sums of a product, as far as cube and Fixpipe do it: a bias, a ReLU, a scale, another type."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from msc.analysis.rescaling import one_scale
from msc.poly.compute import integer_range
from msc.poly.scalar import Apply, Cast, Constant, Read, Scalar
from msc.schedule.cube.products import CubeProduct, Following, StridedArray

_BYTES = ("i8", "ui8")
OFFSETS = (-256, 255)
"""The offsets that the Fixpipe adds to bytes."""


@dataclass(frozen=True)
class Scaling:
    """Sums of integers times `scale`; as bytes they are rounded, and the `offset` added, before they saturate.

    `low` and `high` are where the kernel cuts them; `is_done` once they have the type in which they leave.
    """

    scale: float
    is_rounded: bool = False
    offset: int = 0
    low: float = -math.inf
    high: float = math.inf
    is_done: bool = False


@dataclass(frozen=True)
class FixpipeForm:
    """`relu(sums + bias)` in the type of the output; each of a batch has its bias, along the rows of the output."""

    bias: tuple[StridedArray, str] | None = None
    relu: bool = False
    scaling: Scaling | None = None


def fixpipe_form(product: CubeProduct, bias_table: int) -> FixpipeForm | None:
    """The form of what follows the sums; None where it has none. `bias_table` is the size of that memory in bytes."""
    known: dict[int, FixpipeForm] = {product.sums: FixpipeForm()}
    for following in product.after:
        form = _of(following.body, following, known, product)
        if form is None or (form.bias is not None and not bias_table):
            return None
        known[following.target] = form
    last = known[product.after[-1].target]
    return last if last.scaling is None or last.scaling.is_done else None


def _of(body: Scalar, following: Following, known: dict[int, FixpipeForm], product: CubeProduct) -> FixpipeForm | None:
    match body:
        case Read():
            return known.get(body.operand)
        case Cast(bits=False) if body.dtype in ("f16", "bf16", "f32", "i32", *_BYTES):
            form = _of(body.arg, following, known, product)
            return None if form is None else _converted(form, body.dtype)
        case Apply(op="round", args=(x,)):
            form = _of(x, following, known, product)
            return None if form is None else _rounded(form)
        case Apply(op=op, args=(x, Constant() as literal)) | Apply(op=op, args=(Constant() as literal, x)):
            form = _of(x, following, known, product)
            return None if form is None else _with_literal(form, op, float(literal.value), product)
        case Apply(op="add", args=(x, y)):
            form, bias = _of(x, following, known, product), _bias(y, following, product)
            if form is None or bias is None:
                form, bias = _of(y, following, known, product), _bias(x, following, product)
            if form is None or bias is None or form.bias is not None or form.relu or form.scaling is not None:
                return None
            return replace(form, bias=bias)
        case _:
            return None


def _converted(form: FixpipeForm, dtype: str) -> FixpipeForm | None:
    scaling = form.scaling
    if scaling is None:
        return form if dtype not in _BYTES else None
    if scaling.is_done or dtype == "f32":
        return None if scaling.is_done else form
    if dtype in _BYTES:
        fits = scaling.is_rounded and (scaling.low, scaling.high) == integer_range(dtype)
    else:
        fits = dtype == "f16" and not scaling.is_rounded
    return replace(form, scaling=replace(scaling, is_done=True)) if fits else None


def _rounded(form: FixpipeForm) -> FixpipeForm | None:
    scaling = form.scaling
    if scaling is None or scaling.is_done:
        return None
    return replace(form, scaling=replace(scaling, is_rounded=True))


def _with_literal(form: FixpipeForm, op: str, value: float, product: CubeProduct) -> FixpipeForm | None:
    """The form with an operator and a literal behind it."""
    scaling = form.scaling
    if scaling is not None and scaling.is_done:  # halves keep their sign
        return replace(form, relu=True) if op == "max" and value == 0 and not scaling.is_rounded else None
    if op == "mul" and product.dtype in _BYTES and (scaling is None or not scaling.is_rounded):
        scale = one_scale(value) if scaling is None else one_scale(scaling.scale, value)
        return None if scale is None else replace(form, scaling=Scaling(scale))
    if scaling is None or not scaling.is_rounded:
        return replace(form, relu=True) if op == "max" and value == 0 else None
    if op == "add" and math.isinf(scaling.low) and math.isinf(scaling.high) and not scaling.offset:
        fits = value.is_integer() and OFFSETS[0] <= value <= OFFSETS[1]
        return replace(form, scaling=replace(scaling, offset=int(value))) if fits else None
    if op == "max" and math.isinf(scaling.low):
        return replace(form, scaling=replace(scaling, low=value))
    if op == "min" and math.isinf(scaling.high):
        return replace(form, scaling=replace(scaling, high=value))
    return None


def _bias(body: Scalar, following: Following, product: CubeProduct) -> tuple[StridedArray, str] | None:
    while isinstance(body, Cast):
        body = body.arg
    access = following.inputs.get(body) if isinstance(body, Read) else None
    along = None if access is None else {x: step for x, step in access.strides.items() if x not in product.batch}
    if access is None or not isinstance(body, Read) or along != {product.n: 1}:
        return None
    wide = "i32" if product.dtype in ("i8", "ui8") else "f32"
    return (access, body.dtype) if body.dtype == wide or (wide == "f32" and body.dtype in ("f16", "bf16")) else None
