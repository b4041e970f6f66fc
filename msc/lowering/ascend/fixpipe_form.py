"""What follows the sums of a product, as far as the cube and the Fixpipe do it: a bias, a ReLU, another type."""

from __future__ import annotations

from dataclasses import dataclass, replace

from msc.lowering.ascend.products import Access, CubeProduct, Following
from msc.poly.scalar import Apply, Cast, Constant, Read, Scalar


@dataclass(frozen=True)
class FixpipeForm:
    """`relu(sums + bias)` in the type of the output; each of a batch has its bias, along the rows of the output."""

    bias: tuple[Access, str] | None = None
    relu: bool = False


def fixpipe_form(product: CubeProduct, bias_table: int) -> FixpipeForm | None:
    """The form of what follows the sums; None where it has none. `bias_table` is the size of that memory in bytes."""
    known: dict[int, FixpipeForm] = {product.sums: FixpipeForm()}
    for following in product.after:
        form = _of(following.body, following, known, product)
        if form is None or (form.bias is not None and not bias_table):
            return None
        known[following.target] = form
    return known[product.after[-1].target]


def _of(body: Scalar, following: Following, known: dict[int, FixpipeForm], product: CubeProduct) -> FixpipeForm | None:
    match body:
        case Read():
            return known.get(body.operand)
        case Cast() if body.dtype in ("f16", "bf16", "f32") or body.dtype == "i32":
            return _of(body.arg, following, known, product)
        case Apply(op="max", args=(x, Constant(value=0))) | Apply(op="max", args=(Constant(value=0), x)):
            form = _of(x, following, known, product)
            return None if form is None else replace(form, relu=True)
        case Apply(op="add", args=(x, y)):
            form, bias = _of(x, following, known, product), _bias(y, following, product)
            if form is None or bias is None:
                form, bias = _of(y, following, known, product), _bias(x, following, product)
            if form is None or bias is None or form.bias is not None or form.relu:
                return None
            return replace(form, bias=bias)
        case _:
            return None


def _bias(body: Scalar, following: Following, product: CubeProduct) -> tuple[Access, str] | None:
    while isinstance(body, Cast):
        body = body.arg
    access = following.inputs.get(body) if isinstance(body, Read) else None
    along = None if access is None else {x: step for x, step in access.strides.items() if x not in product.batch}
    if access is None or not isinstance(body, Read) or along != {product.n: 1}:
        return None
    wide = "i32" if product.dtype in ("i8", "ui8") else "f32"
    return (access, body.dtype) if body.dtype == wide or (wide == "f32" and body.dtype in ("f16", "bf16")) else None
