"""Gradients cut to a length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.tensor import Tensor, concrete
from msc.ops.activation import clamp
from msc.ops.arithmetic import maximum, minimum
from msc.ops.comparison import logical_and
from msc.ops.methods import stop_gradient
from msc.ops.operands import only_tensor
from msc.ops.reductions import amax, length
from msc.ops.reductions import sum as sum_of
from msc.ops.selection import where
from msc.ops.unary import abs as absolute
from msc.ops.unary import isfinite, sqrt, square
from msc.support.wording import a

__all__ = ["clip_by_global_norm", "clip_by_norm", "clip_by_value"]


def _listed(x: Any, function: str) -> tuple[list[Tensor], bool]:
    if isinstance(x, Tensor):
        return [x], True
    items: Sequence[Any] = cast(Sequence[Any], x) if isinstance(x, list | tuple) else ()
    if not items:
        raise ApiTypeError("MSC0811", f"{function} takes a tensor or tensors, not {a(type(cast(object, x)).__name__)}")
    return [only_tensor(t, function) for t in items], False


def _positive(function: str, name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ApiValueError("MSC0203", f"{function}: {name} is {value!r}; it must be above 0")


def clip_by_value(x: Any, clip_value_min: Any = None, clip_value_max: Any = None) -> Any:
    """Tensors, each element at least clip_value_min and at most clip_value_max, numbers or tensors; one may be absent.

    A tensor gives a tensor, a list or tuple one of its kind.
    """
    tensors, single = _listed(x, "clip_by_value")
    found = [clamp(t, clip_value_min, clip_value_max) for t in tensors]
    return found[0] if single else type(x)(found)


def clip_by_global_norm(x: Any, clip_norm: float = 1.0, use_norm: Tensor | None = None) -> Any:
    """Tensors times clip_norm over the root of the sum of all their squares, where that is more than clip_norm.

    `use_norm` is taken for that root, if it is given. A tensor gives a tensor, several give a tuple.
    """
    tensors, single = _listed(x, "clip_by_global_norm")
    _positive("clip_by_global_norm", "clip_norm", clip_norm)
    norm = use_norm
    if norm is None:
        total: Any = 0.0
        for tensor in tensors:
            total = total + sum_of(square(tensor))
        norm = sqrt(total)
    scale = clip_norm / maximum(norm, Tensor(float(clip_norm), norm.dtype))
    found = tuple(t * (scale if scale.dtype is t.dtype else scale.astype(t.dtype)) for t in tensors)
    return found[0] if single else found


def clip_by_norm(x: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """Tensors times max_norm over their norm of `norm_type` taken together, where that is more than max_norm.

    Raises MSC0203 for a norm that is no number, or infinite, with `error_if_nonfinite`.
    """
    tensors, single = _listed(x, "clip_by_norm")
    _positive("clip_by_norm", "max_norm", max_norm)
    _positive("clip_by_norm", "norm_type", norm_type)
    norm = _norm(tensors, norm_type)
    if error_if_nonfinite and not np.isfinite(concrete(norm, "clip_by_norm")):
        raise ApiValueError("MSC0203", f"clip_by_norm: the norm is {concrete(norm)}, and error_if_nonfinite is set")
    scale = minimum(max_norm / (norm + 1e-6), Tensor(1.0, norm.dtype))
    found = [t * (scale if scale.dtype is t.dtype else scale.astype(t.dtype)) for t in tensors]
    return found[0] if single else type(x)(found)


def _norm(tensors: Sequence[Tensor], kind: float) -> Tensor:
    if math.isinf(kind):
        largest: Any = amax(absolute(tensors[0]))
        for tensor in tensors[1:]:
            largest = maximum(largest, amax(absolute(tensor)))
        return largest
    scale = _scale([stop_gradient(amax(absolute(tensor))) for tensor in tensors])
    total: Any = 0.0
    for tensor in tensors:
        part = tensor / scale.astype(tensor.dtype)
        total = total + sum_of(square(part) if kind == 2 else absolute(part) ** float(kind))
    return (length(total) if kind == 2 else total ** (1 / kind)) * scale


def _scale(largest: Sequence[Tensor]) -> Tensor:
    """The largest element, by which powers are computed that would overflow, or 1 where that is 0 or infinite."""
    found = largest[0]
    for other in largest[1:]:
        found = maximum(found, other)
    return where(logical_and(found > 0, isfinite(found)), found, 1.0)
