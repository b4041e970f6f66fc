"""Making and reducing arrays, with NumPy's arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Signature, signature
from typing import Any, TypeAlias

import numpy as np

from msc import ops
from msc.frontend import dtypes
from msc.frontend.dtypes import DTypeLike, as_dtype
from msc.frontend.tensor import Number, Tensor, value_of
from msc.ops.creation import numbers_between
from msc.ops.operands import cast

__all__ = [
    "all", "amax", "amin", "any", "arange", "argmax", "argmin", "array", "asarray", "average", "copy",
    "count_nonzero", "cumsum", "diff", "empty", "empty_like", "eye", "full", "full_like", "identity", "linspace",
    "logspace", "max", "mean", "meshgrid", "min", "nansum", "ones", "ones_like", "prod", "ptp", "std", "sum",
    "trapz", "var", "zeros", "zeros_like",
]  # fmt: skip

Data: TypeAlias = Any
"""A tensor, a number, a nested list of numbers, or a NumPy array."""
Axes: TypeAlias = int | Sequence[int] | None


def numpys(
    function: Callable[..., Any], name: str, arguments: str, data: int = 1, **defaults: Any
) -> Callable[..., Any]:
    """A function of `ops` with NumPy's names of its arguments, of which the first `data` may be numbers and lists.

    Their defaults are the function's, but for those given here.
    """
    formal = list(signature(function).parameters.values())
    pairs = zip(formal, arguments.split(), strict=False)
    shown = [p.replace(name=n, kind=p.POSITIONAL_OR_KEYWORD, default=defaults.get(n, p.default)) for p, n in pairs]
    own = Signature(shown)
    keyword = {n.name: p.name for p, n in zip(formal, shown, strict=False) if p.kind is p.KEYWORD_ONLY}

    def called(*args: Any, **keywords: Any) -> Any:
        given = own.bind(*args, **keywords)
        given.apply_defaults()
        values = dict(given.arguments)
        named = {keyword[n]: values.pop(n) for n in keyword}
        return function(*(asarray(v) if i < data else v for i, v in enumerate(values.values())), **named)

    called.__name__ = called.__qualname__ = name
    called.__doc__ = function.__doc__
    vars(called)["__signature__"] = own
    return called


def array(obj: Data, dtype: DTypeLike | None = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """A tensor of data, with axes of size 1 in front up to rank `ndmin`."""
    del copy
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(obj, Tensor):
        x = obj if wanted is None else cast(obj, wanted)
    else:
        x = Tensor(obj, wanted)
        x = cast(x, dtypes.int32) if wanted is None and x.dtype is dtypes.int64 and is_plain(obj) else x
    return ops.reshape(x, (*(1,) * (ndmin - x.ndim), *x.shape)) if x.ndim < ndmin else x


def as_sequence(value: Any) -> Sequence[Any]:
    """The value, of which is known that it is a sequence."""
    return value


def is_plain(value: object) -> bool:
    """Whether data are Python's own numbers, of which integers become Int32, as in MindSpore."""
    if type(value) in (list, tuple):
        return not [v for v in as_sequence(value) if not is_plain(v)]
    return type(value) in (bool, int, float)


