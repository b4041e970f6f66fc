"""Joining, cutting, turning round and moving along axes."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from msc.frontend.dispatch import apply, apply_all
from msc.frontend.errors import ApiValueError, NeedsValue
from msc.frontend.tensor import Tensor, tensor_method
from msc.ops.operands import cast as cast_to
from msc.ops.operands import flexible, only_tensor, promoted
from msc.ops.shapes import Sizes, axis_of, expand_dims, given, ravel, reshape, sizes_of, swapaxes, tile

__all__ = [
    "cat", "chunk", "concat", "concatenate", "flip", "fliplr", "flipud", "hstack", "narrow", "repeat_interleave",
    "reverse", "roll", "rot90", "split", "stack", "tensor_split", "unbind", "unstack", "vstack",
]  # fmt: skip


def _tensors(values: Any, function: str) -> list[Tensor]:
    if isinstance(values, Tensor):
        return [values] if function == "concat" else list(values)
    return [only_tensor(v, function, f"tensors[{i}]") for i, v in enumerate(values)]


def _one_type(tensors: list[Tensor], function: str) -> list[Tensor]:
    if not tensors:
        raise ApiValueError("MSC0201", f"{function} needs one tensor or more")
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = promoted(dtype, tensor.dtype)
    return [cast_to(tensor, dtype) for tensor in tensors]


@flexible
def concat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors joined along an axis; their other axes agree."""
    return apply("concat", *_one_type(_tensors(tensors, "concat"), "concat"), axis=axis)


cat = concatenate = concat


@flexible
def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    return apply("stack", *_one_type(_tensors(tensors, "stack"), "stack"), axis=axis)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the second axis; vectors along the first."""
    return concat(tensors, 0 if tensors[0].ndim < 2 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the first axis; vectors are rows."""
    return concat([expand_dims(v, 0) if v.ndim < 2 else v for v in tensors], 0)


def narrow(input: Tensor, axis: int, start: int, length: int) -> Tensor:
    """`length` elements of an axis from `start` on."""
    a = axis_of(input, axis, "narrow")
    if length < 0 or start < 0 or (input.shape[a] != -1 and start + length > input.shape[a]):
        raise ApiValueError("MSC0203", f"narrow: {start} to {start + length} is not within axis {a} of {input.shape}")
    begin = tuple(start if i == a else 0 for i in range(input.ndim))
    sizes = (n if n != -1 else _LARGE for n in input.shape)
    end = tuple(start + length if i == a else n for i, n in enumerate(sizes))
    return apply("slice", input, begin=begin, end=end)


_LARGE = 2**31 - 1

tensor_method("narrow")(narrow)


def _known_size(x: Tensor, axis: int, function: str) -> int:
    if x.shape[axis] == -1:
        raise NeedsValue(f"{function} along an axis of unknown size")
    return x.shape[axis]


