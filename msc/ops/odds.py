"""Python's numbers, and MindSpore's less common functions of elements and of shapes."""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

import math
import operator as python
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.dtypes import as_dtype
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor, tensor_method
from msc.ops import (
    activation,
    arithmetic,
    comparison,
    compositions,
    creation,
    images,
    joining,
    matrices,
    methods,
    random,
    selection,
    shapes,
    unary,
)
from msc.ops.operands import as_float, cast, only_tensor, pair
from msc.ops.operators import shapes as operators
from msc.ops.outside import on_arrays

__all__ = [
    "add_flags", "adjoint", "approximate_equal", "arctan2", "array_to_scalar", "atleast_1d", "atleast_2d",
    "atleast_3d",
    "batch_to_space_nd",
    "copysign", "deepcopy", "diagflat", "diagonal_scatter", "dstack", "eps", "expand", "float_power",
    "floordiv", "gcd", "imag", "is_complex", "is_nonzero", "isneginf", "isposinf", "isreal", "lcm", "ldexp",
    "logaddexp2", "make_tuple", "matrix_band_part", "matrix_diag", "matrix_diag_part", "matrix_set_diag",
    "mirror_pad", "mixed_precision_cast", "moveaxis", "nextafter", "padding", "population_count", "positive", "real",
    "rotary_position_embedding", "row_stack", "rrelu", "scalar_add", "scalar_cast", "scalar_div", "scalar_eq",
    "scalar_floordiv", "scalar_ge", "scalar_gt", "scalar_le", "scalar_log", "scalar_lt", "scalar_max", "scalar_min",
    "scalar_mod", "scalar_mul", "scalar_ne", "scalar_pow", "scalar_sub", "scalar_to_array", "scalar_uadd",
    "scalar_usub", "select_scatter", "sgn", "signbit", "slice_scatter", "space_to_batch_nd", "swapdims", "swiglu",
    "tensor_expm1", "tensor_muls", "tensor_range", "tensor_slice", "tuple_getitem", "type_as", "typeof", "view_as",
    "xdivy",
]  # fmt: skip

# Python's numbers.


