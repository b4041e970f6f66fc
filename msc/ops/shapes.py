"""Other shapes and orders of the same elements; none of these computes anything."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, TypeAlias
from typing import cast as typed

from msc.frontend.dispatch import apply
from msc.frontend.dtypes import DTypeLike, as_dtype
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.tensor import Tensor, tensor_method, tensor_property
from msc.ops.operands import cast as cast_to
from msc.ops.operands import flexible, only_tensor

__all__ = [
    "broadcast_to", "cast", "expand_as", "expand_dims", "flatten", "movedim", "permute", "ravel", "reshape",
    "reshape_as", "squeeze", "swapaxes", "t", "tile", "transpose", "unflatten", "unsqueeze",
]  # fmt: skip

Sizes: TypeAlias = int | Sequence[int] | Tensor


def sizes_of(values: Any) -> tuple[int, ...]:
    """Sizes or axes that are given as one number, a sequence or a tensor. Raises MSC0811."""
    if isinstance(values, Tensor):
        return tuple(int(v) for v in values.asnumpy().reshape(-1))
    if isinstance(values, Sequence):
        return tuple(_size(v) for v in typed(Sequence[Any], values))
    return (_size(values),)


def _size(value: Any) -> int:
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        raise ApiTypeError("MSC0811", f"a size or an axis is an integer, not {value!r}") from None


def given(values: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes or axes that are given as several arguments, or as one sequence or tensor."""
    return sizes_of(values[0] if len(values) == 1 else values)


def axis_of(x: Tensor, axis: int, function: str, extra: int = 0) -> int:
    """An axis counted from the front; `extra` more than x has, where an axis is added. Raises MSC0203."""
    rank = x.ndim + extra
    if not -rank <= axis < rank:
        raise ApiValueError("MSC0203", f"{function}: axis {axis} is not an axis of a tensor of shape {x.shape}")
    return axis % rank


# Another shape.


@tensor_method("reshape", "view")
def _reshape(self: Tensor, *shape: Any) -> Tensor:
    return reshape(self, given(shape))


def reshape(input: Tensor, shape: Sizes) -> Tensor:
    """As many elements in another shape; one size may be -1, what is left."""
    return apply("reshape", only_tensor(input, "reshape"), shape=sizes_of(shape))


@tensor_method("view_as", "reshape_as")
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """As many elements in the shape of another tensor."""
    return reshape(self, other.shape)


