"""Convolution and pooling: MindSpore's arguments in those of the `ms` operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

import numpy as np

from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.tensor import Tensor
from msc.ops.arithmetic import div, mul
from msc.ops.operands import only_tensor
from msc.ops.selection import where
from msc.ops.shapes import expand_dims, reshape, squeeze, transpose

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "avg_pool1d", "avg_pool2d", "conv1d", "conv2d", "conv3d", "max_pool2d",
]  # fmt: skip

Sizes: TypeAlias = int | Sequence[int]


def spread(value: object, count: int, what: str) -> tuple[int, ...]:
    """One size for each axis; a single one is that of all. Raises MSC0813.

    Of a size for each axis of `[n, c, spatial...]`, as MindSpore's primitives take it, the spatial ones count.
    """
    sizes = _integers(value, f"one integer or {count}", what)
    if len(sizes) == 1:
        sizes *= count
    if len(sizes) == count + 2 and sizes[:2] == (1, 1):
        sizes = sizes[2:]
    if len(sizes) != count:
        raise ApiValueError("MSC0813", f"{what} is {value}; it must be one integer or {count}")
    return sizes


def _integers(value: object, wanted: str, what: str) -> tuple[int, ...]:
    """The integers that are given, one or several. Raises MSC0813 for anything else."""
    given = cast(Sequence[object], value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    if any(isinstance(v, bool) or not isinstance(v, int | np.integer) for v in given):
        raise ApiTypeError("MSC0813", f"{what} is {value!r}; it must be {wanted}")
    return tuple(int(cast(int, v)) for v in given)


def pads(value: Sizes, count: int, what: str = "padding") -> tuple[int, ...]:
    """What is added before and after each axis: one number, one for each axis or two for each. Raises MSC0813."""
    if isinstance(value, Sequence) and len(value) == 2 * count:
        return _integers(value, "one integer or 2" if count == 1 else f"one integer, {count} or {2 * count}", what)
    return tuple(side for size in spread(value, count, what) for side in (size, size))


def mode_and_pad(pad_mode: str, padding: Sizes, count: int, function: str) -> tuple[str, tuple[int, ...] | None]:
    """The padding word in lower case, and the amounts if it is "pad". Raises MSC0813 for amounts beside others."""
    word = str(pad_mode).lower()
    amounts = pads(padding, count)
    if word == "pad":
        return word, amounts
    if any(amounts):
        raise ApiValueError("MSC0813", f"{function}: padding {padding} needs pad_mode='pad'; it is {pad_mode!r}")
    return word, None


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    pad_mode: str,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
    count: int,
) -> Tensor:
    """Convolution along `count` axes of x `[n, ic, spatial...]` with weights `[oc, ic / groups, kernel...]`."""
    name = f"conv{count}d"
    word, pad = mode_and_pad(pad_mode, padding, count, name)
    x = only_tensor(input, name)
    single = x.ndim == count + 1
    y = apply(
        name,
        expand_dims(x, 0) if single else x,
        weight,
        bias,
        pad_mode=word,
        pad=pad,
        stride=spread(stride, count, "stride"),
        dilation=spread(dilation, count, "dilation"),
        group=groups,
    )
    return squeeze(y, 0) if single else y


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    pad_mode: str = "valid",
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution along one axis: x `[n, ic, w]`, weight `[oc, ic / groups, kw]`."""
    return convolution(input, weight, bias, stride, pad_mode, padding, dilation, groups, 1)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    pad_mode: str = "valid",
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution of images: x `[n, ic, h, w]`, weight `[oc, ic / groups, kh, kw]`."""
    return convolution(input, weight, bias, stride, pad_mode, padding, dilation, groups, 2)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    pad_mode: str = "valid",
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution of volumes: x `[n, ic, d, h, w]`, weight `[oc, ic / groups, kd, kh, kw]`."""
    return convolution(input, weight, bias, stride, pad_mode, padding, dilation, groups, 3)


def transposed_convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    pad_mode: str,
    padding: Sizes,
    output_padding: Sizes,
    dilation: Sizes,
    groups: int,
    count: int,
) -> Tensor:
    """The gradient of a convolution to its input: weight `[ic, oc / groups, kernel...]`."""
    name = f"conv{count}d_transpose"
    word, pad = mode_and_pad(pad_mode, padding, count, name)
    return apply(
        name,
        only_tensor(input, name),
        weight,
        bias,
        pad_mode=word,
        pad=pad,
        stride=spread(stride, count, "stride"),
        dilation=spread(dilation, count, "dilation"),
        output_padding=spread(output_padding, count, "output_padding"),
        group=groups,
    )


def pooling(
    kind: str,
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    pad_mode: str,
    padding: Sizes,
    count: int,
    *,
    ceil_mode: bool = False,
    dilation: Sizes = 1,
    count_include_pad: bool | None = None,
) -> Tensor:
    """Pooling of x `[n, c, spatial...]` along `count` axes; without n as well. `stride` None is the window's size."""
    name = f"{kind}_pool{count}d"
    word, pad = mode_and_pad(pad_mode, padding, count, name)
    kernel = spread(kernel_size, count, "kernel_size")
    single = only_tensor(x, name).ndim == count + 1
    y = apply(
        name,
        expand_dims(x, 0) if single else x,
        kernel_size=kernel,
        stride=kernel if stride is None else spread(stride, count, "stride"),
        pad_mode=word,
        pad=pad,
        ceil_mode=ceil_mode,
        dilation=spread(dilation, count, "dilation"),
        **({} if count_include_pad is None else {"count_include_pad": count_include_pad}),
    )
    return squeeze(y, 0) if single else y