def _of_numbers(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python's numbers."""

    def one(x: Any) -> Any:
        return function(x)

    def two(x: Any, y: Any) -> Any:
        return function(x, y)

    made = one if name in ("log", "uadd", "usub") else two
    made.__name__ = made.__qualname__ = f"scalar_{name}"
    made.__doc__ = f"Python's {name} of numbers."
    return made


scalar_add, scalar_sub = _of_numbers("add", python.add), _of_numbers("sub", python.sub)
scalar_mul, scalar_div = _of_numbers("mul", python.mul), _of_numbers("div", python.truediv)
scalar_floordiv, scalar_mod = _of_numbers("floordiv", python.floordiv), _of_numbers("mod", python.mod)
scalar_pow, scalar_log = _of_numbers("pow", python.pow), _of_numbers("log", math.log)
scalar_eq, scalar_ne = _of_numbers("eq", python.eq), _of_numbers("ne", python.ne)
scalar_lt, scalar_le = _of_numbers("lt", python.lt), _of_numbers("le", python.le)
scalar_gt, scalar_ge = _of_numbers("gt", python.gt), _of_numbers("ge", python.ge)
scalar_uadd, scalar_usub = _of_numbers("uadd", python.pos), _of_numbers("usub", python.neg)
scalar_max, scalar_min = _of_numbers("max", max), _of_numbers("min", min)


def scalar_cast(input_x: Any, input_y: Any) -> Any:
    """A number in the Python type of an element type."""
    dtype = as_dtype(input_y)
    return float(input_x) if dtype.is_float else int(input_x) if dtype.is_integer else bool(input_x)


def scalar_to_array(input_x: Any) -> Tensor:
    """A number as a tensor of rank 0."""
    return Tensor(input_x)


def array_to_scalar(x: Tensor) -> Any:
    """The only element as a Python number."""
    return x.item()


def make_tuple(*values: Any) -> tuple[Any, ...]:
    """The values as a tuple."""
    return values


def tuple_getitem(values: Any, index: int) -> Any:
    """The value at a place of a tuple."""
    return values[index]


def typeof(x: Any) -> Any:
    """The element type of a tensor, the Python type of anything else."""
    return x.dtype if isinstance(x, Tensor) else type(x)


def add_flags(fn: Any = None, **flags: Any) -> Any:
    """A function itself, or the decorator that leaves it as it is: graphs depend on the code of a function alone."""
    del flags

    def same(function: Any) -> Any:
        return function

    return same if fn is None else fn


def mixed_precision_cast(dst_type: Any, value: Any) -> Any:
    """The float tensors of a structure in another float type."""
    if isinstance(value, tuple | list):
        return type(value)(mixed_precision_cast(dst_type, v) for v in value)
    return cast(value, as_dtype(dst_type)) if isinstance(value, Tensor) and value.dtype.is_float else value


def deepcopy(input_x: Tensor) -> Tensor:
    """A tensor of the same elements."""
    return methods.copied(input_x)


# Elements.


def real(input: Tensor) -> Tensor:
    """The real part: the tensor."""
    return input


def imag(input: Tensor) -> Tensor:
    """The imaginary part: 0."""
    return creation.zeros_like(input)


def is_complex(input: Tensor) -> bool:
    """False: elements are real."""
    del input
    return False


def isreal(input: Tensor) -> Tensor:
    """True everywhere."""
    return creation.full_like(input, True, dtype=dtypes.bool_)


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not 0."""
    return bool(input)


def isposinf(input: Tensor) -> Tensor:
    """Whether elements are infinity."""
    return comparison.equal(input, float("inf"))


def isneginf(input: Tensor) -> Tensor:
    """Whether elements are minus infinity."""
    return comparison.equal(input, float("-inf"))


def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    return input


def sgn(input: Tensor) -> Tensor:
    """The sign."""
    return unary.sign(input)


def signbit(x: Tensor) -> Tensor:
    """Whether elements are below 0."""
    return x < 0


def is_negative(x: Tensor) -> Tensor:
    """Whether elements are below 0, or minus 0."""
    if not x.dtype.is_float:
        return x < 0
    return comparison.less(arithmetic.atan2(x, creation.full_like(x, -1.0)), 0.0)


def copysign(x: Any, other: Any) -> Tensor:
    """The size of one with the sign of the other."""
    a, b = map(as_float, pair("copysign", x, other))
    size = unary.abs(a)
    return selection.where(is_negative(b), unary.neg(size), size)


def ldexp(x: Any, other: Any) -> Tensor:
    """X times two to a power."""
    return arithmetic.mul(x, arithmetic.pow(2.0, other))


def float_power(input: Any, exponent: Any) -> Tensor:
    """The power, in Float64."""
    a, b = pair("float_power", input, exponent)
    return arithmetic.pow(cast(a, dtypes.float64), cast(b, dtypes.float64))


def logaddexp2(input: Any, other: Any) -> Tensor:
    """log2(2^a + 2^b)."""
    a, b = map(as_float, pair("logaddexp2", input, other))
    return arithmetic.div(
        compositions.logaddexp(arithmetic.mul(a, math.log(2)), arithmetic.mul(b, math.log(2))), math.log(2)
    )


def xdivy(x: Any, y: Any) -> Tensor:
    """X / y, and 0 where x is 0."""
    a, b = map(as_float, pair("xdivy", x, y))
    return selection.where(
        comparison.equal(a, 0), 0.0, arithmetic.div(a, selection.where(comparison.equal(a, 0), 1.0, b))
    )


def mul_no_nan_values(x: Any, y: Any) -> Tensor:
    """X * y, and 0 where y is 0."""
    return selection.where(comparison.equal(y, 0), 0, arithmetic.mul(x, y))


def approximate_equal(x: Tensor, y: Tensor, tolerance: float = 1e-5) -> Tensor:
    """Whether elements differ by less than the tolerance."""
    return comparison.less(unary.abs(arithmetic.sub(x, y)), tolerance)


def gcd(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor of integers."""
    return on_arrays("gcd", np.gcd, *pair("gcd", input, other))


def lcm(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple of integers."""
    return on_arrays("lcm", np.lcm, *pair("lcm", input, other))


def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The next number after one on the way to the other."""
    return on_arrays("nextafter", np.nextafter, *pair("nextafter", input, other))


def population_count(input_x: Tensor) -> Tensor:
    """How many bits are 1 (UInt8)."""

    def count(x: Any) -> Any:
        return np.unpackbits(x[..., None].view(np.uint8), axis=-1).sum(-1, dtype=np.uint8)

    return on_arrays("population_count", count, input_x)


def eps(x: Tensor) -> Tensor:
    """The distance from 1 to the next number of the element type, in the shape of the tensor."""
    finfo: Any = np.finfo
    return creation.full_like(x, float(finfo(x.dtype.numpy).eps))


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3) -> Tensor:
    """X, below 0 times a random slope between two."""
    slope = arithmetic.add(arithmetic.mul(random.rand_like(input), upper - lower), lower)
    return selection.where(input < 0, arithmetic.mul(input, slope), input)


def swiglu(input: Tensor, dim: int = -1) -> Tensor:
    """silu(a) * b for the halves of an axis."""
    a, b = joining.chunk(input, 2, dim)
    return arithmetic.mul(activation.silu(a), b)


def rotary_position_embedding(x: Tensor, cos: Tensor, sin: Tensor, mode: int = 0) -> Tensor:
    """X cos + turned x sin; of halves (mode 0) or of neighbours (mode 1) the second is turned to the front, negated."""
    if mode == 0:
        a, b = joining.chunk(x, 2, -1)
        turned = joining.concat([unary.neg(b), a], -1)
    else:
        pairs = shapes.reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))
        a, b = joining.unbind(pairs, -1)
        turned = shapes.reshape(joining.stack([unary.neg(b), a], -1), x.shape)
    return arithmetic.add(arithmetic.mul(x, cos), arithmetic.mul(turned, sin))


