"""Writing rows of a table at computed places, one after the other, so that the last of several of one place wins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiIndexError, ApiValueError
from msc.frontend.tensor import Number, Tensor, concrete, tensor_method
from msc.ops.indexing import flat_places, in_graph, write_rows
from msc.ops.operands import cast as cast_to
from msc.ops.operands import flexible, only_tensor
from msc.ops.selection import integer_indices, masked_fill, tuple_places
from msc.ops.shapes import axis_of, ravel, reshape, swapaxes

__all__ = [
    "index_add", "index_fill", "scatter", "scatter_add", "scatter_nd", "tensor_scatter_add",
    "tensor_scatter_elements", "tensor_scatter_max", "tensor_scatter_min", "tensor_scatter_mul",
    "tensor_scatter_sub", "tensor_scatter_update", "unsorted_segment_sum",
]  # fmt: skip

_JOINS: dict[str, tuple[str | None, Any]] = {
    "none": (None, None),
    "update": (None, None),
    "add": ("add", np.add),
    "sub": ("sub", np.subtract),
    "mul": ("mul", np.multiply),
    "div": ("div", np.divide),
    "max": ("maximum", np.maximum),
    "min": ("minimum", np.minimum),
}


def scattered(x: Tensor, places: Tensor, updates: Tensor, reduce: str, function: str) -> Tensor:
    """Rows of `updates` put into or joined with those of the table x at places."""
    if reduce not in _JOINS:
        raise ApiValueError("MSC0203", f"{function}: reduction {reduce!r} is not one of {', '.join(_JOINS)}")
    operation, joined = _JOINS[reduce]
    if in_graph(x, places, updates):
        if operation == "add":
            return apply("scatter_add", x, places, updates)
        return write_rows(x, places, updates, operation)
    table, at = concrete(x).copy(), concrete(places)
    try:
        if joined is None:
            table[at] = concrete(updates)
        else:
            joined.at(table, at, concrete(updates))
    except IndexError as error:
        raise ApiIndexError("MSC0815", f"{function}: {error}") from None
    return Tensor.of(table)


@tensor_method("tensor_scatter_elements")
def tensor_scatter_elements(
    input_x: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "none"
) -> Tensor:
    """X with every update at its own place, with the index in that of the axis."""
    x, index = only_tensor(input_x, "tensor_scatter_elements"), integer_indices(indices, "tensor_scatter_elements")
    a = axis_of(x, axis, "tensor_scatter_elements")
    coordinates = [
        index if i == a else apply("iota", shape=index.shape, axis=i, dtype=dtypes.int64) for i in range(x.ndim)
    ]
    count = math.prod(index.shape)
    places = reshape(flat_places(coordinates, x.shape), (count,))
    new = reshape(cast_to(updates, x.dtype), (count,))
    return reshape(scattered(ravel(x), places, new, reduction, "tensor_scatter_elements"), x.shape)


@flexible
def scatter(input: Tensor, axis: int, index: Tensor, src: Tensor | Number) -> Tensor:
    """X with the elements of `src` at the places that the index gives along an axis."""
    values = src if isinstance(src, Tensor) else apply("broadcast_to", Tensor(src, input.dtype), shape=index.shape)
    return tensor_scatter_elements(input, index, values, axis)


@flexible
def scatter_add(input: Tensor, axis: int, index: Tensor, src: Tensor) -> Tensor:
    """X with the elements of `src` added at the places that the index gives along an axis."""
    return tensor_scatter_elements(input, index, src, axis, "add")


tensor_method("scatter")(scatter)
tensor_method("scatter_add")(scatter_add)


def scatter_nd_joined(x: Tensor, indices: Tensor, updates: Tensor, reduce: str, function: str) -> Tensor:
    """Parts of x that tuples point at, joined with the updates."""
    index = integer_indices(indices, function)
    depth = index.shape[-1]
    rows, count = math.prod(x.shape[:depth]), math.prod(index.shape[:-1])
    expected = (*index.shape[:-1], *x.shape[depth:])
    if depth > x.ndim or tuple(updates.shape) != expected:
        raise ApiValueError(
            "MSC0201", f"{function}: updates of shape {updates.shape}, but {x.shape} at {index.shape} takes {expected}"
        )
    places = reshape(tuple_places(index, x.shape[:depth]), (count,))
    table = reshape(x, (rows, *x.shape[depth:]))
    new = reshape(cast_to(updates, x.dtype), (count, *x.shape[depth:]))
    return reshape(scattered(table, places, new, reduce, function), x.shape)


def tensor_scatter_update(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """X with the updates where tuples in the last axis of the indices point."""
    return scatter_nd_joined(input_x, indices, updates, "update", "tensor_scatter_update")


@tensor_method("tensor_scatter_add")
def tensor_scatter_add(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """X with the updates added where tuples in the last axis of the indices point."""
    return scatter_nd_joined(input_x, indices, updates, "add", "tensor_scatter_add")


@tensor_method("tensor_scatter_sub")
def tensor_scatter_sub(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """X with the updates subtracted where tuples in the last axis of the indices point."""
    return scatter_nd_joined(input_x, indices, updates, "sub", "tensor_scatter_sub")


@tensor_method("tensor_scatter_mul")
def tensor_scatter_mul(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """X with the updates multiplied in where tuples in the last axis of the indices point."""
    return scatter_nd_joined(input_x, indices, updates, "mul", "tensor_scatter_mul")


@tensor_method("tensor_scatter_max")
def tensor_scatter_max(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """X with the larger of both where tuples in the last axis of the indices point."""
    return scatter_nd_joined(input_x, indices, updates, "max", "tensor_scatter_max")


@tensor_method("tensor_scatter_min")
def tensor_scatter_min(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """X with the smaller of both where tuples in the last axis of the indices point."""
    return scatter_nd_joined(input_x, indices, updates, "min", "tensor_scatter_min")


tensor_method("tensor_scatter_update")(tensor_scatter_update)


def scatter_nd(indices: Tensor, updates: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros of a shape with the updates added where tuples in the last axis of the indices point."""
    zeros = Tensor.of(np.zeros(tuple(shape), updates.dtype.numpy))
    return scatter_nd_joined(zeros, indices, updates, "add", "scatter_nd")


