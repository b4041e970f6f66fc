"""Shapes, choices and products, with NumPy's arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from msc import ops
from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Number, Tensor
from msc.numpy.creation import Data, array, asarray, numpys
from msc.ops.operands import as_float, only_tensor, pair
from msc.ops.outside import on_arrays
from msc.ops.reductions import length
from msc.support.arrays import Array

__all__ = [
    "allclose", "append", "apply_along_axis", "argsort", "around", "array_equal", "atleast_1d", "atleast_2d",
    "bincount", "broadcast_arrays", "broadcast_to", "cbrt", "clip", "column_stack", "concatenate", "convolve",
    "divmod", "dot", "dsplit", "dstack", "expand_dims", "heaviside", "histogram", "hsplit", "hstack", "hypot",
    "inner", "isclose", "log2", "logaddexp", "matmul", "ndim", "norm", "outer", "pad", "power", "rand", "randint",
    "randn", "ravel", "repeat", "reshape", "roll", "round", "rsqrt", "select", "shape", "size", "sort", "split",
    "squeeze", "stack", "swapaxes", "take", "take_along_axis", "tensordot", "tile", "trace", "transpose", "unique",
    "vsplit", "vstack", "where",
]  # fmt: skip

Axes: TypeAlias = int | Sequence[int] | None

reshape = numpys(ops.reshape, "reshape", "x new_shape")
swapaxes = numpys(ops.swapaxes, "swapaxes", "x axis1 axis2")
expand_dims = numpys(ops.expand_dims, "expand_dims", "a axis")
squeeze = numpys(ops.squeeze, "squeeze", "a axis")
broadcast_to = numpys(ops.broadcast_to, "broadcast_to", "array shape")
repeat = numpys(ops.repeat_interleave, "repeat", "a repeats axis")
roll = numpys(ops.roll, "roll", "a shift axis")
take = numpys(ops.take, "take", "a indices axis", 2)
matmul = numpys(ops.matmul, "matmul", "x1 x2", 2)
inner = numpys(ops.inner, "inner", "a b", 2)
tensordot = numpys(ops.tensor_dot, "tensordot", "a b axes", 2, axes=2)
trace = numpys(ops.trace, "trace", "a offset axis1 axis2")
clip = numpys(ops.clamp, "clip", "x xmin xmax")
power = numpys(ops.pow, "power", "x1 x2", 0)
around = round = numpys(ops.round, "around", "a decimals")
log2 = numpys(ops.log2, "log2", "x")
rsqrt = numpys(ops.rsqrt, "rsqrt", "x")
isclose = numpys(ops.isclose, "isclose", "a b rtol atol equal_nan", 2)


def shape(a: Data) -> tuple[int, ...]:
    """The sizes."""
    return asarray(a).shape


def ndim(a: Data) -> int:
    """The number of axes."""
    return asarray(a).ndim


def size(a: Data, axis: int | None = None) -> int:
    """The number of elements, or the size of an axis."""
    return asarray(a).size if axis is None else asarray(a).shape[axis]


def ravel(x: Data) -> Tensor:
    """All elements along one axis."""
    return ops.reshape(asarray(x), (-1,))


def transpose(a: Data, axes: Sequence[int] | None = None) -> Tensor:
    """Axes in another order; in reverse if none is given."""
    x = asarray(a)
    return ops.transpose(x, tuple(reversed(range(x.ndim))) if axes is None else axes)


def broadcast_arrays(*args: Data) -> list[Tensor]:
    """All broadcast to one shape."""
    tensors = [asarray(a) for a in args]
    shape = np.broadcast_shapes(*(t.shape for t in tensors))
    return [ops.broadcast_to(t, shape) for t in tensors]


def atleast_1d(*args: Data) -> Any:
    """With rank 1 at least."""
    made = [ops.reshape(t, (1,)) if t.ndim == 0 else t for t in map(asarray, args)]
    return made[0] if len(made) == 1 else made


def atleast_2d(*args: Data) -> Any:
    """With rank 2 at least."""
    made = [array(a, ndmin=2) for a in args]
    return made[0] if len(made) == 1 else made


def concatenate(arrays: Sequence[Data], axis: int | None = 0) -> Tensor:
    """Joined along an axis; flattened first if that is None."""
    tensors = [asarray(a) for a in arrays]
    return ops.concat([ravel(t) for t in tensors], 0) if axis is None else ops.concat(tensors, axis)


def append(arr: Data, values: Data, axis: int | None = None) -> Tensor:
    """Values joined at the end."""
    return concatenate((arr, values), axis)


def stack(arrays: Sequence[Data], axis: int = 0) -> Tensor:
    """Along a new axis."""
    return ops.stack([asarray(a) for a in arrays], axis)


def hstack(tup: Sequence[Data]) -> Tensor:
    """Joined along the second axis; vectors along the first."""
    return ops.hstack([atleast_1d(a) for a in tup])


def vstack(tup: Sequence[Data]) -> Tensor:
    """Joined along the first axis; vectors are rows."""
    return ops.vstack([asarray(a) for a in tup])


def dstack(tup: Sequence[Data]) -> Tensor:
    """Joined along the third axis."""
    planes = [ops.reshape(t, (*t.shape, 1)) if t.ndim == 2 else t for t in map(atleast_2d, tup)]
    return ops.concat([ops.reshape(p, (1, *p.shape[-1:], 1)) if p.ndim == 2 else p for p in planes], 2)


def column_stack(tup: Sequence[Data]) -> Tensor:
    """Vectors as columns of a matrix."""
    return ops.concat([ops.reshape(t, (-1, 1)) if t.ndim == 1 else t for t in map(asarray, tup)], 1)


def split(x: Data, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """So many parts of one size, or cut at places."""
    t = asarray(x)
    if isinstance(indices_or_sections, int) and t.shape[axis] % indices_or_sections:
        raise ApiValueError("MSC0201", f"split: axis {axis} of {t.shape} does not divide by {indices_or_sections}")
    return list(ops.tensor_split(t, indices_or_sections, axis))


def hsplit(x: Data, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Split along the second axis."""
    return split(x, indices_or_sections, 1)