# Shapes.


def _at_least(count: int) -> Any:
    def widened(x: Tensor) -> Tensor:
        x = only_tensor(x, f"atleast_{count}d")
        if count == 3 and x.ndim == 2:
            return shapes.expand_dims(x, -1)
        if count == 3 and x.ndim == 1:
            return shapes.reshape(x, (1, -1, 1))
        return shapes.reshape(x, ((1,) * (count - x.ndim)) + x.shape) if x.ndim < count else x

    def function(inputs: Any) -> Any:
        return tuple(map(widened, inputs)) if isinstance(inputs, tuple | list) else widened(inputs)

    function.__name__ = function.__qualname__ = f"atleast_{count}d"
    function.__doc__ = f"Tensors of {count} axes or more."
    return function


atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined along the third axis."""
    return joining.concat([atleast_3d(t) for t in tensors], 2)


def expand(input_x: Tensor, size: Any) -> Tensor:
    """The tensor broadcast to sizes."""
    return shapes.broadcast_to(input_x, shapes.sizes_of(size))


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of another tensor."""
    return shapes.reshape(input, other.shape)


def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the element type of another tensor."""
    return cast(input, other.dtype)


def adjoint(x: Tensor) -> Tensor:
    """The matrices in the last two axes, transposed."""
    return shapes.swapaxes(x, -1, -2)


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """All elements as the diagonal of a matrix."""
    return matrices.diag(shapes.ravel(input), offset)


def mirror_pad(input_x: Tensor, paddings: Any, mode: str) -> Tensor:
    """Mirrored at the ends of each axis; "SYMMETRIC" repeats the edge."""
    pairs = paddings.tolist() if isinstance(paddings, Tensor) else paddings
    return images.padded(input_x, [(b, e) for b, e in pairs], mode.lower())


def padding(x: Tensor, pad_dim_size: int = 8) -> Tensor:
    """The last axis, of size 1, filled with zeros to a size."""
    return images.pad(x, (0, pad_dim_size - 1))


def tensor_slice(input: Tensor, begin: Sequence[int], size: Sequence[int]) -> Tensor:
    """`size` elements of each axis from `begin` on."""
    return operators.slice_(input, begin, size)


def _placed(x: Tensor, axis: int, places: Any, src: Tensor) -> Tensor:
    """X with slices along an axis replaced."""
    made = methods.copied(x)
    made[(slice(None),) * (axis % x.ndim) + (places,)] = src
    return made


def select_scatter(input: Tensor, src: Tensor, axis: int, index: int) -> Tensor:
    """X with an entry of an axis replaced."""
    return _placed(input, axis, index, src)


def slice_scatter(
    input: Tensor, src: Tensor, axis: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    """X with a slice of an axis replaced."""
    return _placed(input, axis, slice(start, end, step), src)


def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """X with the diagonal of the matrices in two axes replaced."""
    x = shapes.movedim(input, (dim1, dim2), (-2, -1))
    whole = compositions.diag_embed(src, offset)
    rows, columns = x.shape[-2:]
    whole = (
        joining.narrow(joining.narrow(whole, -2, 0, rows), -1, 0, columns)
        if whole.shape[-2:] != x.shape[-2:]
        else whole
    )
    mask = Tensor.of(np.eye(rows, columns, offset, dtype=bool))
    return shapes.movedim(selection.where(mask, whole, x), (-2, -1), (dim1, dim2))


def matrix_diag(
    x: Tensor, k: Any = 0, num_rows: int = -1, num_cols: int = -1, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """The last axis as the k-th diagonal of matrices, `padding_value` elsewhere."""
    unused("matrix_diag", align=align)
    offset = int(k)
    made = compositions.diag_embed(x, offset)
    size = made.shape[-1]
    rows, columns = (size if n == -1 else n for n in (num_rows, num_cols))
    mask = Tensor.of(np.eye(rows, columns, offset, dtype=bool))
    made = images.pad(made, (0, columns - size, 0, rows - size))
    return selection.where(mask, made, cast(only_tensor(padding_value, "matrix_diag"), x.dtype))


def matrix_diag_part(x: Tensor, k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """The k-th diagonal of matrices."""
    unused("matrix_diag_part", align=align, padding_value=padding_value)
    return matrices.diagonal(x, int(k), -2, -1)


def matrix_set_diag(x: Tensor, diagonal: Tensor, k: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Matrices with the k-th diagonal replaced."""
    unused("matrix_diag", align=align)
    return diagonal_scatter(x, diagonal, int(k), -2, -1)


