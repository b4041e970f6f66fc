"""NumPy's less common functions. Those whose results depend on elements run outside of compiled graphs."""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msc import ops
from msc.frontend import dtypes
from msc.frontend.dtypes import DType, as_dtype
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor, concrete
from msc.numpy.creation import Data, asarray
from msc.numpy.functions import convolve
from msc.ops.operands import as_float, cast, promoted
from msc.ops.outside import on_arrays

__all__ = [
    "apply_over_axes", "argwhere", "array_equiv", "array_split", "array_str", "asfarray", "atleast_3d", "bartlett",
    "bitwise_not", "blackman", "choose", "copysign", "corrcoef", "correlate", "cov", "diag_indices", "diagflat",
    "digitize", "ediff1d", "fabs", "float_power", "gcd", "geomspace", "gradient", "hamming", "hanning", "histogram2d",
    "histogram_bin_edges", "histogramdd", "in1d", "indices", "interp", "intersect1d", "invert", "isin", "isneginf",
    "isposinf", "isscalar", "ix_", "kron", "lcm", "logaddexp2", "mgrid", "multi_dot", "nancumsum", "nanmax",
    "nanmean", "nanmin", "nanstd", "nanvar", "ogrid", "piecewise", "polyadd", "polyder", "polyint", "polymul",
    "polysub", "polyval", "positive", "promote_types", "ravel_multi_index", "result_type", "rollaxis", "searchsorted",
    "setdiff1d", "signbit", "sometrue", "tri", "tril_indices", "tril_indices_from", "triu_indices",
    "triu_indices_from", "unravel_index", "unwrap", "vander",
]  # fmt: skip


def _typed(x: Tensor, dtype: Any) -> Tensor:
    return x if dtype is None else cast(x, as_dtype(dtype))


_NARROW: dict[Any, Any] = {np.dtype(np.int64): np.int32, np.dtype(np.float64): np.float32}


def _by_numpy(name: str) -> Callable[..., Any]:
    """NumPy's own function on the elements; 64 bits become 32, as in MindSpore."""
    function: Any = getattr(np, name)

    def narrow(found: Any) -> Any:
        if isinstance(found, tuple | list):
            return tuple(map(narrow, found))
        array = np.asarray(found)
        return array.astype(_NARROW.get(array.dtype, array.dtype))

    def called(*args: Any, **keywords: Any) -> Any:
        named = {n: v for n, v in keywords.items() if n != "dtype"}
        result = on_arrays(name, lambda given, other: narrow(function(*given, **other)), args, named)
        return _typed(result, keywords.get("dtype")) if isinstance(result, Tensor) else result

    called.__name__ = called.__qualname__ = name
    called.__doc__ = f"NumPy's {name} on the elements, outside of compiled graphs; floats have no gradient."
    return called


bartlett, blackman, hamming, hanning = map(_by_numpy, ("bartlett", "blackman", "hamming", "hanning"))
digitize, intersect1d, setdiff1d = map(_by_numpy, ("digitize", "intersect1d", "setdiff1d"))
histogram2d, histogramdd, histogram_bin_edges = map(_by_numpy, ("histogram2d", "histogramdd", "histogram_bin_edges"))
geomspace = _by_numpy("geomspace")
diag_indices, ix_ = map(_by_numpy, ("diag_indices", "ix_"))
tril_indices_from, triu_indices_from = map(_by_numpy, ("tril_indices_from", "triu_indices_from"))
ravel_multi_index = _by_numpy("ravel_multi_index")


def indices(dimensions: Any, dtype: Any = dtypes.int32, sparse: bool = False) -> tuple[Tensor, ...]:
    """The places of a grid, a tensor for each axis."""
    return tuple(Tensor(part, as_dtype(dtype)) for part in np.indices(dimensions, sparse=sparse))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """The places of a lower triangle."""
    rows, columns = np.tril_indices(n, k, m)
    return Tensor(rows.astype(np.int32)), Tensor(columns.astype(np.int32))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """The places of an upper triangle."""
    rows, columns = np.triu_indices(n, k, m)
    return Tensor(rows.astype(np.int32)), Tensor(columns.astype(np.int32))


