"""Counts, quantiles, segments and sums that are less common, and windows of numbers."""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.dtypes import as_dtype
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor, concrete, tensor_method
from msc.ops import (
    activation,
    arithmetic,
    comparison,
    compositions,
    creation,
    joining,
    linear,
    methods,
    ordering,
    reductions,
    scattering,
    selection,
    shapes,
    unary,
)
from msc.ops.operands import as_float, cast, only_tensor
from msc.ops.outside import on_arrays

__all__ = [
    "accumulate_n", "addbmm", "addr", "bartlett_window", "batch_dot", "bidense", "bincount", "blackman_window",
    "bucketize", "cartesian_prod", "combinations", "cov", "fftfreq", "fftshift", "fills", "hamming_window",
    "hann_window", "histc", "ifftshift", "inplace_add", "inplace_sub", "inplace_update", "intopk", "kaiser_window",
    "kron", "logcumsumexp", "masked_scatter", "msort", "nanmean", "nanmedian", "nanquantile", "pdist", "quantile",
    "renorm", "rfftfreq", "tensor_scatter_div", "trapz", "unique_consecutive", "unsorted_segment_max",
    "unsorted_segment_min", "unsorted_segment_prod", "vander", "vecdot", "vector_norm",
]  # fmt: skip

# Sums, order, counts.


def accumulate_n(x: Sequence[Tensor]) -> Tensor:
    """The sum of tensors."""
    return compositions.addn(x)