@tensor_method("split")
@flexible
def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Consecutive parts along an axis: of a size each, the last one maybe less, or of the sizes given."""
    x = only_tensor(tensor, "split")
    a = axis_of(x, axis, "split")
    if isinstance(split_size_or_sections, int):
        size, total = split_size_or_sections, _known_size(x, a, "split")
        if size < 1:
            raise ApiValueError("MSC0203", f"split: the size of a part is {size}; it must be 1 or more")
        parts = tuple(builtins.min(size, total - start) for start in range(0, total, size)) or (0,)
    else:
        parts = sizes_of(split_size_or_sections)
    return apply_all("split", x, axis=a, sizes=parts)


@tensor_method("chunk")
@flexible
def chunk(input: Tensor, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` consecutive parts along an axis, of one size but for the last."""
    a = axis_of(input, axis, "chunk")
    if chunks < 1:
        raise ApiValueError("MSC0203", f"chunk: chunks is {chunks}; it must be 1 or more")
    return split(input, builtins.max(-(-_known_size(input, a, "chunk") // chunks), 1), a)


@tensor_method("tensor_split")
@flexible
def tensor_split(input: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Consecutive parts along an axis: so many of nearly one size, or cut at the places given."""
    a = axis_of(input, axis, "tensor_split")
    size = _known_size(input, a, "tensor_split")
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1:
            raise ApiValueError("MSC0203", f"tensor_split: {indices_or_sections} parts; there must be 1 or more")
        least, more = divmod(size, indices_or_sections)
        parts = [least + (i < more) for i in range(indices_or_sections)]
    else:
        cuts = [slice(None, place).indices(size)[1] for place in indices_or_sections]
        edges = [0, *cuts, size]
        parts = [builtins.max(stop - start, 0) for start, stop in itertools.pairwise(edges)]
    starts = [0]
    for part in parts[:-1]:
        starts.append(starts[-1] + part)
    return tuple(narrow(input, a, start, part) for start, part in zip(starts, parts, strict=True))


@tensor_method("unbind", "unstack")
@flexible
def unbind(input: Tensor, axis: int = 0) -> tuple[Tensor, ...]:
    """The entries of an axis, without that axis."""
    x = only_tensor(input, "unbind")
    a = axis_of(x, axis, "unbind")
    return tuple(apply("squeeze", part, axis=(a,)) for part in split(x, 1, a)) if _known_size(x, a, "unbind") else ()


unstack = unbind


# Turning round, padding.


@tensor_method("flip")
def _flipped(self: Tensor, *dims: Any) -> Tensor:
    return flip(self, given(dims))


def flip(input: Tensor, dims: Sizes) -> Tensor:
    """Axes in reverse."""
    return apply("reverse", only_tensor(input, "flip"), axis=sizes_of(dims))


def reverse(x: Tensor, axis: Sizes) -> Tensor:
    """Axes in reverse."""
    return flip(x, axis)


def fliplr(input: Tensor) -> Tensor:
    """The second axis in reverse."""
    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:
    """The first axis in reverse."""
    return flip(input, 0)


@tensor_method("roll")
def roll(input: Tensor, shifts: Sizes, dims: Sizes | None = None) -> Tensor:
    """Elements moved along axes, round the end; the flattened tensor's if no axis is named."""
    x = only_tensor(input, "roll")
    if dims is None:
        return reshape(roll(ravel(x), shifts, 0), x.shape)
    for shift, axis in zip(sizes_of(shifts), sizes_of(dims), strict=True):
        a = axis_of(x, axis, "roll")
        size = _known_size(x, a, "roll")
        first = shift % size if size else 0
        if first:
            x = concat([narrow(x, a, size - first, first), narrow(x, a, 0, size - first)], a)
    return x


@tensor_method("rot90")
def rot90(input: Tensor, k: int = 1, dims: Sizes = (0, 1)) -> Tensor:
    """Turned by k right angles in a plane."""
    a, b = sizes_of(dims)
    match k % 4:
        case 1:
            return flip(swapaxes(input, a, b), a)
        case 2:
            return flip(input, (a, b))
        case 3:
            return swapaxes(flip(input, a), a, b)
        case _:
            return input


@tensor_method("repeat")
def _repeated(self: Tensor, *repeats: Any, axis: int | None = None) -> Tensor:
    times: Any = repeats[0] if repeats else 1
    kind = cast(type[object], type(times))
    if len(repeats) == 1 and kind in (int, Tensor, list) and (axis is not None or self.ndim == 1):
        return repeat_interleave(self, times, axis)
    if len(repeats) == 2 and axis is None and (kind is list or self.ndim != 2):
        return repeat_interleave(self, times, repeats[1])
    return tile(self, given(repeats))


@tensor_method("repeat_interleave")
@flexible
def repeat_interleave(input: Tensor, repeats: Sizes, axis: int | None = None) -> Tensor:
    """Each element repeated: `repeats` times, or as often as its number says."""
    x = ravel(input) if axis is None else only_tensor(input, "repeat_interleave")
    a = 0 if axis is None else axis_of(x, axis, "repeat_interleave")
    times = sizes_of(repeats)
    if any(n < 0 for n in times) or len(times) not in (1, x.shape[a]):
        raise ApiValueError("MSC0203", f"repeat_interleave: repeats {times} do not fit axis {a} of {x.shape}")
    places = np.repeat(np.arange(x.shape[a]), times)
    return apply("gather", x, Tensor(places), axis=a) if places.size else narrow(x, a, 0, 0)