class _Grid:
    """`mgrid[0:2, 0:3]`, or sparse as `ogrid`."""

    def __init__(self, grid: Any, is_sparse: bool) -> None:
        self._grid, self._is_sparse = grid, is_sparse

    def __getitem__(self, index: Any) -> Any:
        found = self._grid[index]
        if isinstance(found, np.ndarray):
            return Tensor(found.astype(_NARROW.get(found.dtype, found.dtype)))
        return tuple(Tensor(part.astype(_NARROW.get(part.dtype, part.dtype))) for part in found)


mgrid, ogrid = _Grid(np.mgrid, False), _Grid(np.ogrid, True)


def apply_over_axes(func: Callable[..., Any], a: Data, axes: Any) -> Tensor:
    """A function of a tensor and an axis, for one axis after the other."""
    x = asarray(a)
    for axis in (axes,) if isinstance(axes, int) else axes:
        found = func(x, axis)
        x = found if found.ndim == x.ndim else ops.expand_dims(found, axis)
    return x


def argwhere(a: Data) -> Tensor:
    """The places of the elements that are not 0, a row each."""
    found: Any = ops.argwhere(asarray(a))
    return found


def array_equiv(a1: Data, a2: Data) -> Tensor:
    """Whether tensors are equal once they are broadcast."""
    return Tensor(bool(np.array_equiv(concrete(asarray(a1)), concrete(asarray(a2)))))


