"""Elements chosen by conditions, by indices, or by their order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.tensor import Number, Tensor, concrete, tensor_method
from msc.ops.indexing import flat_places
from msc.ops.joining import narrow
from msc.ops.operands import Operand, flexible, is_number, only_tensor, pair
from msc.ops.operands import cast as cast_to
from msc.ops.shapes import axis_of, ravel, reshape

__all__ = [
    "argwhere", "gather", "gather_d", "gather_elements", "gather_nd", "index_select", "masked_fill",
    "masked_select", "nonzero", "select", "take", "unique", "where",
]  # fmt: skip


def _condition(value: Any, function: str) -> Tensor:
    return cast_to(only_tensor(value, function, "condition"), dtypes.bool_)


def where(condition: Tensor, input: Operand, other: Operand) -> Tensor:
    """Input where the condition holds, other elsewhere; all three broadcast."""
    a, b = pair("where", input, other)
    if is_number(input) and isinstance(other, Tensor) and not other.dtype.is_float and isinstance(input, float):
        a, b = cast_to(a, dtypes.float32), cast_to(b, dtypes.float32)
    return apply("select", _condition(condition, "where"), a, b)


def select(condition: Tensor, input: Operand, other: Operand) -> Tensor:
    """Input where the condition holds, other elsewhere."""
    return where(condition, input, other)


@tensor_method("where")
def _where(self: Tensor, condition: Tensor, y: Operand) -> Tensor:
    return where(condition, self, y)


@tensor_method("masked_fill")
def masked_fill(input_x: Tensor, mask: Tensor, value: Number | Tensor) -> Tensor:
    """`value` where the mask holds, the elements of the tensor elsewhere; both broadcast."""
    x = only_tensor(input_x, "masked_fill")
    number = cast_to(value, x.dtype) if isinstance(value, Tensor) else Tensor(value, x.dtype)
    return apply("select", _condition(mask, "masked_fill"), number, x)


@tensor_method("masked_select")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask holds, along one axis. How many is known only when it runs."""
    shape = np.broadcast_shapes(input.shape, mask.shape)
    where = np.broadcast_to(concrete(mask, "masked_select"), shape).astype(bool)
    x = input if input.shape == shape else apply("broadcast_to", input, shape=shape)
    return apply("gather", ravel(x), Tensor.of(np.flatnonzero(where)), axis=0)