def unsorted_segment_sum(input_x: Tensor, segment_ids: Tensor, num_segments: int) -> Tensor:
    """The sums of the parts that have one segment number."""
    rank = segment_ids.ndim
    zeros = Tensor.of(np.zeros((num_segments, *input_x.shape[rank:]), input_x.dtype.numpy))
    count = math.prod(segment_ids.shape)
    places, rows = reshape(segment_ids, (count,)), reshape(input_x, (count, *input_x.shape[rank:]))
    return scattered(zeros, places, rows, "add", "unsorted_segment_sum")


def index_add(x: Tensor, indices: Tensor, y: Tensor, axis: int) -> Tensor:
    """X with the slices of y added to those that the indices choose along an axis."""
    a = axis_of(x, axis, "index_add")
    return swapaxes(scattered(swapaxes(x, 0, a), indices, swapaxes(y, 0, a), "add", "index_add"), 0, a)


@tensor_method("index_fill")
@flexible
def index_fill(x: Tensor, axis: int, index: Tensor, value: Number | Tensor) -> Tensor:
    """X with a number in the slices that the indices choose along an axis."""
    a = axis_of(x, axis, "index_fill")
    chosen = apply("one_hot", reshape(index, (-1,)), depth=x.shape[a], axis=-1, dtype=dtypes.bool_)
    line = apply("reduce_any", chosen, axis=(0,), keep_dims=False)
    return masked_fill(x, reshape(line, tuple(-1 if i == a else 1 for i in range(x.ndim))), value)