def array_split(x: Data, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Parts along an axis, of sizes that differ by one at most."""
    return list(ops.tensor_split(asarray(x), indices_or_sections, axis))


def array_str(a: Data) -> str:
    """The elements as text."""
    return str(concrete(asarray(a)))


def asfarray(a: Data, dtype: Any = dtypes.float32) -> Tensor:
    """A tensor of floats."""
    return cast(asarray(a), as_dtype(dtype))


def atleast_3d(*arys: Data) -> Any:
    """Tensors of three axes or more."""
    made = [ops.atleast_3d(asarray(a)) for a in arys]
    return made[0] if len(made) == 1 else made


def bitwise_not(x: Data, dtype: Any = None) -> Tensor:
    """All bits exchanged."""
    return _typed(ops.bitwise_not(asarray(x)), dtype)


invert = bitwise_not


def choose(a: Data, choices: Any, mode: str = "clip") -> Tensor:
    """For each element the number of the tensor from which the result is taken."""
    index = asarray(a)
    tensors = [asarray(c) for c in (list(choices) if not isinstance(choices, Tensor) else ops.unbind(choices, 0))]
    count = len(tensors)
    index = ops.floor_mod(index, count) if mode == "wrap" else ops.clamp(index, 0, count - 1)
    result = tensors[0]
    for number, tensor in enumerate(tensors[1:], start=1):
        result = ops.where(ops.equal(index, number), tensor, result)
    return result


def copysign(x1: Data, x2: Data, dtype: Any = None) -> Tensor:
    """The size of one with the sign of the other."""
    return _typed(ops.copysign(asarray(x1), asarray(x2)), dtype)


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
    return _typed(ops.squeeze(found) if found.size == 1 else found, dtype)


def _rows(value: Data, rowvar: bool) -> Tensor:
    x = as_float(asarray(value))
    x = ops.expand_dims(x, 0) if x.ndim < 2 else x
    return x if rowvar or x.shape[0] == 1 else ops.swapaxes(x, 0, 1)


def corrcoef(x: Data, y: Data = None, rowvar: bool = True, dtype: Any = None) -> Tensor:
    """Pearson's coefficients of rows."""
    found = cov(x, y, rowvar)
    if found.ndim == 0:
        return _typed(ops.div(found, found), dtype)
    size = ops.sqrt(ops.diagonal(found))
    return _typed(ops.clamp(ops.div(found, ops.outer(size, size)), -1.0, 1.0), dtype)


def diagflat(v: Data, k: int = 0) -> Tensor:
    """All elements as the diagonal of a matrix."""
    return ops.diagflat(asarray(v), k)


def ediff1d(ary: Data, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """The differences of neighbours of all elements, with values in front and behind."""
    found = ops.diff(ops.ravel(asarray(ary)))
    parts = [None if part is None else ops.ravel(asarray(part)) for part in (to_begin, to_end)]
    return ops.concat([p for p in (parts[0], found, parts[1]) if p is not None], 0)


def fabs(x: Data, dtype: Any = None) -> Tensor:
    """The size of each element."""
    return _typed(ops.abs(as_float(asarray(x))), dtype)


def float_power(x1: Data, x2: Data, dtype: Any = None) -> Tensor:
    """The power, of floats."""
    return _typed(ops.pow(as_float(asarray(x1)), as_float(asarray(x2))), dtype)


def gcd(x1: Data, x2: Data, dtype: Any = None) -> Tensor:
    """The greatest common divisor."""
    return _typed(ops.gcd(asarray(x1), asarray(x2)), dtype)


def lcm(x1: Data, x2: Data, dtype: Any = None) -> Tensor:
    """The least common multiple."""
    return _typed(ops.lcm(asarray(x1), asarray(x2)), dtype)


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


def isneginf(x: Data) -> Tensor:
    """Whether elements are minus infinity."""
    return ops.isneginf(asarray(x))


def isposinf(x: Data) -> Tensor:
    """Whether elements are infinity."""
    return ops.isposinf(asarray(x))


def isscalar(element: Any) -> bool:
    """Whether a value is a number or a string."""
    return bool(np.isscalar(element))


def kron(a: Data, b: Data) -> Tensor:
    """All products of an element of one with the other tensor."""
    return ops.kron(asarray(a), asarray(b))


def logaddexp2(x1: Data, x2: Data, dtype: Any = None) -> Tensor:
    """log2(2^a + 2^b)."""
    return _typed(ops.logaddexp2(asarray(x1), asarray(x2)), dtype)


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
    return _typed(ops.cumsum(ops.ravel(x) if axis is None else x, axis or 0), dtype)


def nanmax(a: Data, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The largest elements that are no NaN."""
    return _typed(ops.amax(_without_nan(asarray(a), float("-inf")), axis, keepdims), dtype)


def nanmin(a: Data, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest elements that are no NaN."""
    return _typed(ops.amin(_without_nan(asarray(a), float("inf")), axis, keepdims), dtype)


def nanmean(a: Data, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The mean of the elements that are no NaN."""
    return ops.nanmean(as_float(asarray(a)), axis, keepdims, dtype=dtype)


def nanvar(a: Data, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """The variance of the elements that are no NaN."""
    x = as_float(asarray(a))
    squares = ops.square(ops.sub(x, ops.nanmean(x, axis, True)))
    counts = ops.sum(ops.cast(ops.logical_not(ops.isnan(x)), x.dtype), axis, keepdims)
    return _typed(ops.div(ops.nansum(squares, axis, keepdims), ops.sub(counts, float(ddof))), dtype)


def nanstd(a: Data, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """The deviation of the elements that are no NaN."""
    return ops.sqrt(nanvar(a, axis, dtype, ddof, keepdims))


def piecewise(x: Data, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tensor:
    """Functions or numbers where conditions hold, the last one that does; one more is for elsewhere."""
    value = asarray(x)
    conditions = [asarray(c) for c in (condlist if isinstance(condlist, list | tuple) else [condlist])]
    chosen = list(funclist)
    rest = chosen.pop() if len(chosen) > len(conditions) else 0

    def given(function: Any) -> Any:
        return function(value, *args, **kw) if callable(function) else ops.full_like(value, function)

    result = given(rest)
    for condition, function in zip(conditions, chosen, strict=True):
        result = ops.where(condition, given(function), result)
    return result


def _together(a1: Data, a2: Data) -> list[Tensor]:
    """The coefficients of two polynomials, of which the shorter one gets zeros in front."""
    found = [_coefficients(a) for a in (a1, a2)]
    most = max(x.shape[0] for x in found)
    return [ops.pad(x, (most - x.shape[0], 0)) for x in found]


def _coefficients(p: Data) -> Tensor:
    x = ops.ravel(asarray(p))
    return cast(x, dtypes.float32) if x.dtype is dtypes.float64 else x


def polyadd(a1: Data, a2: Data) -> Tensor:
    """The sum of two polynomials."""
    return ops.add(*_together(a1, a2))


def polysub(a1: Data, a2: Data) -> Tensor:
    """The difference of two polynomials."""
    return ops.sub(*_together(a1, a2))


def polymul(a1: Data, a2: Data) -> Tensor:
    """The product of two polynomials."""
    a, b = map(_coefficients, (a1, a2))
    return cast(convolve(a, b), promoted(a.dtype, b.dtype))


def polyder(p: Data, m: int = 1) -> Tensor:
    """The m-th derivative of a polynomial."""
    found = _coefficients(p)
    for _ in range(m):
        count = found.shape[0] - 1
        found = ops.mul(ops.narrow(found, 0, 0, count), Tensor(np.arange(count, 0, -1), found.dtype))
    return found


def polyint(p: Data, m: int = 1, k: Any = None) -> Tensor:
    """The m-th integral of a polynomial, with constants `k`."""
    found = as_float(_coefficients(p))
    given = [0] * m if k is None else list(k) if isinstance(k, list | tuple) else [k] * m
    for number in given:
        count = found.shape[0]
        found = ops.div(found, Tensor(np.arange(count, 0, -1), found.dtype))
        found = ops.concat([found, ops.reshape(cast(asarray(number), found.dtype), (1,))], 0)
    return found


def correlate(a: Data, v: Data, mode: str = "valid") -> Tensor:
    """The sums of products of two vectors at all shifts."""
    x, y = asarray(a), asarray(v)
    if y.shape[0] > x.shape[0]:
        return ops.flip(correlate(y, x, mode), 0)
    found = convolve(x, ops.flip(y, 0), mode)
    dtype = promoted(x.dtype, y.dtype)
    return cast(found, found.dtype if dtype is dtypes.float64 else dtype)


def unwrap(p: Data, discont: float = 3.141592653589793, axis: int = -1) -> Tensor:
    """Angles with multiples of a turn added, so that neighbours differ by less than `discont`."""
    x = as_float(asarray(p))
    turns = on_arrays("unwrap", lambda a: np.unwrap(a, discont, axis).astype(a.dtype) - a, ops.stop_gradient(x))
    found = ops.add(x, turns)
    return cast(found, dtypes.float32) if found.dtype is dtypes.float64 else found


def polyval(p: Data, x: Data) -> Tensor:
    """A polynomial at places, the highest power first."""
    value, result = asarray(x), None
    for c in ops.unbind(asarray(p), 0):
        result = ops.add(ops.zeros_like(value), c) if result is None else ops.add(ops.mul(result, value), c)
    return ops.zeros_like(value) if result is None else result


def positive(a: Data, dtype: Any = None) -> Tensor:
    """The tensor itself."""
    return _typed(asarray(a), dtype)


def promote_types(type1: Any, type2: Any) -> DType:
    """The element type that two become together."""
    return promoted(as_dtype(type1), as_dtype(type2))


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The element type that tensors, numbers and types become together."""
    found = [
        v.dtype if isinstance(v, Tensor) else as_dtype(v) if isinstance(v, DType | str | type) else asarray(v).dtype
        for v in arrays_and_dtypes
    ]
    result = found[0]
    for other in found[1:]:
        result = promoted(result, other)
    return result


def rollaxis(x: Data, axis: int, start: int = 0) -> Tensor:
    """An axis put in front of another."""
    value = asarray(x)
    a, s = axis % value.ndim, start + value.ndim if start < 0 else start
    return ops.movedim(value, a, s - 1 if a < s else s)


def searchsorted(a: Data, v: Data, side: str = "left", sorter: Data = None) -> Tensor:
    """Where elements belong in a vector in order (Int32)."""
    line = asarray(a) if sorter is None else ops.take(asarray(a), asarray(sorter))
    return cast(ops.searchsorted(line, asarray(v), right=side == "right"), dtypes.int32)


def signbit(x: Data, dtype: Any = None) -> Tensor:
    """Whether elements are below 0, or minus 0."""
    return _typed(ops.signbit(asarray(x)), dtype)


def sometrue(a: Data, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether any element is true."""
    return ops.any(asarray(a), axis, keepdims)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = dtypes.float32) -> Tensor:
    """Ones at and below a diagonal."""
    return Tensor(np.tri(N, M, k), as_dtype(dtype))


def unravel_index(indices: Data, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """The coordinates of flat places."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    rest, found = asarray(indices), list[Tensor]()
    for size in reversed(sizes) if order == "C" else sizes:
        found.append(ops.floor_mod(rest, size))
        rest = ops.floor_divide(rest, size)
    return tuple(reversed(found) if order == "C" else found)


def vander(x: Data, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of a vector's elements, a row each."""
    found = ops.vander(asarray(x), N)
    return ops.flip(found, 1) if increasing else found
