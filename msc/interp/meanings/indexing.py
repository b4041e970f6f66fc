"""Operations whose elements are chosen by indices, and tensors made of indices."""

from __future__ import annotations

from typing import cast

import numpy as np

from msc.dialects.arrays import Array, dense_array, tensor_dtype
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.structure import ConstantOp
from msc.interp.registry import meaning
from msc.ir.locations import source_location
from msc.support.diagnostics import Diagnostic, MscError


@meaning("constant")
def _constant(op: MsOp) -> Array:
    return dense_array(cast(ConstantOp, op).value)


@meaning("gather")
def _gather(op: MsOp, x: Array, indices: Array) -> Array:
    """Slices of `x` along `axis`; the indices' shape takes the place of that axis. Negative ones count from the end."""
    axis = op.int_("axis")
    return np.take(x, _checked(op, indices, x.shape[axis]), axis)


@meaning("gather_elements")
def _gather_elements(op: MsOp, x: Array, indices: Array) -> Array:
    """y[i, j, ...] = x[i, indices[i, j, ...], ...] along `axis`; the indices may be smaller than x elsewhere."""
    axis = op.int_("axis") % x.ndim
    places: list[Array] = [*np.indices(indices.shape, sparse=True)]
    places[axis] = _checked(op, indices, x.shape[axis])
    return x[tuple(places)]


@meaning("extract_slice")
def _entry(op: MsOp, x: Array, index: Array) -> Array:
    return x[int(_checked(op, index, len(x)))]


@meaning("insert_slice")
def _insert_slice(op: MsOp, x: Array, index: Array, value: Array) -> Array:
    result = x.copy()
    result[int(_checked(op, index, len(x)))] = value
    return result


@meaning("scatter_add")
def _scatter_add(op: MsOp, x: Array, indices: Array, updates: Array) -> Array:
    """X with each row of `updates` added to the entry that its index chooses."""
    result = x.copy()
    np.add.at(result, _checked(op, indices, len(x)), updates)
    return result


def _checked(op: MsOp, indices: Array, size: int) -> Array:
    """Indices counted from the front. Raises MSC0610 for one outside the dimension."""
    wide = indices.astype(np.int64)
    outside = (wide < -size) | (wide >= size)
    if outside.any():
        place = [int(i) for i in np.argwhere(outside)[0]]
        at = f" at {place}" if place else ""
        message = f"{op.name}: index {wide[tuple(place)]}{at} is outside a dimension of size {size}"
        raise MscError(Diagnostic("MSC0610", message, source_location(op)))
    return np.where(wide < 0, wide + size, wide)


@meaning("one_hot")
def _one_hot(op: MsOp, indices: Array) -> Array:
    """`on_value` where the position along the new axis is the index, `off_value` elsewhere, as for indices outside."""
    axis, depth = op.int_("axis"), op.int_("depth")
    places = np.expand_dims(indices.astype(np.int64), axis)
    shape = [1] * places.ndim
    shape[axis] = depth
    dtype = tensor_dtype(op.result_tensor())
    on, off = (np.asarray(op.plain(name)).astype(dtype) for name in ("on_value", "off_value"))
    return np.where(places == np.arange(depth).reshape(shape), on, off)


@meaning("iota")
def _iota(op: MsOp) -> Array:
    """Every element is its own index along `axis`."""
    shape = op.ints("shape")
    if 0 in shape:
        return np.zeros(shape, np.int64)  # without the other axes, which may be of any length
    axis = op.int_("axis") % max(len(shape), 1)
    line = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return np.broadcast_to(line, shape)


@meaning("tril")
def _tril(op: MsOp, x: Array) -> Array:
    return np.tril(x, op.int_("diagonal"))


@meaning("triu")
def _triu(op: MsOp, x: Array) -> Array:
    return np.triu(x, op.int_("diagonal"))


@meaning("resize_nearest")
def _resize_nearest(op: MsOp, x: Array) -> Array:
    """Nearest neighbour by floor(i * size / new size) in the last dimensions (ONNX: asymmetric, floor)."""
    sizes = op.ints("size")
    for axis, new in enumerate(sizes, x.ndim - len(sizes)):
        x = np.take(x, np.arange(new) * x.shape[axis] // new, axis)
    return x


@meaning("argsort")
def _argsort(op: MsOp, x: Array) -> Array:
    """Stable; NaN is as infinity. From the largest on is from the end of the ascending order of x in reverse."""
    axis, count = op.int_("axis") % x.ndim, op.int_("count")
    keys = np.where(np.isnan(x), np.inf, x) if x.dtype.kind == "f" else x
    if op.flag("descending"):
        ascending = np.argsort(np.flip(keys, axis), axis, kind="stable")
        order = x.shape[axis] - 1 - np.flip(ascending, axis)
    else:
        order = np.argsort(keys, axis, kind="stable")
    return order if count < 0 else np.take(order, np.arange(count), axis)
