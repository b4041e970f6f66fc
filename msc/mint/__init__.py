"""MindSpore's `mint`: functions with PyTorch's names, orders and keywords, made of those of `msc.ops`."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnsupportedDunderAll=false

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

from msc import ops
from msc.frontend.boundary import elsewhere, publish
from msc.frontend.tensor import Tensor

_SYNONYMS = (
    ("axis", "dim", "dims", "axes"),
    ("keepdims", "keep_dims", "keepdim"),
    ("input", "x", "input_x", "tensor", "logits", "condition"),
    ("other", "y"),
    ("alpha", "negative_slope"),
    ("size", "shape"),
    ("padding", "pad"),
    ("input_data", "data"),
)
_SAME = (
    "abs acos acosh add addbmm addcdiv addmm addmv addr all allclose amax amin any arccos arccosh arcsin arcsinh "
    "arctan arctan2 arctanh argsort asin asinh atan atan2 atanh baddbmm bernoulli bincount bitwise_and "
    "bitwise_not bitwise_or bitwise_xor bmm broadcast_to cat cdist ceil chunk clamp concat cos cosh count_nonzero "
    "cross cummax cummin cumprod cumsum diag diff div divide dot dstack einsum eq erf erfc erfinv exp exp2 expm1 "
    "eye flatten flip float_power floor floor_divide fmod frac full full_like gcd greater greater_equal gt histc "
    "hstack imag index_add index_select inverse isclose isfinite isinf isnan isneginf le lerp less less_equal "
    "linspace log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logsumexp "
    "lt masked_select matmul maximum mean meshgrid minimum mm mul multinomial mv nan_to_num nansum narrow ne neg "
    "negative nonzero norm normal not_equal ones ones_like outer permute pow prod qr rand rand_like randint "
    "randint_like randn randn_like randperm ravel real reciprocal repeat_interleave reshape roll round rsqrt "
    "scatter scatter_add searchsorted sigmoid sign sin sinc sinh sqrt square squeeze stack sub sum t tan tanh "
    "tile topk trace tril triu trunc unbind unique_consecutive unsqueeze where xlogy zeros zeros_like isposinf "
    "addcmul softmax polar log_softmax relu"
)
"""Names whose functions differ from those of `ops` by keywords alone."""


def torch_keywords(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function, whose keyword arguments also have PyTorch's names."""
    own = list(signature(function).parameters)
    other = {n: o for group in _SYNONYMS for o in group if o in own for n in group if n not in own}

    @wraps(function)
    def called(*args: Any, **keywords: Any) -> Any:
        return function(*args, **{other.get(key, key): value for key, value in keywords.items()})

    called.__name__ = called.__qualname__ = name
    return called


def _extreme(input: Tensor, dim: int | None, keepdim: bool, kind: str) -> Any:
    if dim is None:
        return (ops.amax if kind == "max" else ops.amin)(input)
    value, place = (ops.max_with_index if kind == "max" else ops.min_with_index)(input, dim, keepdim)
    return value, place.long()


def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest element, or those along an axis and where they stand; of two tensors the larger elements."""
    return ops.maximum(input, dim) if isinstance(dim, Tensor) else _extreme(input, dim, keepdim, "max")


def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest element, or those along an axis and where they stand; of two tensors the smaller elements."""
    return ops.minimum(input, dim) if isinstance(dim, Tensor) else _extreme(input, dim, keepdim, "min")


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest element stands (Int64)."""
    return ops.argmax(input, dim, keepdim).long()


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest element stands (Int64)."""
    return ops.argmin(input, dim, keepdim).long()


def sort(input: Tensor, *, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Tensor, Tensor]:
    """The elements in order along an axis, and where they stood (Int64)."""
    del stable
    values, places = ops.sort(input, dim, descending)
    return values, places.long()


def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of all elements, or along an axis with where it stands."""
    return ops.median(ops.ravel(input), 0)[0] if dim is None else ops.median(input, dim, keepdim)


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th smallest element along an axis, and where it stands."""
    found = [ops.narrow(part, dim, k - 1, 1) for part in ops.sort(input, dim)]
    value, place = found if keepdim else [ops.squeeze(part, dim) for part in found]
    return value, place.long()


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The elements that the index names along an axis."""
    return ops.gather_elements(input, dim, index)


def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements of the flattened tensor."""
    return ops.take(input, index)


def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of a size, or of sizes, along an axis."""
    return ops.split(tensor, split_size_or_sections, dim)


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """An entry of an axis."""
    return ops.squeeze(ops.narrow(input, dim, index % input.shape[dim], 1), dim)


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged."""
    return ops.swapaxes(input, dim0, dim1)


swapaxes = transpose


def std(input: Tensor, dim: Any = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """The deviation, with the divisor n - correction."""
    return ops.sqrt(var(input, dim, correction=correction, keepdim=keepdim))


def var(input: Tensor, dim: Any = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """The variance, with the divisor n - correction."""
    axes = tuple(range(input.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    count = 1
    for axis in axes:
        count *= input.shape[axis]
    squares = ops.square(ops.sub(input, ops.mean(input, axes, True)))
    return ops.div(ops.sum(squares, axes, keepdim), float(count - correction))


def std_mean(input: Tensor, dim: Any = None, *, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The deviation and the mean."""
    return std(input, dim, correction=correction, keepdim=keepdim), ops.mean(input, dim, keepdim)


def var_mean(input: Tensor, dim: Any = None, *, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""
    return var(input, dim, correction=correction, keepdim=keepdim), ops.mean(input, dim, keepdim)


def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Tensor:
    """Numbers from start up to but without end."""
    return ops.arange(start, end, step, dtype=dtype)


def remainder(input: Any, other: Any) -> Tensor:
    """What the floored quotient leaves."""
    return ops.floor_mod(input, other)


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether shapes and elements are equal."""
    return input.shape == other.shape and bool(ops.all(ops.equal(input, other)))


def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The elements that differ; what is asked for follows."""
    return input.unique(sorted, return_inverse, return_counts) if dim is None else input.unique(dim=dim)


def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    """The x with A x = b for a triangle, and the triangle."""
    return ops.solve_triangular(A, b, "T" if transpose else 0, not upper, unitriangular), A


def empty(*size: Any, dtype: Any = None) -> Tensor:
    """As `zeros`."""
    return ops.zeros(size[0] if len(size) == 1 else size, dtype)


def empty_like(input: Tensor, *, dtype: Any = None) -> Tensor:
    """As `zeros_like`."""
    return ops.zeros_like(input, dtype=dtype)


def clone(input: Tensor) -> Tensor:
    """A tensor of the same elements."""
    return input.copy()


def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The product of two vectors."""
    return ops.dot(input, other)


def _made() -> dict[str, Any]:
    return {name: torch_keywords(getattr(ops, name), name) for name in _SAME.split() if hasattr(ops, name)}


globals().update(_made())
_PUBLIC = sorted(
    name
    for name, value in globals().items()
    if callable(value)
    and not name.startswith("_")
    and name not in ("Any", "Callable", "Tensor", "elsewhere", "publish", "signature", "torch_keywords", "wraps")
)
__all__ = list(_PUBLIC)
publish(globals(), __all__, "mint")

_MODULES = ("nn", "optim", "linalg", "special", "distributed")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"msc.mint.{name}")
    for module in ("nn", "nn.functional", "optim", "linalg"):
        found = import_module(f"msc.mint.{module}")
        if name in found.__all__:
            return getattr(found, name)
    return elsewhere("msc.mint", name, __all__)