@tensor_method("nonzero")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The places of the elements that are not 0: a row an element, or a tensor an axis. Known only when it runs."""
    places = np.nonzero(np.atleast_1d(concrete(input, "nonzero")))
    if as_tuple:
        return tuple(map(Tensor.of, places))
    return Tensor.of(np.stack(places, axis=1))


argwhere = nonzero


def unique(input: Tensor) -> tuple[Tensor, Tensor]:
    """The elements that differ, in the order in which they first occur, and where those of the input stand among them.

    The places are Int64 for an input of that type, else Int32.
    """
    x = only_tensor(input, "unique")
    array = concrete(x, "unique")
    _, first, inverse = np.unique(array, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    places = np.argsort(order, kind="stable")[inverse].reshape(array.shape)
    found = apply("gather", ravel(x), Tensor.of(first[order]), axis=0)
    return found, Tensor.of(places.astype(np.int64 if array.dtype == np.int64 else np.int32))


@tensor_method("unique")
def _method_unique(
    self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Tensor | tuple[Tensor, ...]:
    """The elements that differ, in order, or as they first occur unless `sorted`; what is asked for follows.

    `return_inverse` gives where the elements stand among them, `return_counts` how many there are of each (Int64).
    """
    values, places = unique(self)
    order = np.argsort(concrete(values), kind="stable") if sorted else np.arange(values.size)
    inverse = np.argsort(order, kind="stable")[concrete(places)]
    found = [apply("gather", values, Tensor.of(order), axis=0)]
    if return_inverse:
        found.append(Tensor.of(inverse.astype(np.int64)))
    if return_counts:
        found.append(Tensor.of(np.bincount(inverse.reshape(-1), minlength=values.size).astype(np.int64)))
    return found[0] if len(found) == 1 else tuple(found)


# By indices.


@flexible
def gather(input_params: Tensor, input_indices: Tensor, axis: int, batch_dims: int = 0) -> Tensor:
    """Slices along an axis, one for each index; the first `batch_dims` axes of both go together."""
    x, indices = only_tensor(input_params, "gather"), integer_indices(input_indices, "gather")
    if batch_dims == 0:
        return apply("gather", x, indices, axis=axis_of(x, axis, "gather"))
    a, batch = axis_of(x, axis, "gather"), batch_dims % max(x.ndim, 1)
    if x.shape[:batch] != indices.shape[:batch] or a < batch:
        raise ApiValueError(
            "MSC0201", f"gather: {x.shape} and indices {indices.shape} differ in the first {batch} axes"
        )
    parts = [
        apply("gather", part, places, axis=a - batch)
        for part, places in zip(_entries(x, batch), _entries(indices, batch), strict=True)
    ]
    shape = (*x.shape[:a], *indices.shape[batch:], *x.shape[a + 1 :])
    return reshape(apply("stack", *parts, axis=0), shape)


def _entries(x: Tensor, batch: int) -> list[Tensor]:
    flat = reshape(x, (math.prod(x.shape[:batch]), *x.shape[batch:]))
    return [apply("squeeze", narrow(flat, 0, i, 1), axis=(0,)) for i in range(flat.shape[0])]


def integer_indices(indices: Any, function: str) -> Tensor:
    """Indices of a signed integer type. Raises MSC0202."""
    x = only_tensor(indices, function, "indices")
    if not x.dtype.is_integer:
        raise ApiTypeError("MSC0202", f"{function}: indices are integers, not {x.dtype}")
    return x if x.dtype.is_signed else cast_to(x, dtypes.int64)


@tensor_method("gather")
def _gather_method(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
    """MindSpore's `gather(input_indices, axis)`, or `gather(dim, index)` of elements."""
    if "dim" in keywords or "index" in keywords or (args and isinstance(args[0], int)):
        names = dict(zip(("dim", "index"), args, strict=False)) | keywords
        return gather_elements(self, names["dim"], names["index"])
    return gather(self, *args, **keywords)


@tensor_method("index_select")
@flexible
def index_select(input: Tensor, axis: int, index: Tensor) -> Tensor:
    """Slices along an axis, one for each index."""
    return gather(input, index, axis)


@tensor_method("take")
@flexible
def take(input: Tensor, indices: Tensor, axis: int | None = None) -> Tensor:
    """Slices along an axis, or elements of the flattened tensor, one for each index."""
    return gather(ravel(input), indices, 0) if axis is None else gather(input, indices, axis)


@tensor_method("gather_elements", "gather_d")
@flexible
def gather_elements(input: Tensor, axis: int, index: Tensor) -> Tensor:
    """y[i, j] = x[i, index[i, j]] for axis 1, and so on."""
    x = only_tensor(input, "gather_elements")
    return apply(
        "gather_elements", x, integer_indices(index, "gather_elements"), axis=axis_of(x, axis, "gather_elements")
    )


gather_d = gather_elements


@tensor_method("gather_nd")
def gather_nd(input_x: Tensor, indices: Tensor) -> Tensor:
    """The parts that tuples in the last axis of the indices point at."""
    x, index = only_tensor(input_x, "gather_nd"), integer_indices(indices, "gather_nd")
    depth = index.shape[-1]
    if depth > x.ndim:
        raise ApiValueError("MSC0201", f"gather_nd: index tuples of {depth} do not fit a tensor of shape {x.shape}")
    table = reshape(x, (math.prod(x.shape[:depth]), *x.shape[depth:]))
    return apply("gather", table, tuple_places(index, x.shape[:depth]), axis=0)


def tuple_places(index: Tensor, sizes: Sequence[int]) -> Tensor:
    """Where tuples in the last axis of `index` point in the flattened axes of `sizes`; Int64."""
    columns = [apply("squeeze", narrow(index, index.ndim - 1, i, 1), axis=(-1,)) for i in range(len(sizes))]
    return flat_places(columns, sizes)
