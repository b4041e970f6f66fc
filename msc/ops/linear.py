"""Products of matrices and vectors, and the dense layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Number, Tensor, tensor_method
from msc.ops.arithmetic import add, mul, reflected, sub
from msc.ops.operands import flexible, only_tensor, pair
from msc.ops.reductions import sum
from msc.ops.shapes import axis_of, expand_dims, reshape, transpose

__all__ = [
    "addcdiv", "addcmul", "addmm", "addmv", "baddbmm", "batch_matmul", "bias_add", "bmm", "cross", "dense", "dot",
    "einsum", "inner", "matmul", "mm", "mv", "outer", "tensor_dot", "tensordot",
]  # fmt: skip


@tensor_method("matmul", "__matmul__")
def matmul(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of matrices in the last two axes; the axes before broadcast, a vector is a row or a column."""
    a, b = pair("matmul", only_tensor(input, "matmul"), only_tensor(mat2, "matmul", "mat2"))
    if a.ndim == 0 or b.ndim == 0:
        raise ApiValueError("MSC0201", f"matmul: operands of shapes {a.shape} and {b.shape}: neither may have rank 0")
    left = apply("expand_dims", a, axis=(0,)) if a.ndim == 1 else a
    right = apply("expand_dims", b, axis=(1,)) if b.ndim == 1 else b
    product = apply("matmul" if left.ndim == right.ndim == 2 else "batch_matmul", left, right)
    axes = tuple(axis for axis, vector in ((-2, a.ndim == 1), (-1, b.ndim == 1)) if vector)
    return apply("squeeze", product, axis=axes) if axes else product


tensor_method("__rmatmul__")(reflected(matmul))


def products(a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool, function: str) -> Tensor:
    """Products of matrices in the last two axes, either of them transposed first."""
    x, y = pair(function, only_tensor(a, function), only_tensor(b, function, "y"))
    name = "matmul" if x.ndim == y.ndim == 2 else "batch_matmul"
    return apply(name, x, y, transpose_a=transpose_a, transpose_b=transpose_b)


def bmm(input_x: Tensor, mat2: Tensor) -> Tensor:
    """Products of as many matrices as the axes before say: `[b, m, k]` times `[b, k, n]`."""
    return products(input_x, mat2, False, False, "bmm")