@tensor_method("flatten")
@flexible
def flatten(input: Tensor, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """The axes from `start_dim` to `end_dim` as one; `order` "F" takes them the other way round."""
    x = only_tensor(input, "flatten")
    if order not in ("C", "F"):
        raise ApiValueError("MSC0203", f"flatten: order is {order!r}, not 'C' or 'F'")
    if x.ndim == 0:
        return apply("reshape", x, shape=(1,))
    if order == "F":
        x = apply("transpose", x, perm=(0, *reversed(range(1, x.ndim)))) if x.ndim > 1 else x
    if x.ndim == 1:
        return x
    first, last = axis_of(x, start_dim, "flatten"), axis_of(x, end_dim, "flatten")
    if first > last:
        raise ApiValueError("MSC0203", f"flatten: start_dim {start_dim} is behind end_dim {end_dim}")
    middle = x.shape[first : last + 1]
    size = -1 if -1 in middle else math.prod(middle)
    return x if first == last else apply("reshape", x, shape=(*x.shape[:first], size, *x.shape[last + 1 :]))


@tensor_method("ravel")
def ravel(input: Tensor) -> Tensor:
    """All elements along one axis."""
    return apply("reshape", only_tensor(input, "ravel"), shape=(-1,))


@tensor_method("squeeze")
@flexible
def squeeze(input: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """Without the axes named, which have size 1; without all of size 1 if none is named."""
    x = only_tensor(input, "squeeze")
    axes = () if axis is None else sizes_of(axis)
    if axis is not None and not axes:
        return x
    if not axes and 1 not in x.shape:
        return x
    return apply("squeeze", x, axis=axes)


@tensor_method("expand_dims", "unsqueeze")
@flexible
def expand_dims(input_x: Tensor, axis: int | Sequence[int]) -> Tensor:
    """With a new axis of size 1 at a place."""
    return apply("expand_dims", only_tensor(input_x, "expand_dims"), axis=sizes_of(axis))


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With a new axis of size 1 at a place."""
    return expand_dims(input, dim)


@tensor_method("unflatten")
def unflatten(input: Tensor, axis: int, sizes: Sizes) -> Tensor:
    """An axis as several of `sizes`."""
    a = axis_of(input, axis, "unflatten")
    return reshape(input, (*input.shape[:a], *sizes_of(sizes), *input.shape[a + 1 :]))


# Another order of axes.


@tensor_property("T")
def _turned(self: Tensor) -> Tensor:
    return apply("transpose", self) if self.ndim > 1 else self


@tensor_property("mT")
def _matrices_turned(self: Tensor) -> Tensor:
    return swapaxes(self, -1, -2)


@tensor_method("permute")
def _permuted(self: Tensor, *axes: Any) -> Tensor:
    if not axes or axes == (None,):
        return apply("transpose", self)
    order = given(axes)
    if len(order) == 2 and self.ndim > 2:
        return swapaxes(self, *order)
    return transpose(self, order)


@tensor_method("transpose")
def _transposed(self: Tensor, *axes: Any) -> Tensor:
    """The axes in another order; two numbers are axes that change places, in a matrix too."""
    return swapaxes(self, *axes) if len(axes) == 2 else _permuted(self, *axes)


def transpose(input: Tensor, input_perm: Sizes) -> Tensor:
    """Axes in another order: axis i of the result is axis `input_perm[i]`."""
    perm = sizes_of(input_perm)
    x = only_tensor(input, "transpose")
    return apply("transpose", x, perm=perm) if x.ndim else x


def permute(input: Tensor, axis: Sizes) -> Tensor:
    """Axes in another order: axis i of the result is axis `axis[i]`."""
    return transpose(input, axis)


def t(input: Tensor) -> Tensor:
    """A matrix with rows as columns; a vector itself."""
    return apply("transpose", input) if input.ndim > 1 else input


tensor_method("t")(t)


@tensor_method("swapaxes", "swapdims")
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two axes exchanged."""
    x = only_tensor(input, "swapaxes")
    a, b = axis_of(x, axis0, "swapaxes"), axis_of(x, axis1, "swapaxes")
    order = list(builtins.range(x.ndim))
    order[a], order[b] = b, a
    return apply("transpose", x, perm=tuple(order)) if a != b else x


@tensor_method("movedim", "moveaxis")
def movedim(x: Tensor, source: Sizes, destination: Sizes) -> Tensor:
    """Axes moved to other places, the others in their order."""
    sources = [axis_of(x, a, "movedim") for a in sizes_of(source)]
    places = [axis_of(x, a, "movedim") for a in sizes_of(destination)]
    order = [a for a in range(x.ndim) if a not in sources]
    for place, a in sorted(zip(places, sources, strict=True)):
        order.insert(place, a)
    return transpose(x, order)


# Repeating.


@tensor_method("broadcast_to", "expand")
def _expanded(self: Tensor, *shape: Any) -> Tensor:
    return broadcast_to(self, given(shape))


def broadcast_to(input: Tensor, shape: Sizes) -> Tensor:
    """Repeated as NumPy broadcasts, to a shape; -1 keeps a size."""
    return apply("broadcast_to", only_tensor(input, "broadcast_to"), shape=sizes_of(shape))


@tensor_method("expand_as")
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Broadcast to the shape of another tensor."""
    return broadcast_to(input, other.shape)


@tensor_method("tile")
def _tiled(self: Tensor, *reps: Any) -> Tensor:
    return tile(self, given(reps))


def tile(input: Tensor, dims: Sizes) -> Tensor:
    """Repeated as a whole along each axis; axes are added in front if there are more numbers than axes."""
    x, times = only_tensor(input, "tile"), sizes_of(dims)
    missing = len(times) - x.ndim
    if missing > 0:
        x = apply("reshape", x, shape=(*(1,) * missing, *x.shape))
    return apply("tile", x, multiples=(*(1,) * -missing, *times)) if times else x


# Element types.


@tensor_method("astype", "to", "type")
def _astype(self: Tensor, dtype: DTypeLike, copy: bool = True) -> Tensor:
    return cast_to(self, as_dtype(dtype))


@tensor_method("set_dtype")
def _set_dtype(self: Tensor, dtype: DTypeLike) -> Tensor:
    """The tensor itself, with its elements in another element type."""
    self.replace(cast_to(self, as_dtype(dtype)).content)
    return self


def cast(input: Tensor, dtype: DTypeLike) -> Tensor:
    """The elements in another element type: floats truncate to integers, integers wrap."""
    return cast_to(only_tensor(input, "cast"), as_dtype(dtype))
