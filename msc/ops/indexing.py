"""`x[...]` and `x[...] = v`: NumPy's rules, with tensors among the indices.

On concrete tensors NumPy itself indexes. Of a captured graph's tensors the same is composed: slices first, then the
tensors among the indices as one gather along the axes that they count, flattened into one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from msc.frontend import dtypes
from msc.frontend.arrays import is_array
from msc.frontend.capture import INSTALLED, Symbol
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiIndexError, ApiTypeError, ApiValueError, NeedsValue
from msc.frontend.expectations import expect_index
from msc.frontend.parameter import Parameter
from msc.frontend.tensor import Tensor, apart, concrete, tensor_method
from msc.ops.arithmetic import add, mul
from msc.ops.comparison import less
from msc.ops.operands import cast as cast_to
from msc.ops.operands import is_data
from msc.support.arrays import Array
from msc.support.wording import a

__all__ = ["getitem", "setitem"]

_LARGE = 2**31 - 1


@tensor_method("__getitem__")
def getitem(self: Tensor, index: Any) -> Tensor:
    """The elements at an index: integers, slices, None, ..., lists, and tensors of integers or booleans.

    Whatever the index, it is a tensor of its own: an index that takes everything makes a copy, too.
    """
    parts = _parts(index)
    if in_graph(self, *parts):
        chosen = _Selection(self, parts).read()
        return self.copy() if chosen is self else chosen
    array = cast(Array, self.content)
    chosen = _on_array(array, _plain_index(index))
    result = np.asarray(chosen)
    return Tensor.of(result if result.base is None else apart(result, array))


@tensor_method("__setitem__")
def setitem(self: Tensor, index: Any, value: Any) -> None:
    """Give the tensor a value that has other elements at an index: all names of the tensor see it, no array does."""
    new = value if isinstance(value, Tensor) else _data(value, self)
    parts = _parts(index)
    if in_graph(self, new, *parts):
        self.replace(_Selection(self, parts).written(cast_to(new, self.dtype)).content)
        return
    array = cast(Array, self.content).copy()
    try:
        array[_plain_index(index)] = cast_to(new, self.dtype).content
    except IndexError as error:
        raise ApiIndexError("MSC0815", f"{error} (the tensor has shape {self.shape})") from None
    except ValueError as error:
        raise ApiValueError("MSC0201", f"item assignment to a tensor of shape {self.shape}: {error}") from None
    self.replace(array)


def _parts(index: Any) -> tuple[Any, ...]:
    return cast(tuple[Any, ...], index) if isinstance(index, tuple) else (index,)


def in_graph(*values: Any) -> bool:
    """Whether a graph is captured that one of the tensors belongs to."""
    return any(
        isinstance(v, Tensor) and (isinstance(v.content, Symbol) or (isinstance(v, Parameter) and INSTALLED.builder))
        for v in values
    )


def _data(value: Any, like: Tensor) -> Tensor:
    if type(value) in (list, tuple) and any(isinstance(v, Tensor) for v in value):
        return apply("stack", *(v if isinstance(v, Tensor) else Tensor(v, like.dtype) for v in value))
    if not is_data(value):
        raise ApiTypeError("MSC0811", f"item assignment takes a Tensor or numbers, not {a(type(value).__name__)}")
    return Tensor(value) if is_array(value) else Tensor(value, like.dtype)


def _plain_index(index: Any) -> Any:
    """An index as NumPy takes it."""
    if isinstance(index, tuple):
        return tuple(_plain_index(i) for i in cast(tuple[Any, ...], index))
    if isinstance(index, Tensor):
        array = concrete(index, "an index")
        return int(array) if array.ndim == 0 and array.dtype.kind in "iu" else array
    if isinstance(index, slice):
        return _plain_slice(cast(Any, index))
    if isinstance(index, list):
        return np.array([_plain_index(i) for i in cast(list[Any], index)] or np.empty(0, np.int64))
    return index


def _plain_slice(index: Any) -> Any:
    return slice(*(_bound(b) for b in (index.start, index.stop, index.step)))


def _bound(bound: Any) -> int | None:
    return int(bound) if isinstance(bound, Tensor) else bound


def _on_array(array: Array, index: Any) -> Any:
    try:
        return array[index]
    except IndexError as error:
        raise ApiIndexError("MSC0815", f"{error} (the tensor has shape {array.shape})") from None
    except ValueError as error:
        raise ApiValueError("MSC0815", str(error)) from None
    except TypeError as error:
        raise ApiTypeError("MSC0815", str(error)) from None


class _Selection:
    """An index into a tensor of a captured graph: a slice for each axis, the new axes, and the tensors in between."""

    def __init__(self, x: Tensor, parts: tuple[Any, ...]) -> None:
        self._x = x
        parts = self._without_masks(parts)
        used = sum(1 for p in parts if p is not None and p is not Ellipsis)
        if used > x.ndim:
            raise ApiIndexError(
                "MSC0815",
                f"too many indices for array: array is {x.ndim}-dimensional, but {used} were indexed "
                f"(the tensor has shape {x.shape})",
            )
        fill = (slice(None),) * (x.ndim - used)
        at = next((i for i, p in enumerate(parts) if p is Ellipsis), len(parts))
        self._parts = (*parts[:at], *fill, *parts[at + 1 :])
        self._advanced = any(isinstance(p, Tensor) for p in self._parts)

    def _without_masks(self, parts: tuple[Any, ...]) -> tuple[Any, ...]:
        """Lists and arrays as tensors, masks that are known as the places where they are true."""
        made: list[Any] = []
        for part in parts:
            tensor: Any = Tensor(part) if type(part) in (list, np.ndarray) else part
            if isinstance(tensor, Tensor) and tensor.dtype is dtypes.bool_:
                if tensor.is_symbolic:
                    raise NeedsValue("indexing with a mask")
                made += [Tensor.of(places) for places in np.nonzero(tensor.asnumpy())]
            elif isinstance(tensor, bool):
                raise NeedsValue("indexing with True or False")
            else:
                made.append(tensor)
        return tuple(made)

    def read(self) -> Tensor:
        """The elements that the index chooses."""
        sliced = self._sliced()
        if not self._advanced:
            return self._shaped(sliced)
        return self._gathered(sliced)

    def _sliced(self) -> Tensor:
        """What the slices take of each axis; of an integer index one element, unless tensors stand beside it."""
        begin, end, strides = list[int](), list[int](), list[int]()
        axis = 0
        for part in self._parts:
            if part is None:
                continue
            size = self._x.shape[axis]
            if isinstance(part, slice):
                bounds = _slice_bounds(part, size)
            elif isinstance(part, Tensor) or self._advanced:
                bounds = (0, _LARGE if size == -1 else size, 1)
            else:
                place = self._place(part, axis)
                bounds = (place, place + 1 if place != -1 else _LARGE, 1)
            for entries, bound in zip((begin, end, strides), bounds, strict=True):
                entries.append(bound)
            axis += 1
        whole = [
            b == 0 and s == 1 and (e == n if n != -1 else e == _LARGE)
            for b, e, s, n in zip(begin, end, strides, self._x.shape, strict=True)
        ]
        if all(whole):
            return self._x
        return apply("slice", self._x, begin=tuple(begin), end=tuple(end), strides=tuple(strides))

    def _place(self, part: Any, axis: int) -> int:
        if not hasattr(part, "__index__"):
            raise ApiIndexError(
                "MSC0815", f"{a(type(part).__name__)} is no index (the tensor has shape {self._x.shape})"
            )
        place, size = int(part.__index__()), self._x.shape[axis]
        if size != -1 and not -size <= place < size:
            raise ApiIndexError(
                "MSC0815",
                f"index {place} is out of bounds for axis {axis} with size {size} "
                f"(the tensor has shape {self._x.shape})",
            )
        return place % size if size != -1 else place

    def _shaped(self, sliced: Tensor) -> Tensor:
        """The sliced tensor without the axes that integers chose of, with the new ones."""
        dropped, added = list[int](), list[int]()
        axis = place = 0
        for part in self._parts:
            if part is None:
                added.append(place)
                place += 1
                continue
            if isinstance(part, slice):
                place += 1
            else:
                dropped.append(axis)
            axis += 1
        result = apply("squeeze", sliced, axis=tuple(dropped)) if dropped else sliced
        return apply("expand_dims", result, axis=tuple(added)) if added else result

    def _gathered(self, sliced: Tensor) -> Tensor:
        """Tensors and integers among the indices choose together, at the place of the first or in front of all."""
        axes, indices, layout = list[int](), list[Tensor](), list[Any]()
        axis = 0
        for part in self._parts:
            if part is None or isinstance(part, slice):
                layout.append(None if part is None else axis)
            else:
                layout.append("index")
                axes.append(axis)
                indices.append(part if isinstance(part, Tensor) else Tensor(self._place(part, axis), dtypes.int64))
            axis += part is not None
        kept = [a for a in range(sliced.ndim) if a not in axes]
        sizes = [sliced.shape[a] for a in axes]
        table = apply("transpose", sliced, perm=(*axes, *kept)) if axes != list(range(len(axes))) else sliced
        rest = tuple(sliced.shape[a] for a in kept)
        table = apply("reshape", table, shape=(math.prod(sizes), *rest))
        rows = apply("gather", table, flat_places(indices, sizes), axis=0)
        return self._arranged(rows, layout, len(rows.shape) - len(kept))

    def _arranged(self, rows: Tensor, layout: list[Any], chosen: int) -> Tensor:
        """The axes in NumPy's order: what was chosen stands where the indices stood if they stood side by side."""
        places = [i for i, entry in enumerate(layout) if entry == "index"]
        together = places[-1] - places[0] + 1 == len(places)
        before = sum(1 for entry in layout[: places[0]] if entry is not None) if together else 0
        order = (*range(chosen, chosen + before), *range(chosen), *range(chosen + before, rows.ndim))
        result = apply("transpose", rows, perm=order) if before else rows
        added, place = list[int](), 0 if together else chosen
        for i, entry in enumerate(layout):
            if entry == "index":
                place += chosen if together and i == places[0] else 0
            else:
                if entry is None:
                    added.append(place)
                place += 1
        return apply("expand_dims", result, axis=tuple(added)) if added else result

    def written(self, value: Tensor) -> Tensor:
        """The tensor with `value` where the index chooses."""
        if in_graph(*self._parts):
            return self._written_at_computed_places(value)
        if -1 in self._x.shape:
            raise NeedsValue("item assignment to a tensor of unknown size")
        shape = self._x.shape
        size = math.prod(shape)
        index = tuple(_plain_index(p) for p in self._parts)
        places: Array = _on_array(np.arange(size).reshape(shape), index)
        value = _fitting(value, places.shape)
        inside = np.zeros(size, bool)
        inside[places.reshape(-1)] = True
        if math.prod(value.shape) == 1:
            mask = Tensor.of(inside.reshape(shape))
            return apply("select", mask, apply("reshape", value, shape=()), self._x)
        source = np.arange(size)
        source[places.reshape(-1)] = size + np.arange(places.size)
        flat = apply("reshape", apply("broadcast_to", value, shape=places.shape), shape=(-1,))
        both = apply("concat", apply("reshape", self._x, shape=(-1,)), flat, axis=0)
        return apply("reshape", apply("gather", both, Tensor.of(source), axis=0), shape=shape)

    def _written_at_computed_places(self, value: Tensor) -> Tensor:
        """Computed indices into the first axes; a loop writes one row after the other, so that the last one wins."""
        leading = [p for p in self._parts if not isinstance(p, slice)]
        if None in leading or any(p != slice(None) for p in self._parts[len(leading) :]):
            raise NeedsValue("item assignment with computed indices behind slices or beside new axes")
        indices = [
            p if isinstance(p, Tensor) else Tensor(self._place(p, i), dtypes.int64) for i, p in enumerate(leading)
        ]
        shape, depth = self._x.shape, len(leading)
        places = flat_places(indices, shape[:depth])
        count = math.prod(places.shape)
        new = apply(
            "broadcast_to", _fitting(value, (*places.shape, *shape[depth:])), shape=(*places.shape, *shape[depth:])
        )
        table = apply("reshape", self._x, shape=(math.prod(shape[:depth]), *shape[depth:]))
        rows = apply("reshape", new, shape=(count, *shape[depth:]))
        return apply("reshape", write_rows(table, apply("reshape", places, shape=(count,)), rows), shape=shape)