def asarray(a: Data, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of data; the tensor itself if it has the element type."""
    return array(a, dtype)


def copy(a: Data) -> Tensor:
    """A tensor of the same elements."""
    return value_of(asarray(a))


def zeros(shape: Any, dtype: DTypeLike = dtypes.float32) -> Tensor:
    """0 everywhere."""
    return ops.zeros(shape, dtype)


def ones(shape: Any, dtype: DTypeLike = dtypes.float32) -> Tensor:
    """1 everywhere."""
    return ops.ones(shape, dtype)


def empty(shape: Any, dtype: DTypeLike = dtypes.float32) -> Tensor:
    """As `zeros`."""
    return ops.zeros(shape, dtype)


def full(shape: Any, fill_value: Any, dtype: DTypeLike | None = None) -> Tensor:
    """A number everywhere, or data that broadcast to the shape."""
    value = asarray(fill_value, dtype)
    return ops.broadcast_to(value, shape)


def zeros_like(a: Data, dtype: DTypeLike | None = None) -> Tensor:
    """0 everywhere, in the shape of a tensor."""
    return ops.zeros_like(asarray(a), dtype=dtype)


def ones_like(a: Data, dtype: DTypeLike | None = None) -> Tensor:
    """1 everywhere, in the shape of a tensor."""
    return ops.ones_like(asarray(a), dtype=dtype)


def empty_like(a: Data, dtype: DTypeLike | None = None) -> Tensor:
    """As `zeros_like`."""
    return zeros_like(a, dtype)


def full_like(a: Data, fill_value: Number, dtype: DTypeLike | None = None) -> Tensor:
    """A number everywhere, in the shape of a tensor."""
    return ops.full_like(asarray(a), fill_value, dtype=dtype)


def all_integers(*numbers: Any) -> bool:
    """Whether all numbers that are given are integers."""
    return not [n for n in numbers if n is not None and not isinstance(n, int)]


def arange(start: Number, stop: Number | None = None, step: Number = 1, dtype: DTypeLike | None = None) -> Tensor:
    """Numbers from start up to but without stop, step apart."""
    whole = all_integers(start, stop, step)
    return ops.arange(start, stop, step, dtype=dtypes.int32 if dtype is None and whole else dtype)


def linspace(start: Number, stop: Number, num: int = 50, endpoint: bool = True, dtype: Any = None) -> Tensor:
    """So many numbers from start to stop, which is one of them unless `endpoint` is False."""
    found = numbers_between(start, stop, np.linspace(0, 1, num, endpoint))
    return ops.cast(found, as_dtype(dtype or dtypes.float32))


def logspace(start: Number, stop: Number, num: int = 50, endpoint: bool = True, base: float = 10.0) -> Tensor:
    """Base to the numbers of `linspace`."""
    exponents = numbers_between(start, stop, np.linspace(0, 1, num, endpoint))
    return ops.cast(ops.pow(Tensor(float(base), dtypes.float64), exponents), dtypes.float32)


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = dtypes.float32) -> Tensor:
    """Ones on a diagonal."""
    return Tensor.of(np.eye(N, M, k, as_dtype(dtype).numpy))


def identity(n: int, dtype: DTypeLike = dtypes.float32) -> Tensor:
    """The identity matrix."""
    return eye(n, dtype=dtype)


def meshgrid(*xi: Data, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Vectors as the axes of a grid."""
    return ops.meshgrid(*map(asarray, xi), indexing=indexing)


def _reduction(function: Callable[..., Tensor], doc: str) -> Callable[..., Tensor]:
    def reduce(a: Data, axis: Axes = None, keepdims: bool = False, dtype: DTypeLike | None = None) -> Tensor:
        x = asarray(a) if dtype is None else asarray(a, dtype)
        return function(x, axis, keepdims)

    reduce.__doc__ = doc
    return reduce


sum = _reduction(ops.sum, "The sum.")
prod = _reduction(ops.prod, "The product.")
mean = _reduction(ops.mean, "The arithmetic mean.")
amax = _reduction(ops.amax, "The largest element.")
amin = _reduction(ops.amin, "The smallest element.")
max, min = amax, amin
all = _reduction(ops.all, "Whether all elements are true.")
any = _reduction(ops.any, "Whether any element is true.")
ptp = _reduction(ops.ptp, "The largest less the smallest element.")
argmax = _reduction(ops.argmax, "Where the largest element stands.")
argmin = _reduction(ops.argmin, "Where the smallest element stands.")
count_nonzero = _reduction(ops.count_nonzero, "How many elements are not zero.")


def nansum(a: Data, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements that are no NaN."""
    x = asarray(a)
    return ops.sum(ops.where(ops.isnan(x), 0.0, x), axis, keepdims)


def var(a: Data, axis: Axes = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """The variance, with divisor N - ddof."""
    return ops.var(asarray(a), axis, ddof, keepdims)


def std(a: Data, axis: Axes = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """The standard deviation, with divisor N - ddof."""
    return ops.std(asarray(a), axis, ddof, keepdims)


def average(a: Data, axis: int | None = None, weights: Data = None) -> Tensor:
    """The mean, weighed if there are weights."""
    if weights is None:
        return mean(a, axis)
    w = asarray(weights)
    return ops.div(ops.sum(ops.mul(asarray(a), w), axis), ops.sum(w, axis))


def cumsum(a: Data, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """The sums of the elements up to each one."""
    x = asarray(a)
    return ops.cumsum(ops.ravel(x) if axis is None else x, 0 if axis is None else axis, dtype)


def diff(a: Data, n: int = 1, axis: int = -1) -> Tensor:
    """The differences of neighbours along an axis, n times."""
    x = asarray(a)
    for _ in range(n):
        size = x.shape[axis]
        if size == 0:
            break
        x = ops.sub(ops.narrow(x, axis, 1, size - 1), ops.narrow(x, axis, 0, size - 1))
    return x


def trapz(y: Data, x: Data = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """The integral by the trapezoidal rule."""
    values = asarray(y)
    size = values.shape[axis]
    middle = ops.add(ops.narrow(values, axis, 1, size - 1), ops.narrow(values, axis, 0, size - 1))
    widths: Any = dx if x is None else diff(x, 1, axis)
    return ops.mul(ops.sum(ops.mul(middle, widths), axis), 0.5)