def max_pool2d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    return_indices: bool = False,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest element of each window of images; `stride` None is the size of the window."""
    if return_indices:
        raise ApiValueError("MSC0813", "max_pool2d: where the largest elements stand is not computed (return_indices)")
    return pooling("max", x, kernel_size, stride, "pad", padding, 2, ceil_mode=ceil_mode, dilation=dilation)


def avg_pool2d(
    input_x: Tensor,
    kernel_size: Sizes = 1,
    stride: Sizes | None = 1,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int = 0,
) -> Tensor:
    """The mean of each window of images; the sum over `divisor_override` if that is given."""
    y = pooling(
        "avg",
        input_x,
        kernel_size,
        stride,
        "pad",
        padding,
        2,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad or bool(divisor_override),
    )
    return mul(y, math.prod(spread(kernel_size, 2, "kernel_size")) / divisor_override) if divisor_override else y


def avg_pool1d(
    input_x: Tensor,
    kernel_size: Sizes = 1,
    stride: Sizes | None = 1,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window along the last axis."""
    return pooling(
        "avg", input_x, kernel_size, stride, "pad", padding, 1, ceil_mode=ceil_mode, count_include_pad=count_include_pad
    )


def adaptive_pool(kind: str, input: Tensor, output_size: int | Sequence[int | None], count: int) -> Tensor:
    """Pooling to a size: place i of an axis sees elements from floor(i n / m) to ceil((i + 1) n / m).

    The last axis comes first, so that the first of equal largest elements is the first in the order of the elements.
    """
    wanted = (output_size,) * count if isinstance(output_size, int) else tuple(output_size)
    x = only_tensor(input, f"adaptive_{kind}_pool{count}d")
    sizes = [n if w is None else w for w, n in zip(wanted, x.shape[-count:], strict=True)]
    places = list(enumerate(sizes, start=x.ndim - count))
    for axis, size in reversed(places) if kind == "max" else places:
        x = _adapted(kind, x, axis, size)
    return x


def _adapted(kind: str, x: Tensor, axis: int, size: int) -> Tensor:
    """One axis at a time: windows of one size by a reshape, others by a table of places."""
    old = x.shape[axis]
    if size < 1:
        raise ApiValueError("MSC0813", f"adaptive pooling: output size {size}; it must be 1 or more")
    reduce = {"avg": "reduce_mean", "max": "reduce_max"}[kind]
    ties = {"to_first": True} if kind == "max" else {}
    if old % size == 0:
        parted = reshape(x, (*x.shape[:axis], size, old // size, *x.shape[axis + 1 :]))
        return apply(reduce, parted, axis=(axis + 1,), keep_dims=False, **ties)
    outputs = np.arange(size)
    starts, ends = outputs * old // size, -(-(outputs + 1) * old // size)
    widest = int((ends - starts).max())
    places = np.minimum(starts[:, None] + np.arange(widest), ends[:, None] - 1)
    windows = apply("gather", x, Tensor.of(places.reshape(-1)), axis=axis)
    parted = reshape(windows, (*x.shape[:axis], size, widest, *x.shape[axis + 1 :]))
    if kind == "max":
        return apply(reduce, parted, axis=(axis + 1,), keep_dims=False, **ties)
    real = np.arange(widest) < (ends - starts)[:, None]
    shape = (size, widest, *(1,) * (x.ndim - axis - 1))
    kept = where(Tensor.of(real.reshape(shape)), parted, 0.0)
    total = apply("reduce_sum", kept, axis=(axis + 1,), keep_dims=False)
    counts = Tensor.of(real.sum(1).reshape(shape[0], *shape[2:]).astype(x.dtype.numpy))
    return div(total, counts)


def adaptive_avg_pool1d(input: Tensor, output_size: int) -> Tensor:
    """The means of as many parts of the last axis as `output_size` says."""
    return adaptive_pool("avg", input, (output_size,), 1)


def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
    """The means of parts of images: an image of `output_size`; None keeps a size."""
    return adaptive_pool("avg", input, output_size, 2)


def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
    """The means of parts of volumes: a volume of `output_size`; None keeps a size."""
    return adaptive_pool("avg", input, output_size, 3)


def adaptive_max_pool1d(input: Tensor, output_size: int) -> Tensor:
    """The largest elements of as many parts of the last axis as `output_size` says."""
    return adaptive_pool("max", input, (output_size,), 1)


def adaptive_max_pool2d(input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
    """The largest elements of parts of images: an image of `output_size`; None keeps a size."""
    return adaptive_pool("max", input, output_size, 2)


def in_format(data_format: str, function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """A function of images `[n, c, h, w]`; with the format "NHWC" they, and those that it gives, are `[n, h, w, c]`."""
    if data_format != "NHWC":
        return function(x)
    return transpose(function(transpose(x, (0, 3, 1, 2))), (0, 2, 3, 1))
