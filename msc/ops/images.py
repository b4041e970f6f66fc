"""Padding and resizing, and what moves pixels into channels."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

import numpy as np

from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Number, Tensor
from msc.ops.operands import as_float, only_tensor
from msc.ops.shapes import reshape, sizes_of, transpose
from msc.support.diagnostics import did_you_mean

__all__ = ["interpolate", "pad", "pixel_shuffle", "pixel_unshuffle", "unfold"]

_MODES = {
    "constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap",
    "edge": "edge", "symmetric": "symmetric",
}  # fmt: skip


def pad(input_x: Tensor, padding: Sequence[int], mode: str = "constant", value: Number | None = None) -> Tensor:
    """Elements added before and after axes: pairs, that of the last axis first. Negative ones cut off."""
    x, amounts = only_tensor(input_x, "pad"), sizes_of(padding)
    if mode not in _MODES:
        near = did_you_mean(mode, _MODES) or f"there are {', '.join(_MODES)}"
        raise ApiValueError("MSC0203", f"pad: there is no mode {mode!r}", help=near)
    if len(amounts) % 2 or len(amounts) > 2 * x.ndim:
        message = f"pad: padding {amounts} does not fit a tensor of {x.shape}"
        raise ApiValueError("MSC0203", message, help="give two amounts for each axis, those of the last axis first")
    pairs = list(zip(amounts[0::2], amounts[1::2], strict=True))
    whole = [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]
    return padded(x, whole, mode, value or 0)


def padded(x: Tensor, pairs: Sequence[tuple[int, int]], mode: str, value: Number = 0) -> Tensor:
    """X with a pair of amounts for each axis."""
    if any(b < 0 or e < 0 for b, e in pairs):
        begin = tuple(builtins.max(-b, 0) for b, _ in pairs)
        end = tuple(n - builtins.max(-e, 0) for n, (_, e) in zip(x.shape, pairs, strict=True))
        x = apply("slice", x, begin=begin, end=end)
    amounts = (*(builtins.max(b, 0) for b, _ in pairs), *(builtins.max(e, 0) for _, e in pairs))
    if mode == "symmetric":
        return _symmetric(x, pairs)
    if not any(amounts):
        return x
    return apply("pad", x, pad=amounts, mode=_MODES[mode], value=float(value))


def _symmetric(x: Tensor, pairs: Sequence[tuple[int, int]]) -> Tensor:
    """Mirrored with the edge: each axis by a table of places."""
    for axis, (begin, end) in enumerate(pairs):
        if begin or end:
            places = np.pad(np.arange(x.shape[axis]), (begin, end), mode="symmetric")
            x = apply("gather", x, Tensor.of(places), axis=axis)
    return x


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Tensor:
    """Spatial axes resized; `mode` is "nearest", "linear", "bilinear", "trilinear" or "bicubic"."""
    x = as_float(only_tensor(input, "interpolate"))
    count = x.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ApiValueError("MSC0203", "interpolate: give either size or scale_factor")
    if size is not None:
        sizes = sizes_of(size) * (count if isinstance(size, int) else 1)
        factors = [m / n for m, n in zip(sizes, x.shape[2:], strict=True)]
    else:
        assert scale_factor is not None
        factors = [scale_factor] * count if isinstance(scale_factor, int | float) else list(scale_factor)
        sizes = tuple(int(n * f) for n, f in zip(x.shape[2:], factors, strict=True))
        if recompute_scale_factor:
            factors = [m / n for m, n in zip(sizes, x.shape[2:], strict=True)]
    return resized(x, sizes, factors, mode, bool(align_corners))


_RESIZE = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


def resized(x: Tensor, sizes: Sequence[int], factors: Sequence[float], mode: str, align_corners: bool) -> Tensor:
    """The spatial axes one after the other: each is a product with a matrix of weights, or rows chosen."""
    from msc.importers.onnx.operators.interpolation import AxisResize

    if mode not in _RESIZE:
        raise ApiValueError("MSC0203", f"interpolate: mode {mode!r} is not one of {', '.join(_RESIZE)}")
    for axis, (size, factor) in enumerate(zip(sizes, factors, strict=True), start=2):
        old = x.shape[axis]
        if size == old and factor == 1:
            continue
        if mode == "nearest" and not align_corners:
            places = np.minimum((np.arange(size) / factor).astype(np.int64), old - 1)
            x = apply("gather", x, Tensor.of(places), axis=axis)
            continue
        transformation = "align_corners" if align_corners else "half_pixel"
        kind = _RESIZE[mode]
        resize = AxisResize(
            old, size, factor, (0.0, 1.0), transformation, kind, "round_prefer_ceil", -0.75, False, False
        )
        x = apply("transform_axis", x, axis=axis, matrix=tuple(resize.weights().reshape(-1).tolist()))
    return x


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels `[n, c r r, h, w]` as pixels `[n, c, h r, w r]`."""
    *lead, channels, h, w = input.shape
    r = upscale_factor
    if channels % (r * r):
        raise ApiValueError("MSC0201", f"pixel_shuffle: {channels} channels do not divide by {r} squared")
    x = reshape(input, (*lead, channels // (r * r), r, r, h, w))
    k = len(lead)
    return reshape(
        transpose(x, (*range(k + 1), k + 3, k + 1, k + 4, k + 2)), (*lead, channels // (r * r), h * r, w * r)
    )


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels `[n, c, h r, w r]` as channels `[n, c r r, h, w]`."""
    *lead, channels, h, w = input.shape
    r, k = downscale_factor, len(input.shape) - 3
    x = reshape(input, (*lead, channels, h // r, r, w // r, r))
    return reshape(transpose(x, (*range(k + 1), k + 2, k + 4, k + 1, k + 3)), (*lead, channels * r * r, h // r, w // r))


def unfold(
    input: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """The windows of images `[n, c, h, w]` as columns: `[n, c kh kw, windows]`."""
    from msc.ops.windows import spread

    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = (spread(v, 2, "unfold") for v in (kernel_size, dilation, padding, stride))
    x = padded(input, ((0, 0), (0, 0), (ph, ph), (pw, pw)), "constant")
    n, c, h, w = x.shape
    rows = np.arange(0, h - (kh - 1) * dh, sh)
    columns = np.arange(0, w - (kw - 1) * dw, sw)
    tall = (np.arange(kh) * dh)[:, None, None, None] + rows[None, None, :, None]
    wide = (np.arange(kw) * dw)[None, :, None, None] + columns[None, None, None, :]
    places = (tall * w + wide).reshape(-1)
    taken = apply("gather", reshape(x, (n, c, h * w)), Tensor.of(places), axis=2)
    return reshape(taken, (n, c * kh * kw, len(rows) * len(columns)))
