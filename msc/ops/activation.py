"""Activations."""

from __future__ import annotations

from msc.frontend.dispatch import apply
from msc.frontend.dtypes import DTypeLike, as_dtype
from msc.frontend.tensor import Tensor, tensor_method
from msc.ops.operands import as_float, cast, only_tensor


def relu(input: Tensor) -> Tensor:
    """max(0, x)."""
    return apply("relu", only_tensor(input, "relu"))


@tensor_method("softmax")
def softmax(input: Tensor, axis: int = -1, *, dtype: DTypeLike | None = None) -> Tensor:
    """exp(x) / sum of exp(x) along an axis."""
    x = as_float(only_tensor(input, "softmax"))
    return apply("softmax", x if dtype is None else cast(x, as_dtype(dtype)), axis=axis)
