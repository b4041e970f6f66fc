"""Sets, differences and statistics, with NumPy's arguments."""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msc import ops
from msc.frontend import dtypes
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor
from msc.numpy.creation import Data, asarray
from msc.numpy.outside import by_numpy, typed
from msc.ops.operands import as_float, cast
from msc.ops.outside import on_arrays

__all__ = [
    "corrcoef",
    "cov",
    "digitize",
    "ediff1d",
    "gradient",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "in1d",
    "interp",
    "intersect1d",
    "isin",
    "kron",
    "multi_dot",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanstd",
    "nanvar",
    "setdiff1d",
    "sometrue",
    "unwrap",
]


digitize, intersect1d, setdiff1d = map(by_numpy, ("digitize", "intersect1d", "setdiff1d"))


histogram2d, histogramdd, histogram_bin_edges = map(by_numpy, ("histogram2d", "histogramdd", "histogram_bin_edges"))


def cov(
    m: Data, y: Data = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None,
    aweights: Any = None, dtype: Any = None,
) -> Tensor:  # fmt: skip
    """The covariance of rows, or of columns without `rowvar`."""
    x = _rows(m, rowvar)
    x = x if y is None else ops.concat([x, _rows(y, rowvar)], 0)
    correction = ddof if ddof is not None else 0 if bias else 1
    weights = [None if w is None else asarray(w) for w in (fweights, aweights)]
    found = ops.cov(x, correction=correction, fweights=weights[0], aweights=weights[1])
    return typed(ops.squeeze(found) if found.size == 1 else found, dtype)


def _rows(value: Data, rowvar: bool) -> Tensor:
    x = as_float(asarray(value))
    x = ops.expand_dims(x, 0) if x.ndim < 2 else x
    return x if rowvar or x.shape[0] == 1 else ops.swapaxes(x, 0, 1)


def corrcoef(x: Data, y: Data = None, rowvar: bool = True, dtype: Any = None) -> Tensor:
    """Pearson's coefficients of rows."""
    found = cov(x, y, rowvar)
    if found.ndim == 0:
        return typed(ops.div(found, found), dtype)
    size = ops.sqrt(ops.diagonal(found))
    return typed(ops.clamp(ops.div(found, ops.outer(size, size)), -1.0, 1.0), dtype)


def ediff1d(ary: Data, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """The differences of neighbours of all elements, with values in front and behind."""
    found = ops.diff(ops.ravel(asarray(ary)))
    parts = [None if part is None else ops.ravel(asarray(part)) for part in (to_begin, to_end)]
    return ops.concat([p for p in (parts[0], found, parts[1]) if p is not None], 0)


def gradient(f: Data, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Differences of neighbours over two steps, at the ends over one, along each axis."""
    unused("gradient", edge_order=edge_order)
    x = as_float(asarray(f))
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    steps = varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes)
    found: list[Tensor] = []
    for a, step in zip(axes, steps, strict=True):
        n = x.shape[a]
        inner = ops.mul(ops.sub(ops.narrow(x, a, 2, n - 2), ops.narrow(x, a, 0, n - 2)), 0.5)
        first = ops.sub(ops.narrow(x, a, 1, 1), ops.narrow(x, a, 0, 1))
        last = ops.sub(ops.narrow(x, a, n - 1, 1), ops.narrow(x, a, n - 2, 1))
        found.append(ops.div(ops.concat([first, inner, last], a), step))
    return found[0] if len(found) == 1 else found


def isin(element: Data, test_elements: Data, invert: bool = False) -> Tensor:
    """Which elements stand among others."""
    x, others = asarray(element), ops.ravel(asarray(test_elements))
    found = ops.any(ops.equal(ops.expand_dims(x, -1), others), -1)
    return ops.logical_not(found) if invert else found


in1d = isin


def interp(x: Data, xp: Data, fp: Data, left: Any = None, right: Any = None) -> Tensor:
    """Linear interpolation between rising points; outside the ends, or `left` and `right`."""
    where, xs, ys = (as_float(asarray(v)) for v in (x, xp, fp))
    place = ops.clamp(ops.searchsorted(xs, where, right=True), 1, xs.shape[0] - 1)
    before = ops.sub(place, 1)
    x0, x1, y0, y1 = (ops.take(v, i) for v, i in ((xs, before), (xs, place), (ys, before), (ys, place)))
    share = ops.clamp(ops.div(ops.sub(where, x0), ops.sub(x1, x0)), 0.0, 1.0)
    found = ops.add(y0, ops.mul(share, ops.sub(y1, y0)))
    found = found if left is None else ops.where(where < xs[0], float(left), found)
    return found if right is None else ops.where(where > xs[-1], float(right), found)


def kron(a: Data, b: Data) -> Tensor:
    """All products of an element of one with the other tensor."""
    return ops.kron(asarray(a), asarray(b))


def multi_dot(arrays: Sequence[Data]) -> Tensor:
    """The product of several matrices, from the left to the right."""
    result, *rest = (asarray(a) for a in arrays)
    for other in rest:
        result = ops.matmul(result, other)
    return result


def _without_nan(x: Tensor, instead: float) -> Tensor:
    return ops.where(ops.isnan(x), instead, x)


def nancumsum(a: Data, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The sums up to each element; NaN counts as 0."""
    x = _without_nan(asarray(a), 0.0)
    return typed(ops.cumsum(ops.ravel(x) if axis is None else x, axis or 0), dtype)


def nanmax(a: Data, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The largest elements that are no NaN."""
    return typed(ops.amax(_without_nan(asarray(a), float("-inf")), axis, keepdims), dtype)


def nanmin(a: Data, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest elements that are no NaN."""
    return typed(ops.amin(_without_nan(asarray(a), float("inf")), axis, keepdims), dtype)


def nanmean(a: Data, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The mean of the elements that are no NaN."""
    return ops.nanmean(as_float(asarray(a)), axis, keepdims, dtype=dtype)


def nanvar(a: Data, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """The variance of the elements that are no NaN."""
    x = as_float(asarray(a))
    squares = ops.square(ops.sub(x, ops.nanmean(x, axis, True)))
    counts = ops.sum(ops.cast(ops.logical_not(ops.isnan(x)), x.dtype), axis, keepdims)
    return typed(ops.div(ops.nansum(squares, axis, keepdims), ops.sub(counts, float(ddof))), dtype)


def nanstd(a: Data, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """The deviation of the elements that are no NaN."""
    return ops.sqrt(nanvar(a, axis, dtype, ddof, keepdims))


def unwrap(p: Data, discont: float = 3.141592653589793, axis: int = -1) -> Tensor:
    """Angles with multiples of a turn added, so that neighbours differ by less than `discont`."""
    x = as_float(asarray(p))
    turns = on_arrays("unwrap", lambda a: np.unwrap(a, discont, axis).astype(a.dtype) - a, ops.stop_gradient(x))
    found = ops.add(x, turns)
    return cast(found, dtypes.float32) if found.dtype is dtypes.float64 else found


def sometrue(a: Data, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether any element is true."""
    return ops.any(asarray(a), axis, keepdims)