def vsplit(x: Data, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Split along the first axis."""
    return split(x, indices_or_sections, 0)


def dsplit(x: Data, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Split along the third axis."""
    return split(x, indices_or_sections, 2)


def tile(a: Data, reps: Any) -> Tensor:
    """Repeated as a whole along each axis."""
    x, times = asarray(a), (reps,) if isinstance(reps, int) else tuple(reps)
    return ops.tile(x, (*(1,) * (x.ndim - len(times)), *times))


def pad(arr: Data, pad_width: Any, mode: str = "constant", constant_values: Number = 0) -> Tensor:
    """Elements added before and after each axis."""
    x = asarray(arr)
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    return ops.pad(x, [n for pair in reversed(widths) for n in pair], mode, constant_values)


def where(condition: Data, x: Data = None, y: Data = None) -> Any:
    """X where the condition holds, y elsewhere; without these, the places where it holds."""
    if x is None or y is None:
        return ops.nonzero(asarray(condition), as_tuple=True)
    numbers = isinstance(x, bool | int | float) and isinstance(y, bool | int | float)
    data = (v if isinstance(v, bool | int | float) and not numbers else asarray(v) for v in (x, y))
    return ops.where(asarray(condition), *data)


def select(condlist: Sequence[Data], choicelist: Sequence[Data], default: Number = 0) -> Tensor:
    """The choice of the first condition that holds."""
    result: Any = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = ops.where(asarray(condition), asarray(choice), result)
    return result


def sort(a: Data, axis: int | None = -1) -> Tensor:
    """The elements in order."""
    x = asarray(a)
    return ops.sort(ravel(x) if axis is None else x, -1 if axis is None else axis)[0]


def argsort(a: Data, axis: int | None = -1) -> Tensor:
    """The indices that sort."""
    x = asarray(a)
    return ops.argsort(ravel(x) if axis is None else x, -1 if axis is None else axis)


def unique(x: Data, return_inverse: bool = False) -> Any:
    """The elements that differ, in the order in which they first occur, and where those of x stand among them."""
    found = ops.unique(asarray(x))
    return found if return_inverse else found[0]


def dot(a: Data, b: Data) -> Tensor:
    """Sums of products along the last axis of a and the second last of b."""
    x, y = asarray(a), asarray(b)
    return ops.mul(x, y) if 0 in (x.ndim, y.ndim) else ops.dot(x, y)


def outer(a: Data, b: Data) -> Tensor:
    """All products of an element of one with one of the other."""
    return ops.outer(ravel(a), ravel(b))


def hypot(x1: Data, x2: Data) -> Tensor:
    """The root of the sum of the squares."""
    return length(ops.add(ops.square(x1), ops.square(x2)))


def logaddexp(x1: Data, x2: Data) -> Tensor:
    """log(e^x1 + e^x2), without overflow."""
    return apply("log_add_exp", *map(as_float, pair("logaddexp", x1, x2)))


def norm(x: Data, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The length of a vector or of a matrix, or another norm."""
    value = as_float(asarray(x))
    if ord is None and axis is None:
        return ops.norm(ops.ravel(value), 2) if not keepdims else ops.norm(value, 2, tuple(range(value.ndim)), True)
    return ops.norm(value, 2 if ord is None else ord, axis, keepdims)


def take_along_axis(arr: Data, indices: Data, axis: int | None) -> Tensor:
    """The element at the index along an axis, place by place."""
    x = asarray(arr)
    return ops.gather_elements(ravel(x) if axis is None else x, axis or 0, asarray(indices))


def randn(*shape: int, dtype: Any = dtypes.float32) -> Tensor:
    """Normal numbers with mean 0 and deviation 1."""
    return ops.randn(*(shape or ((),)), dtype=dtype)


def rand(*shape: int, dtype: Any = dtypes.float32) -> Tensor:
    """Numbers uniform in [0, 1)."""
    return ops.rand(*(shape or ((),)), dtype=dtype)


def randint(minval: int, maxval: int | None = None, shape: Any = (), dtype: Any = dtypes.int32) -> Tensor:
    """Integers uniform in [minval, maxval), or in [0, minval)."""
    low, high = (0, minval) if maxval is None else (minval, maxval)
    return ops.randint(low, high, shape, dtype=dtype)


def cbrt(x: Data) -> Tensor:
    """The cube root."""
    value = as_float(asarray(x))
    return ops.mul(ops.sign(value), ops.pow(ops.abs(value), 1 / 3))


def heaviside(x1: Data, x2: Data) -> Tensor:
    """0 below 0, x2 at 0, 1 above."""
    x = asarray(x1)
    return ops.where(ops.equal(x, 0), x2, ops.cast(ops.greater(x, 0), x.dtype))


def divmod(x1: Data, x2: Data) -> tuple[Tensor, Tensor]:
    """The floored quotient and the remainder."""
    return ops.floor_divide(x1, x2), ops.floor_mod(x1, x2)


def allclose(a: Data, b: Data, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether all elements are close."""
    return ops.all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Data, a2: Data) -> Tensor:
    """Whether shapes and elements are equal."""
    a, b = asarray(a1), asarray(a2)
    return ops.all(ops.equal(a, b)) if a.shape == b.shape else Tensor(False)


def bincount(x: Data, weights: Data = None, minlength: int = 0) -> Tensor:
    """How often each integer stands in a vector."""
    found = ops.bincount(asarray(x), None if weights is None else asarray(weights), minlength)
    return ops.cast(found, dtypes.float32)


def histogram(a: Data, bins: Any = 10, range: Any = None) -> tuple[Tensor, Tensor]:
    """How many elements lie between neighbouring edges, and the edges."""

    def counted(x: Array) -> Any:
        return np.histogram(x.view(np.uint8) if x.dtype == bool else x, bins, range)

    counts, edges = on_arrays("histogram", counted, asarray(a))
    return ops.cast(counts, dtypes.float32), ops.cast(edges, dtypes.float32)


def convolve(a: Data, v: Data, mode: str = "full") -> Tensor:
    """The convolution of two vectors."""
    x, y = asarray(a), asarray(v)
    if y.shape[0] > x.shape[0]:
        x, y = y, x
    extra = {"full": y.shape[0] - 1, "same": y.shape[0] - 1, "valid": 0}
    if mode not in extra:
        raise ApiValueError("MSC0203", f"convolve: mode is {mode!r}, not 'full', 'same' or 'valid'")
    line = ops.reshape(ops.pad(only_tensor(x, "convolve"), (extra[mode], extra[mode])), (1, 1, -1))
    kernel = ops.reshape(ops.flip(y, 0), (1, 1, -1))
    full_ = ops.reshape(ops.conv1d(ops.cast(line, dtypes.float32), ops.cast(kernel, dtypes.float32)), (-1,))
    if mode == "same":
        full_ = ops.narrow(full_, 0, (y.shape[0] - 1) // 2, x.shape[0])
    return full_


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Data, *args: Any) -> Tensor:
    """A function of vectors along an axis."""
    x = ops.movedim(asarray(arr), axis, -1)
    rows = [func1d(row, *args) for row in ops.reshape(x, (-1, x.shape[-1]))]
    made = ops.stack([asarray(row) for row in rows])
    result = ops.reshape(made, (*x.shape[:-1], *made.shape[1:]))
    return ops.movedim(result, -1, axis) if made.ndim > 1 else result
