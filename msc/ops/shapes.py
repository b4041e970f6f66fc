"""Other shapes of the same elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msc.frontend.dispatch import apply
from msc.frontend.dtypes import DTypeLike, as_dtype
from msc.frontend.tensor import Tensor, tensor_method, tensor_property
from msc.ops.operands import cast as cast_to
from msc.ops.operands import only_tensor


def sizes_of(values: Any) -> tuple[int, ...]:
    """Sizes or axes that are given as numbers, as one sequence or as a tensor."""
    if isinstance(values, Tensor):
        return tuple(int(v) for v in values.asnumpy().reshape(-1))
    if len(values) == 1 and not isinstance(values[0], int):
        return sizes_of(values[0]) if isinstance(values[0], Tensor) else tuple(int(v) for v in values[0])
    return tuple(int(v) for v in values)


@tensor_method("reshape", "view")
def _reshape(self: Tensor, *shape: Any) -> Tensor:
    return reshape(self, sizes_of(shape))


def reshape(input: Tensor, shape: Sequence[int]) -> Tensor:
    """As many elements in another shape; one size may be -1, what is left."""
    return apply("reshape", only_tensor(input, "reshape"), shape=sizes_of((shape,)))


def flatten(input: Tensor, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """The axes from `start_dim` to `end_dim` as one."""
    shape, rank = input.shape, input.ndim
    first, last = start_dim % max(rank, 1), end_dim % max(rank, 1)
    if rank == 2 and (first, last) == (1, 1):
        return input
    return apply("reshape", input, shape=(*shape[:first], -1, *shape[last + 1 :]))


def transpose(input: Tensor, input_perm: Sequence[int]) -> Tensor:
    """Axes in another order: axis i of the result is axis `input_perm[i]`."""
    return apply("transpose", only_tensor(input, "transpose"), perm=sizes_of((input_perm,)))


@tensor_property("T")
def _turned(self: Tensor) -> Tensor:
    return apply("transpose", self)


@tensor_method("astype", "to")
def _astype(self: Tensor, dtype: DTypeLike, copy: bool = True) -> Tensor:
    return cast_to(self, as_dtype(dtype))


def cast(input: Tensor, dtype: DTypeLike) -> Tensor:
    """The elements in another element type: floats truncate to integers, integers wrap."""
    return cast_to(only_tensor(input, "cast"), as_dtype(dtype))