def batch_matmul(x: Tensor, y: Tensor, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """Products of matrices in the last two axes, either of them transposed first."""
    return products(x, y, transpose_a, transpose_b, "batch_matmul")


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    return apply("matmul", *pair("mm", input, mat2))


def mv(mat: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    return matmul(mat, vec)


def dot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of the products of two vectors' elements; as NumPy's `dot` for other ranks."""
    if other.ndim > 2 or (input.ndim > 2 and other.ndim > 1):
        return tensor_dot(input, other, ((input.ndim - 1,), (other.ndim - 2,)))
    return matmul(input, other)


def inner(x: Tensor, other: Tensor) -> Tensor:
    """Sums of products along the last axes of both."""
    if x.ndim == 0 or other.ndim == 0:
        return mul(x, other)
    return tensor_dot(x, other, ((x.ndim - 1,), (other.ndim - 1,)))


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """All products of an element of one vector with one of the other."""
    return mul(reshape(input, (-1, 1)), reshape(vec2, (1, -1)))


for _function in (bmm, mm, mv, dot, inner, outer):
    tensor_method(_function.__name__)(_function)


def _scaled(x: Tensor, factor: Number) -> Tensor:
    return x if factor == 1 else mul(x, factor)


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """Beta input + alpha mat1 mat2."""
    return add(_scaled(input, beta), _scaled(mm(mat1, mat2), alpha))


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """Beta input + alpha batch1 batch2, of batches of matrices."""
    return add(_scaled(input, beta), _scaled(bmm(batch1, batch2), alpha))


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """Beta input + alpha mat vec."""
    return add(_scaled(input, beta), _scaled(mv(mat, vec), alpha))


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Number = 1) -> Tensor:
    """Input + value tensor1 tensor2, element by element."""
    return add(input, _scaled(mul(tensor1, tensor2), value))


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Number = 1) -> Tensor:
    """Input + value tensor1 / tensor2, element by element."""
    return add(input, _scaled(tensor1 / tensor2, value))


for _function in (addmm, baddbmm, addmv, addcmul, addcdiv):
    tensor_method(_function.__name__)(_function)


@flexible
def cross(input: Tensor, other: Tensor, axis: int | None = None) -> Tensor:
    """The vector product of three-dimensional vectors along an axis."""
    from msc.ops.joining import roll

    a, b = pair("cross", input, other)
    along = axis if axis is not None else next((i for i, n in enumerate(a.shape) if n == 3), -1)
    place = axis_of(a, along, "cross")
    if a.shape[place] != 3:
        raise ApiValueError("MSC0201", f"cross: axis {along} of {a.shape} must have size 3")
    return sub(mul(roll(a, -1, place), roll(b, -2, place)), mul(roll(a, -2, place), roll(b, -1, place)))


def dense(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Input `[..., in]` times weight `[out, in]` transposed, plus bias `[out]`."""
    x = only_tensor(input, "dense")
    if x.ndim == 1:
        return apply("squeeze", apply("dense", apply("expand_dims", x, axis=(0,)), weight, bias), axis=(0,))
    return apply("dense", x, weight, bias)


def bias_add(input_x: Tensor, bias: Tensor) -> Tensor:
    """X `[n, c, ...]` plus a bias `[c]`."""
    return add(input_x, reshape(bias, (-1, *(1,) * (input_x.ndim - 2))))


Pair = Sequence[int] | int


def tensor_dot(x1: Tensor, x2: Tensor, axes: int | Sequence[Pair]) -> Tensor:
    """Sums of products along axes of both: the last and first `axes`, or those that are listed for each."""
    if isinstance(axes, int):
        left, right = list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    else:
        left, right = (
            [axis_of(x, a, "tensor_dot") for a in ((along,) if isinstance(along, int) else along)]
            for x, along in zip((x1, x2), axes, strict=True)
        )
    if [x1.shape[a] for a in left] != [x2.shape[a] for a in right]:
        raise ApiValueError("MSC0201", f"tensor_dot: axes {left} of {x1.shape} and {right} of {x2.shape} differ")
    rest1, rest2 = ([a for a in range(x.ndim) if a not in used] for x, used in ((x1, left), (x2, right)))
    inner_size = math.prod(x1.shape[a] for a in left)
    rows = reshape(transpose(x1, (*rest1, *left)), (math.prod(x1.shape[a] for a in rest1), inner_size))
    columns = reshape(transpose(x2, (*right, *rest2)), (inner_size, math.prod(x2.shape[a] for a in rest2)))
    return reshape(matmul(rows, columns), (*(x1.shape[a] for a in rest1), *(x2.shape[a] for a in rest2)))


tensordot = tensor_dot


def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums of products as Einstein writes them: `einsum("bij,bjk->bik", a, b)`."""
    tensors: list[Tensor] = list(operands[0] if type(operands[0]) in (list, tuple) else operands)
    inputs, output = _parsed(equation, tensors)
    term, x = inputs[0], tensors[0]
    term, x = _diagonal(term, x)
    for place, (other, y) in enumerate(zip(inputs[1:], tensors[1:], strict=True), start=1):
        later = set("".join(inputs[place + 1 :])) | set(output)
        other, y = _diagonal(other, y)
        term, x = _joined(term, x, other, y, later)
    gone = tuple(i for i, letter in enumerate(term) if letter not in output)
    x = sum(x, gone) if gone else x
    term = "".join(letter for letter in term if letter in output)
    order = tuple(term.index(letter) for letter in output)
    return transpose(x, order) if order != tuple(range(len(order))) else x


def _parsed(equation: str, tensors: Sequence[Tensor]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, without dots: those become capital letters."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        raise ApiValueError("MSC0203", f"einsum: {equation!r} has {len(terms)} operands, given are {len(tensors)}")
    spare = [chr(code) for code in range(0x3B1, 0x3B1 + 24)]
    written: list[str] = []
    most = 0
    for term, tensor in zip(terms, tensors, strict=True):
        dots = tensor.ndim - len(term.replace("...", ""))
        if dots < 0 or (dots and "..." not in term):
            raise ApiValueError("MSC0201", f"einsum: {term!r} does not fit an operand of shape {tensor.shape}")
        most = max(most, dots)
        written.append(term.replace("...", "".join(spare[24 - dots :])))
    if arrow:
        return written, right.replace("...", "".join(spare[24 - most :]))
    letters = "".join(written)
    named = sorted({letter for letter in letters if letters.count(letter) == 1 and letter not in spare})
    return written, "".join(spare[24 - most :]) + "".join(named)


def _diagonal(term: str, x: Tensor) -> tuple[str, Tensor]:
    """A letter that stands twice in one operand means its diagonal."""
    from msc.ops.matrices import diagonal

    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            x = diagonal(x, 0, first, second)
            term = "".join(c for i, c in enumerate(term) if i not in (first, second)) + letter
    return term, x


def _joined(a: str, x: Tensor, b: str, y: Tensor, later: set[str]) -> tuple[str, Tensor]:
    """The product of two operands, summed over the letters that nothing needs later."""
    shared = [c for c in a if c in b]
    batch = [c for c in shared if c in later]
    summed = [c for c in shared if c not in later]
    left, right = [c for c in a if c not in shared], [c for c in b if c not in shared]
    sizes = dict(zip(b, y.shape, strict=True)) | {c: n for c, n in zip(a, x.shape, strict=True) if c not in b or n != 1}
    for c in summed:
        if x.shape[a.index(c)] != y.shape[b.index(c)]:
            raise ApiValueError(
                "MSC0201", f"einsum: '{c}' is {x.shape[a.index(c)]} in one and {y.shape[b.index(c)]} in another"
            )
    if not summed:
        whole = [*batch, *left, *right]
        return "".join(whole), mul(_placed(a, x, whole), _placed(b, y, whole))
    k = math.prod(sizes[c] for c in summed)
    rows = reshape(
        transpose(x, [a.index(c) for c in (*batch, *left, *summed)]),
        (*(x.shape[a.index(c)] for c in batch), math.prod(sizes[c] for c in left), k),
    )
    columns = reshape(
        transpose(y, [b.index(c) for c in (*batch, *summed, *right)]),
        (*(y.shape[b.index(c)] for c in batch), k, math.prod(sizes[c] for c in right)),
    )
    whole = [*batch, *left, *right]
    return "".join(whole), reshape(matmul(rows, columns), [sizes[c] for c in whole])


def _placed(term: str, x: Tensor, whole: Sequence[str]) -> Tensor:
    """X with its axes in the order of `whole`, and axes of size 1 for the letters that it does not have."""
    present = [c for c in whole if c in term]
    ordered = transpose(x, [term.index(c) for c in present]) if x.ndim else x
    missing = [i for i, c in enumerate(whole) if c not in term]
    return expand_dims(ordered, missing) if missing else ordered