def nanmean(input: Tensor, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean of the elements that are no NaN."""
    counts = reductions.sum(cast(unary.logical_not(unary.isnan(input)), input.dtype), axis, keepdims)
    found = arithmetic.div(compositions.nansum(input, axis, keepdims), counts)
    return found if dtype is None else cast(found, as_dtype(dtype))


def nanmedian(input: Tensor, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The median of the elements that are no NaN along an axis, the lower of two, and where it stands."""
    safe = selection.where(unary.isnan(input), float("inf"), input)
    values, places = ordering.sort(safe, axis)
    counts = reductions.sum(cast(unary.logical_not(unary.isnan(input)), dtypes.int64), axis, True)
    middle = arithmetic.floor_divide(arithmetic.maximum(arithmetic.sub(counts, 1), 0), 2)
    found = [selection.gather_elements(x, axis, middle) for x in (values, cast(places, dtypes.int64))]
    value, place = found if keepdims else [shapes.squeeze(x, axis) for x in found]
    return value, place


def quantile(input: Tensor, q: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where a share q of the elements is below, between neighbours linearly; NaN beside a NaN."""
    unknown = reductions.any(unary.isnan(input), axis, keepdims)
    return selection.where(unknown, float("nan"), nanquantile(input, q, axis, keepdims))


def nanquantile(input: Tensor, q: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The same of the elements that are no NaN; the axes of q come first."""
    x = shapes.ravel(input) if axis is None else shapes.movedim(input, axis, -1)
    share = cast(only_tensor(q, "quantile"), dtypes.float64)
    rows = ordering.sort(selection.where(unary.isnan(x), float("inf"), x), -1)[0]
    counts = reductions.sum(cast(unary.logical_not(unary.isnan(x)), dtypes.float64), -1, True)
    place = arithmetic.mul(shapes.reshape(share, (-1,)), arithmetic.maximum(arithmetic.sub(counts, 1), 0))
    below = unary.floor(place)
    low, high = (
        selection.gather_elements(rows, rows.ndim - 1, cast(i, dtypes.int64)) for i in (below, unary.ceil(place))
    )
    rest = cast(arithmetic.sub(place, below), x.dtype)
    between = arithmetic.add(low, arithmetic.mul(arithmetic.sub(high, low), rest))
    found = selection.where(comparison.equal(rest, 0), low, between)
    found = selection.where(comparison.equal(counts, 0), float("nan"), found)
    found = shapes.reshape(shapes.movedim(found, -1, 0), (*share.shape, *x.shape[:-1]))
    if not keepdims:
        return found
    sizes = [1 if axis is None or i == axis % input.ndim else n for i, n in enumerate(input.shape)]
    return shapes.reshape(found, (*share.shape, *sizes))


def msort(input: Tensor) -> Tensor:
    """The elements in order along the first axis."""
    return ordering.sort(input, 0)[0]


def logcumsumexp(input: Tensor, axis: int) -> Tensor:
    """The log of the sums of e^x up to each element along an axis."""
    return ordering.running(as_float(input), axis, "log_add_exp", "logcumsumexp")


def trapz(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral by the trapezoidal rule along an axis."""
    size = y.shape[dim]
    middle = arithmetic.mul(
        arithmetic.add(joining.narrow(y, dim, 1, size - 1), joining.narrow(y, dim, 0, size - 1)), 0.5
    )
    if x is None:
        return reductions.sum(arithmetic.mul(middle, dx), dim)
    steps = compositions.diff(x, axis=dim if x.ndim == y.ndim else -1)
    if x.ndim < y.ndim:
        steps = shapes.reshape(steps, tuple(-1 if i == dim % y.ndim else 1 for i in range(y.ndim)))
    return reductions.sum(arithmetic.mul(middle, steps), dim)


def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariance of rows, whose columns may have weights."""
    x = as_float(input)
    x = shapes.expand_dims(x, 0) if x.ndim < 2 else x
    weights = None
    for given in (fweights, aweights):
        if given is not None:
            weights = cast(given, x.dtype) if weights is None else arithmetic.mul(weights, cast(given, x.dtype))
    if weights is None:
        centred = arithmetic.sub(x, reductions.mean(x, 1, True))
        found = linear.matmul(centred, shapes.swapaxes(centred, 0, 1))
        found = arithmetic.div(found, float(max(x.shape[1] - correction, 0)))
    else:
        total = reductions.sum(weights)
        mean = arithmetic.div(reductions.sum(arithmetic.mul(x, weights), 1, True), total)
        centred = arithmetic.sub(x, mean)
        scale = total
        if correction:
            own = (
                total
                if aweights is None
                else arithmetic.div(reductions.sum(arithmetic.mul(weights, cast(aweights, x.dtype))), total)
            )
            scale = arithmetic.sub(total, arithmetic.mul(1.0 if aweights is None else own, float(correction)))
        found = arithmetic.div(linear.matmul(centred, shapes.swapaxes(arithmetic.mul(centred, weights), 0, 1)), scale)
    return shapes.squeeze(found) if input.ndim < 2 else found


def vecdot(x: Tensor, y: Tensor, *, axis: int = -1) -> Tensor:
    """Products of vectors along an axis."""
    return reductions.sum(arithmetic.mul(x, y), axis)


def vector_norm(x: Tensor, ord: float = 2, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """A norm of vectors."""
    return reductions.norm(x, ord, axis, keepdims, dtype=dtype)


def renorm(input: Tensor, p: float, axis: int, maxnorm: float) -> Tensor:
    """The entries of an axis, scaled to a norm where theirs is larger."""
    rest = tuple(i for i in range(input.ndim) if i != axis % input.ndim)
    norms = reductions.norm(input, p, rest, True)
    scale = arithmetic.div(maxnorm, arithmetic.add(norms, 1e-7))
    return arithmetic.mul(input, selection.where(norms > maxnorm, scale, 1.0))


def kron(input: Tensor, other: Tensor) -> Tensor:
    """All products of an element of one with the other tensor (Kronecker)."""
    rank = max(input.ndim, other.ndim)
    a = shapes.reshape(input, (1,) * (rank - input.ndim) + input.shape)
    b = shapes.reshape(other, (1,) * (rank - other.ndim) + other.shape)
    wide = shapes.reshape(a, tuple(v for n in a.shape for v in (n, 1)))
    product = arithmetic.mul(wide, shapes.reshape(b, tuple(v for n in b.shape for v in (1, n))))
    return shapes.reshape(product, tuple(m * n for m, n in zip(a.shape, b.shape, strict=True)))


def vander(x: Tensor, N: int | None = None) -> Tensor:
    """Falling powers of a vector's elements, a row each."""
    count = x.shape[-1] if N is None else N
    powers = Tensor(np.arange(count - 1, -1, -1), dtypes.int64)
    return arithmetic.pow(shapes.expand_dims(x, -1), cast(powers, x.dtype))


def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Beta * input + alpha * the sum of products of matrices."""
    total = reductions.sum(linear.bmm(batch1, batch2), 0)
    return arithmetic.add(scaled(input, beta), scaled(total, alpha))


def addr(x: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = None, alpha: Any = None) -> Tensor:
    """Beta * x + alpha * the outer product of vectors."""
    product = linear.outer(vec1, vec2)
    return arithmetic.add(scaled(x, 1 if beta is None else beta), scaled(product, 1 if alpha is None else alpha))


def scaled(x: Tensor, factor: Any) -> Tensor:
    return x if isinstance(factor, int) and factor == 1 else arithmetic.mul(x, factor)


def batch_dot(x1: Tensor, x2: Tensor, axes: Any = None) -> Tensor:
    """Products along an axis of each, example by example."""
    if axes is None:
        first, second = x1.ndim - 1, 1 if x2.ndim == 2 else x2.ndim - 2
    else:
        first, second = (axes, axes) if isinstance(axes, int) else axes
    a = shapes.movedim(x1, first, -1)
    b = shapes.movedim(x2, second, 1)
    left, right = a.shape[1:-1], b.shape[2:]
    product = linear.bmm(
        shapes.reshape(a, (a.shape[0], -1, a.shape[-1])), shapes.reshape(b, (b.shape[0], b.shape[1], -1))
    )
    shape = (a.shape[0], *left, *right)
    return shapes.reshape(product, shape if len(shape) > 1 else (a.shape[0], 1))


def bidense(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y_o = x1 W_o x2 + bias for vectors along the last axes."""
    left = shapes.reshape(input1, (-1, input1.shape[-1]))
    right = shapes.reshape(input2, (-1, input2.shape[-1]))
    found = linear.einsum("bi,oij,bj->bo", left, weight, right)
    found = found if bias is None else arithmetic.add(found, bias)
    return shapes.reshape(found, (*input1.shape[:-1], weight.shape[0]))


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances of all pairs of rows."""
    first, second = np.triu_indices(input.shape[-2], 1)
    a, b = (selection.gather(input, Tensor(i), -2) for i in (first, second))
    return vector_norm(arithmetic.sub(a, b), p, -1)


def cartesian_prod(*inputs: Tensor) -> Tensor:
    """All tuples of an element of each vector, as rows."""
    rows = [shapes.ravel(grid) for grid in creation.meshgrid(*inputs, indexing="ij")]
    return joining.stack(rows, 1) if len(rows) > 1 else rows[0]


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All tuples of r elements of a vector, in order, as rows."""
    import itertools

    chosen = (itertools.combinations_with_replacement if with_replacement else itertools.combinations)(
        range(input.shape[0]), r
    )
    return selection.gather(input, Tensor(np.array(list(chosen), np.int64).reshape(-1, r)), 0)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each integer stands in a vector, or the sum of the weights there."""
    if weights is None:
        return cast(on_arrays("bincount", lambda x: np.bincount(x, minlength=minlength), input), dtypes.float32)
    size = max(int(concrete(input, "bincount").max(initial=-1)) + 1, minlength)
    return scattering.unsorted_segment_sum(weights, input, size)


def histc(input: Tensor, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor:
    """How many elements lie in each of equal parts of [min, max], or of the range of the elements."""

    def count(x: Any) -> Any:
        low, high = (float(x.min()), float(x.max())) if min == max == 0 else (min, max)
        low, high = (low - 1, high + 1) if low == high else (low, high)
        return np.histogram(x, bins, (low, high))[0]

    return cast(on_arrays("histc", lambda x: count(x).astype(x.dtype), input), input.dtype)


def bucketize(input: Tensor, boundaries: Sequence[float], *, right: bool = False) -> Tensor:
    """How many boundaries are below each element, or not above with `right` (Int32)."""
    line = Tensor(np.asarray(boundaries, np.float32))
    return cast(ordering.searchsorted(line, cast(input, dtypes.float32), right=right), dtypes.int32)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements, or entries of an axis, without repetitions of the one before; places and counts if asked for."""
    x = concrete(input, "unique_consecutive")
    rows = x.reshape(-1, 1) if dim is None else np.moveaxis(x, dim, 0).reshape(x.shape[dim], -1)
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(1)
    places = Tensor(np.flatnonzero(new))
    kept = selection.gather(shapes.ravel(input), places, 0) if dim is None else selection.gather(input, places, dim)
    inverse = (np.cumsum(new) - 1).reshape(x.shape if dim is None else -1)
    counts = np.diff(np.append(np.nonzero(new)[0], len(rows)))
    found = (kept, *([Tensor(inverse)] if return_inverse else []), *([Tensor(counts)] if return_counts else []))
    return found[0] if len(found) == 1 else found


def intopk(x1: Tensor, x2: Tensor, k: int) -> Tensor:
    """Whether the class is among those of the k largest elements of its row."""
    own = selection.gather_elements(x1, 1, shapes.expand_dims(cast(x2, dtypes.int64), 1))
    return comparison.less(reductions.sum(cast(x1 > own, dtypes.int32), 1), k)


def _segments(join: str, start: Callable[[Any], Any]) -> Callable[..., Tensor]:
    def joined(x: Tensor, segment_ids: Tensor, num_segments: int) -> Tensor:
        ids = shapes.reshape(segment_ids, (-1,))
        rows = shapes.reshape(x, (ids.shape[0], *x.shape[segment_ids.ndim :]))
        table = creation.full((int(num_segments), *rows.shape[1:]), start(x.dtype), dtype=x.dtype)
        return scattering.scattered(table, ids, rows, join, f"unsorted_segment_{join}")

    joined.__name__ = joined.__qualname__ = f"unsorted_segment_{join}"
    joined.__doc__ = "Rows of one segment taken together."
    return joined


def _limit(dtype: Any, largest: bool) -> Any:
    info: Any = np.finfo(dtype.numpy) if dtype.is_float else np.iinfo(dtype.numpy)
    return float(info.max if largest else info.min) if dtype.is_float else int(info.max if largest else info.min)


unsorted_segment_max = _segments("max", lambda dtype: _limit(dtype, False))
unsorted_segment_min = _segments("min", lambda dtype: _limit(dtype, True))
unsorted_segment_prod = _segments("mul", lambda _: 1)


def sorted_segments_values(function: Callable[..., Any]) -> Callable[[Tensor, Tensor], Tensor]:
    """Rows of segments in order; how many there are the last number says."""

    def segments(input_x: Tensor, segment_ids: Tensor) -> Tensor:
        count = int(concrete(segment_ids, "segments")[-1]) + 1
        found = function(input_x, segment_ids, count)
        empty = np.bincount(concrete(segment_ids), minlength=count) == 0
        if not empty.any() or function is unsorted_segment_prod:
            return found
        mask = Tensor(empty.reshape(-1, *(1,) * (found.ndim - 1)))
        return selection.where(mask, cast(Tensor(0), found.dtype), found)

    segments.__doc__ = "Rows of one segment taken together; segments stand in order."
    return segments


def segment_mean_values(x: Tensor, ids: Tensor, count: int) -> Tensor:
    total = scattering.unsorted_segment_sum(x, ids, count)
    counts = scattering.unsorted_segment_sum(creation.ones_like(ids).astype(x.dtype), ids, count)
    return arithmetic.div(total, arithmetic.maximum(counts, 1).reshape((-1, *(1,) * (x.ndim - 1))))


def tensor_scatter_div(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """X divided by the updates where tuples in the last axis of the indices point."""
    return scattering.scatter_nd_joined(input_x, indices, updates, "div", "tensor_scatter_div")


def masked_scatter(x: Tensor, mask: Tensor, updates: Tensor) -> Tensor:
    """X, where the mask holds with the updates one after the other."""
    where = shapes.broadcast_to(cast(mask, dtypes.bool_), x.shape)
    order = arithmetic.sub(reductions.cumsum(cast(shapes.ravel(where), dtypes.int64), 0), 1)
    taken = apply("gather", shapes.ravel(updates), activation.clamp(order, 0, updates.size - 1), axis=0)
    return selection.where(where, shapes.reshape(taken, x.shape), x)


def _rows_changed(join: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def changed(x: Tensor, v: Tensor, indices: Any) -> Tensor:
        made = methods.copied(x)
        rows = [indices] if isinstance(indices, int) else list(indices)
        made[rows] = join(made[rows], v)
        return made

    return changed


def inplace_add(x: Tensor, v: Tensor, indices: Any) -> Tensor:
    """X with rows added to."""
    return _rows_changed(arithmetic.add)(x, v, indices)


def inplace_sub(x: Tensor, v: Tensor, indices: Any) -> Tensor:
    """X with rows subtracted from."""
    return _rows_changed(arithmetic.sub)(x, v, indices)


def inplace_update(x: Tensor, v: Tensor, indices: Any) -> Tensor:
    """X with rows replaced."""
    return _rows_changed(lambda _, new: new)(x, v, indices)


def fill_diagonal_values(input_x: Tensor, *, fill_value: float, wrap: bool = False) -> Tensor:
    """A tensor with another main diagonal."""
    mask = np.zeros(input_x.shape, bool)
    np.fill_diagonal(mask, True, wrap)
    return selection.masked_fill(input_x, Tensor.of(mask), fill_value)


# Sequences of numbers.


def _window(of_type: Any, values: Callable[[Any], Any]) -> Any:
    def function(window_length: int, periodic: bool = True, *, dtype: Any = of_type) -> Tensor:
        n = int(window_length)
        if n < 0:
            raise ApiValueError("MSC0203", f"a window has {n} elements; it must be 0 or more")
        if n <= 1:
            return Tensor(np.ones(n), as_dtype(dtype))
        return Tensor(values(np.arange(n) / (n if periodic else n - 1)), as_dtype(dtype))

    return function


hann_window = _window(dtypes.float64, lambda t: 0.5 - 0.5 * np.cos(2 * np.pi * t))
bartlett_window = _window(dtypes.float32, lambda t: 1 - np.abs(2 * t - 1))
blackman_window = _window(dtypes.float32, lambda t: 0.42 - 0.5 * np.cos(2 * np.pi * t) + 0.08 * np.cos(4 * np.pi * t))


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None
) -> Tensor:
    """Alpha - beta cos(2 pi t)."""
    values = _window(dtypes.float32, lambda t: alpha - beta * np.cos(2 * np.pi * t))
    return values(window_length, periodic, dtype=dtypes.float32 if dtype is None else dtype)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None) -> Tensor:
    """I0(beta sqrt(1 - (2 t - 1)^2)) / I0(beta)."""
    values = _window(dtypes.float64, lambda t: np.i0(beta * np.sqrt(1 - (2 * t - 1) ** 2)) / np.i0(beta))
    return values(window_length, periodic, dtype=dtypes.float64 if dtype is None else dtype)


def fftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Tensor:
    """The frequencies of a discrete Fourier transform."""
    return Tensor(np.fft.fftfreq(n, d), as_dtype(dtype or dtypes.float32))


def rfftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Tensor:
    """The frequencies of a real discrete Fourier transform."""
    return Tensor(np.fft.rfftfreq(n, d), as_dtype(dtype or dtypes.float32))


def _shifted(x: Tensor, dim: Any, back: bool) -> Tensor:
    axes = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    return joining.roll(x, tuple(-(x.shape[a] // 2) if back else x.shape[a] // 2 for a in axes), axes)


def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Axes turned so that frequency 0 stands in the middle."""
    return _shifted(input, dim, False)


def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """What undoes `fftshift`."""
    return _shifted(input, dim, True)


def fills(x: Tensor, value: Any) -> Tensor:
    """A number everywhere in the shape of a tensor."""
    return cast(creation.full(x.shape, value), x.dtype)


for _function in (
    addbmm,
    addr,
    bincount,
    cov,
    histc,
    logcumsumexp,
    masked_scatter,
    msort,
    nanmean,
    nanmedian,
    nanquantile,
    quantile,
    renorm,
    unique_consecutive,
    vecdot,
    fills,
    inplace_update,
):
    tensor_method(_function.__name__)(_function)