def matrix_band_part(x: Tensor, lower: Any, upper: Any) -> Tensor:
    """The band of `lower` diagonals below and `upper` above the main one, 0 elsewhere; -1 is all."""
    low, high = int(lower), int(upper)
    made = x if low < 0 else creation.triu(x, -low)
    return made if high < 0 else creation.tril(made, high)


def _space_to_batch(x: Tensor, block: Sequence[int], paddings: Any) -> Tensor:
    spatial = len(block)
    lead = x.ndim - spatial
    pairs = [(0, 0)] * lead + [(int(b), int(e)) for b, e in paddings]
    padded = images.padded(x, pairs, "constant")
    sizes = padded.shape[lead:]
    split = shapes.reshape(
        padded, (*padded.shape[:lead], *(v for n, b in zip(sizes, block, strict=True) for v in (n // b, b)))
    )
    blocks = [lead + 1 + 2 * i for i in range(spatial)]
    rest = [lead + 2 * i for i in range(spatial)]
    moved = shapes.transpose(split, (*blocks, *range(lead), *rest))
    shape = (math.prod(block) * x.shape[0], *padded.shape[1:lead], *(n // b for n, b in zip(sizes, block, strict=True)))
    return shapes.reshape(moved, shape)


def _batch_to_space(x: Tensor, block: Sequence[int], crops: Any) -> Tensor:
    spatial = len(block)
    lead = x.ndim - spatial
    n = x.shape[0] // math.prod(block)
    split = shapes.reshape(x, (*block, n, *x.shape[1:]))
    order = [*range(spatial, spatial + lead)]
    for i in range(spatial):
        order += [spatial + lead + i, i]
    moved = shapes.transpose(split, tuple(order))
    whole = shapes.reshape(moved, (n, *x.shape[1:lead], *(s * b for s, b in zip(x.shape[lead:], block, strict=True))))
    for i, (b, e) in enumerate(crops):
        whole = joining.narrow(whole, lead + i, int(b), whole.shape[lead + i] - int(b) - int(e))
    return whole


def _blocks(block_size: Any, count: int) -> list[int]:
    return [block_size] * count if isinstance(block_size, int) else [int(b) for b in block_size]


def space_to_batch_nd(input_x: Tensor, block_size: Any, paddings: Any) -> Tensor:
    """Blocks of the last axes moved into the batch."""
    return _space_to_batch(input_x, _blocks(block_size, len(paddings)), paddings)


def batch_to_space_nd(input_x: Tensor, block_shape: Any, crops: Any) -> Tensor:
    """The batch moved into blocks of the last axes."""
    return _batch_to_space(input_x, _blocks(block_shape, len(crops)), crops)


moveaxis, swapdims, arctan2, row_stack, tensor_range = (
    shapes.movedim,
    shapes.swapaxes,
    arithmetic.atan2,
    joining.vstack,
    creation.range,
)
floordiv, tensor_expm1, tensor_muls = arithmetic.floor_divide, unary.expm1, arithmetic.mul

for _function in (
    adjoint,
    approximate_equal,
    copysign,
    diagflat,
    diagonal_scatter,
    float_power,
    gcd,
    imag,
    is_complex,
    isneginf,
    isposinf,
    isreal,
    lcm,
    ldexp,
    logaddexp2,
    nextafter,
    positive,
    select_scatter,
    sgn,
    signbit,
    slice_scatter,
    xdivy,
    expand,
):
    tensor_method(_function.__name__)(_function)
tensor_method("arctan2")(arctan2)
tensor_method("moveaxis")(shapes.movedim)
tensor_method("swapdims")(shapes.swapaxes)