def _slice_bounds(part: Any, size: int) -> tuple[int, int, int]:
    """Begin, end and stride of `ms.slice`."""
    start, stop, step = (_bound(b) for b in (part.start, part.stop, part.step))
    stride = 1 if step is None else step
    if stride == 0:
        raise ApiValueError("MSC0815", "slice step cannot be zero")
    if size == -1:
        last = -_LARGE if stride < 0 else _LARGE
        return (-1 if stride < 0 else 0) if start is None else start, last if stop is None else stop, stride
    first, last, stride = slice(start, stop, stride).indices(size)
    return first, last if last >= 0 else -size - 1, stride


def _fitting(value: Tensor, shape: Sequence[int]) -> Tensor:
    """A value without leading axes of size 1 that are too many, as NumPy allows. Raises MSC0201 if it does not fit."""
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = apply("squeeze", value, axis=(0,))
    try:
        if np.broadcast_shapes(value.shape, shape) != tuple(shape):
            raise ValueError
    except ValueError:
        message = (
            f"item assignment: a value of shape {value.shape} does not fit the {tuple(shape)} that the index chooses"
        )
        raise ApiValueError("MSC0201", message) from None
    return value


def flat_places(indices: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """Where tuples of indices point in the flattened axes of `sizes`; Int64. Negative ones count from the end."""
    place: Tensor | None = None
    for index, size in zip(indices, sizes, strict=True):
        expect_index(index, size)
        wide = cast_to(index, dtypes.int64)
        counted = apply("select", less(wide, 0), add(wide, size), wide)
        place = counted if place is None else add(mul(place, size), counted)
    assert place is not None
    return place


def write_rows(table: Tensor, places: Tensor, rows: Tensor, join: str | None = None) -> Tensor:
    """`rows` put into the entries of `table` at `places`; joined with what is there by the operation `join`, if any."""
    for i in range(places.shape[0]):
        number = Tensor(i, dtypes.int64)
        place, row = apply("extract_slice", places, number), apply("extract_slice", rows, number)
        if join is not None:
            row = apply(join, apply("extract_slice", table, place), row)
        table = apply("insert_slice", table, place, row)
    return table
