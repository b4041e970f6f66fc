"""Images read between their pixels: regions of interest, grids, crops; windows that say where their maximum stands."""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor, tensor_method
from msc.ops import (
    activation,
    arithmetic,
    comparison,
    creation,
    images,
    joining,
    linear,
    reductions,
    scattering,
    selection,
    shapes,
    unary,
    windows,
)
from msc.ops.operands import as_float, cast
from msc.ops.primitive import operator

__all__ = [
    "AffineGrid", "CropAndResize", "GridSampler2D", "Im2Col", "MaxPoolWithArgmax", "MaxPoolWithArgmaxV2", "ROIAlign",
    "affine_grid", "channel_shuffle", "col2im", "crop_and_resize", "fold", "grid_sample", "lp_pool1d", "lp_pool2d",
    "upsample",
]  # fmt: skip


def _rows(images_: Tensor) -> Tensor:
    """The pixels of images `[n, c, h, w]` as rows `[n h w, c]`."""
    n, c, h, w = images_.shape
    return shapes.reshape(shapes.transpose(images_, (0, 2, 3, 1)), (n * h * w, c))


class _Pixels:
    """Pixels of images at computed places; `image` is the number of the image of each place, and broadcasts."""

    def __init__(self, images_: Tensor, image: Tensor) -> None:
        _, self.channels, self.height, self.width = images_.shape
        self._table = _rows(as_float(images_))
        self._first = arithmetic.mul(cast(image, dtypes.int64), self.height * self.width)

    def at(self, y: Tensor, x: Tensor) -> Tensor:
        """The pixels at whole places inside of the images, channels last."""
        place = arithmetic.add(arithmetic.mul(cast(y, dtypes.int64), self.width), cast(x, dtypes.int64))
        return apply("gather", self._table, arithmetic.add(place, self._first), axis=0)

    def inside(self, y: Tensor, x: Tensor) -> Tensor:
        """The pixels at whole places, 0 outside."""
        there = comparison.logical_and(_within(y, self.height), _within(x, self.width))
        found = self.at(activation.clamp(y, 0, self.height - 1), activation.clamp(x, 0, self.width - 1))
        return arithmetic.mul(found, shapes.expand_dims(cast(there, found.dtype), -1))

    def between(self, y: Tensor, x: Tensor, read: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Linear interpolation of the four pixels around places."""
        low_y, low_x = unary.floor(y), unary.floor(x)
        part_y, part_x = arithmetic.sub(y, low_y), arithmetic.sub(x, low_x)
        total = None
        for i, wy in enumerate((arithmetic.sub(1.0, part_y), part_y)):
            for j, wx in enumerate((arithmetic.sub(1.0, part_x), part_x)):
                weight = shapes.expand_dims(arithmetic.mul(wy, wx), -1)
                term = arithmetic.mul(read(arithmetic.add(low_y, float(i)), arithmetic.add(low_x, float(j))), weight)
                total = term if total is None else arithmetic.add(total, term)
        assert total is not None
        return total


def _within(x: Tensor, size: int) -> Tensor:
    return comparison.logical_and(x >= 0, x <= size - 1)


# Grids.


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool = False) -> Tensor:
    """Where images `size` `[n, c, h, w]` or volumes are read under affine maps `[n, 2, 3]`: `[n, h, w, 2]`, or of 3."""
    spatial = tuple(int(s) for s in size)[2:]
    lines = [np.linspace(-1, 1, s) if align_corners else (2 * np.arange(s) + 1) / s - 1 for s in spatial]
    axes = np.meshgrid(*lines, indexing="ij")[::-1]
    points = np.stack([*axes, np.ones(spatial)], -1).reshape(-1, len(spatial) + 1).astype(theta.dtype.numpy)
    found = linear.matmul(Tensor(points), shapes.swapaxes(theta, -1, -2))
    return shapes.reshape(found, (theta.shape[0], *spatial, len(spatial)))


def _reflected(x: Tensor, low: float, high: float) -> Tensor:
    """Mirrored into [low, high] as often as it takes."""
    span = high - low
    if span <= 0:
        return creation.zeros_like(x)
    away = unary.abs(arithmetic.sub(x, low))
    rest = arithmetic.sub(away, arithmetic.mul(unary.floor(arithmetic.mul(away, 1 / (2 * span))), 2 * span))
    return arithmetic.add(selection.where(rest > span, arithmetic.sub(2 * span, rest), rest), low)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Images `[n, c, h, w]` read at places `[n, y, x, 2]` in [-1, 1]: `[n, c, y, x]`. Raises MSC0203.

    `mode` is "bilinear" or "nearest"; outside there are zeros, or what "border" and "reflection" say.
    """
    if input.ndim != 4 or mode not in ("bilinear", "nearest"):
        advice = "images [n, c, h, w] are read with mode 'bilinear' or 'nearest'"
        raise ApiValueError(
            "MSC0203", f"grid_sample: mode {mode!r} of a tensor of {input.shape} is not there", help=advice
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ApiValueError(
            "MSC0203", f"grid_sample: padding_mode is {padding_mode!r}", help="zeros, border, reflection"
        )
    n = input.shape[0]
    pixels = _Pixels(input, creation.arange(n).reshape((n, 1, 1)))
    places: list[Tensor] = []
    for i, size in ((1, pixels.height), (0, pixels.width)):
        x = shapes.squeeze(joining.narrow(grid, -1, i, 1), -1)
        if align_corners:
            x = arithmetic.mul(arithmetic.add(x, 1.0), (size - 1) / 2)
            low, high = 0.0, size - 1.0
        else:
            x = arithmetic.sub(arithmetic.mul(arithmetic.add(x, 1.0), size / 2), 0.5)
            low, high = -0.5, size - 0.5
        x = _reflected(x, low, high) if padding_mode == "reflection" else x
        places.append(x if padding_mode == "zeros" else activation.clamp(x, 0.0, size - 1.0))
    if mode == "nearest":
        found = pixels.inside(*(unary.round(p) for p in places))
    else:
        found = pixels.between(places[0], places[1], pixels.inside)
    return cast(shapes.transpose(found, (0, 3, 1, 2)), input.dtype)


# Regions and crops.


def _roi_align(
    features: Tensor,
    rois: Tensor,
    *,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sample_num: int = 2,
    roi_end_mode: int = 1,
) -> Tensor:
    """Means of `sample_num` squared samples in each part of regions `[rois, 5]` (image, x0, y0, x1, y1) (He, 2017)."""
    if sample_num < 1:
        raise ApiValueError("MSC0203", f"ROIAlign: sample_num is {sample_num}; it must be 1 or more")
    image, *corners = (shapes.squeeze(joining.narrow(rois, 1, i, 1), 1) for i in range(5))
    x0, y0 = (arithmetic.mul(c, spatial_scale) for c in corners[:2])
    x1, y1 = (arithmetic.mul(arithmetic.add(c, float(roi_end_mode)), spatial_scale) for c in corners[2:])
    pixels = _Pixels(features, image.reshape((-1, 1, 1)))

    def places(low: Tensor, high: Tensor, parts: int) -> Tensor:
        size = arithmetic.sub(high, low)
        size = size if roi_end_mode else arithmetic.maximum(size, 1.0)
        steps = Tensor(((np.arange(parts * sample_num) + 0.5) / (parts * sample_num)).astype(np.float32))
        return arithmetic.add(arithmetic.mul(size.reshape((-1, 1)), cast(steps, size.dtype)), low.reshape((-1, 1)))

    ys, xs = places(y0, y1, pooled_height), places(x0, x1, pooled_width)
    y, x = shapes.expand_dims(ys, 2), shapes.expand_dims(xs, 1)
    y = arithmetic.add(y, creation.zeros_like(x))
    x = arithmetic.add(x, creation.zeros_like(y))
    outside = (y < -1.0).logical_or(y > float(pixels.height)).logical_or(x < -1.0).logical_or(x > float(pixels.width))

    def read(y: Tensor, x: Tensor) -> Tensor:
        return pixels.at(activation.clamp(y, 0, pixels.height - 1), activation.clamp(x, 0, pixels.width - 1))

    y, x = activation.clamp(y, 0.0, pixels.height - 1.0), activation.clamp(x, 0.0, pixels.width - 1.0)
    found = arithmetic.mul(pixels.between(y, x, read), shapes.expand_dims(cast(outside == False, features.dtype), -1))  # noqa: E712
    split = (rois.shape[0], pooled_height, sample_num, pooled_width, sample_num, pixels.channels)
    return shapes.transpose(reductions.mean(shapes.reshape(found, split), (2, 4)), (0, 3, 1, 2))


def crop_and_resize(
    image: Tensor,
    boxes: Tensor,
    box_indices: Tensor,
    crop_size: Sequence[int],
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Tensor:
    """Boxes `[n, 4]` (y0, x0, y1, x1 in [0, 1]) of images `[batch, h, w, c]`, resized to `crop_size`.

    `method` is "bilinear" or "nearest"; what lies outside has `extrapolation_value`.
    """
    if method not in ("bilinear", "nearest"):
        raise ApiValueError("MSC0203", f"crop_and_resize: there is no method {method!r}")
    pixels = _Pixels(shapes.transpose(image, (0, 3, 1, 2)), box_indices.reshape((-1, 1, 1)))
    columns = [cast(shapes.squeeze(joining.narrow(boxes, 1, i, 1), 1), dtypes.float32) for i in range(4)]

    def places(low: Tensor, high: Tensor, size: int, count: int) -> Tensor:
        steps = Tensor(np.arange(count, dtype=np.float32))
        extent = arithmetic.sub(high, low)
        if count == 1:
            return arithmetic.mul(arithmetic.add(low, high), 0.5 * (size - 1)).reshape((-1, 1))
        step = arithmetic.mul(extent, (size - 1) / (count - 1)).reshape((-1, 1))
        return arithmetic.add(arithmetic.mul(step, steps), arithmetic.mul(low, float(size - 1)).reshape((-1, 1)))

    y = shapes.expand_dims(places(columns[0], columns[2], pixels.height, int(crop_size[0])), 2)
    x = shapes.expand_dims(places(columns[1], columns[3], pixels.width, int(crop_size[1])), 1)
    y = arithmetic.add(y, creation.zeros_like(x))
    x = arithmetic.add(x, creation.zeros_like(y))
    there = comparison.logical_and(_within(y, pixels.height), _within(x, pixels.width))

    def read(y: Tensor, x: Tensor) -> Tensor:
        return pixels.at(activation.clamp(y, 0, pixels.height - 1), activation.clamp(x, 0, pixels.width - 1))

    if method == "nearest":
        found = read(unary.floor(arithmetic.add(y, 0.5)), unary.floor(arithmetic.add(x, 0.5)))
    else:
        found = pixels.between(y, x, read)
    return selection.where(shapes.expand_dims(there, -1), found, float(extrapolation_value))


# Windows.


def _windows(
    x: Tensor, kernel: Any, stride: Any, pads: Sequence[int], dilation: Any
) -> tuple[Tensor, Tensor, Sequence[int]]:
    """The windows of images as `[n, c, kernel, places]`, where their elements stand, and how many places there are."""
    (kh, kw), (sh, sw), (dh, dw) = (windows.spread(v, 2, "kernel") for v in (kernel, stride, dilation))
    (n, c, _h, w), (top, bottom, left, right) = x.shape, pads
    padded = images.pad(x, (left, right, top, bottom), "constant", -np.inf if x.dtype.is_float else 0)
    count = [
        (size - (k - 1) * d - 1) // s + 1
        for size, k, d, s in zip(padded.shape[2:], (kh, kw), (dh, dw), (sh, sw), strict=True)
    ]
    rows = (np.arange(kh) * dh)[:, None, None, None] + (np.arange(count[0]) * sh)[None, None, :, None]
    columns = (np.arange(kw) * dw)[None, :, None, None] + (np.arange(count[1]) * sw)[None, None, None, :]
    within = np.broadcast_to(rows * padded.shape[3] + columns, (kh, kw, *count)).reshape(kh * kw, -1)
    own = np.broadcast_to((rows - top) * w + columns - left, (kh, kw, *count)).reshape(kh * kw, -1)
    flat = shapes.reshape(padded, (n, c, -1))
    taken = apply("gather", flat, Tensor.of(np.ascontiguousarray(within)), axis=2)
    return taken, Tensor.of(np.ascontiguousarray(own)), count


def _max_with_places(
    x: Tensor, kernel: Any, stride: Any, pads: Sequence[int], dilation: Any = 1
) -> tuple[Tensor, Tensor]:
    taken, own, count = _windows(x, kernel, stride, pads, dilation)
    which = reductions.argmax(taken, 2, True)
    values = selection.gather_elements(taken, 2, which)
    places = selection.gather_elements(shapes.broadcast_to(own, taken.shape), 2, which)
    shape = (*x.shape[:2], *count)
    return shapes.reshape(values, shape), shapes.reshape(places, shape)


def _max_pool_with_argmax(
    x: Tensor, *, kernel_size: Any = 1, strides: Any = 1, pad_mode: str = "valid", data_format: str = "NCHW"
) -> tuple[Tensor, Tensor]:
    """The largest elements of windows `[n, c, h, w]`, and where they stand in `[c, h, w]` (Int32)."""
    if data_format != "NCHW":
        raise ApiValueError("MSC0203", f"MaxPoolWithArgmax: data_format is {data_format!r}, not 'NCHW'")
    kernel, stride = windows.spread(kernel_size, 2, "kernel_size"), windows.spread(strides, 2, "strides")
    pads: list[int] = [0, 0, 0, 0]
    if pad_mode.lower() == "same":
        pads.clear()
        for size, k, s in zip(x.shape[2:], kernel, stride, strict=True):
            extra = max((-(-size // s) - 1) * s + k - size, 0)
            pads += [extra // 2, extra - extra // 2]
    values, places = _max_with_places(x, kernel, stride, pads)
    channel = creation.arange(x.shape[1]).reshape((-1, 1, 1))
    return values, cast(arithmetic.add(places, arithmetic.mul(channel, x.shape[2] * x.shape[3])), dtypes.int32)


def _max_pool_with_argmax_v2(
    x: Tensor,
    *,
    kernel_size: Any,
    strides: Any = None,
    pads: Any = 0,
    dilation: Any = (1, 1),
    ceil_mode: bool = False,
    argmax_type: Any = dtypes.int64,
) -> tuple[Tensor, Tensor]:
    """The largest elements of windows `[n, c, h, w]`, and where they stand in their images."""
    if ceil_mode:
        raise ApiValueError("MSC0203", "MaxPoolWithArgmaxV2: ceil_mode is not there", help="pad the images")
    top, left = windows.spread(pads, 2, "pads")
    stride = kernel_size if strides is None else strides
    values, places = _max_with_places(x, kernel_size, stride, (top, top, left, left), dilation)
    return values, cast(places, argmax_type)


@tensor_method("fold")
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Windows `[n, c kh kw, places]` added into images `[n, c, h, w]`: what `unfold` takes apart, summed."""
    (h, w), (kh, kw), (dh, dw), (ph, pw), (sh, sw) = (
        windows.spread(v, 2, "fold") for v in (shapes.sizes_of(output_size), kernel_size, dilation, padding, stride)
    )
    single = input.ndim == 2
    x = shapes.expand_dims(input, 0) if single else input
    n, channels = x.shape[0], x.shape[1] // (kh * kw)
    tall, wide = h + 2 * ph, w + 2 * pw
    rows = (np.arange(kh) * dh)[:, None, None, None] + np.arange(0, tall - (kh - 1) * dh, sh)[None, None, :, None]
    columns = (np.arange(kw) * dw)[None, :, None, None] + np.arange(0, wide - (kw - 1) * dw, sw)[None, None, None, :]
    places = (rows * wide + columns).reshape(-1)
    flat = shapes.transpose(shapes.reshape(x, (n * channels, -1)), (1, 0))
    table = creation.zeros((tall * wide, n * channels), x.dtype)
    summed = scattering.scattered(table, Tensor.of(places), flat, "add", "fold")
    whole = shapes.reshape(shapes.transpose(summed, (1, 0)), (n, channels, tall, wide))
    found = joining.narrow(joining.narrow(whole, 2, ph, h), 3, pw, w)
    return shapes.squeeze(found, 0) if single else found


def col2im(
    input_x: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding_value: Any, stride: Any
) -> Tensor:
    """Windows `[n, c, kernel, places]` added into images `[n, c, h, w]`."""
    n, c, kernel, places = input_x.shape
    size = tuple(int(s) for s in output_size)
    return fold(shapes.reshape(input_x, (n, c * kernel, places)), size, kernel_size, dilation, padding_value, stride)


def _im2col(x: Tensor, *, ksizes: Any, strides: Any = 1, dilations: Any = 1, pads: Any = 0) -> Tensor:
    """The windows of images as `[n, c, kernel, places]`."""
    found = images.unfold(x, ksizes, dilations, pads, strides)
    return shapes.reshape(found, (*x.shape[:2], -1, found.shape[-1]))


def _lp_pool(x: Tensor, p: float, kernel: Any, stride: Any, ceil_mode: bool, pool: Any, size: int) -> Tensor:
    powers = arithmetic.pow(x, float(p))
    means = pool(powers, kernel, kernel if stride is None else stride, 0, ceil_mode)
    total = arithmetic.mul(means, float(size))
    return arithmetic.pow(arithmetic.mul(unary.sign(total), activation.relu(unary.abs(total))), 1 / p)


def lp_pool1d(
    x: Tensor, norm_type: float, kernel_size: int, stride: int | None = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norms of windows along the last axis."""
    return _lp_pool(x, norm_type, kernel_size, stride, ceil_mode, windows.avg_pool1d, kernel_size)


def lp_pool2d(x: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The p-norms of windows of images."""
    size = int(np.prod(windows.spread(kernel_size, 2, "kernel_size")))
    return _lp_pool(x, norm_type, kernel_size, stride, ceil_mode, windows.avg_pool2d, size)


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Channels `[..., c, h, w]` of groups, taken in turn."""
    *lead, c, h, w = x.shape
    split = shapes.reshape(x, (*lead, groups, c // groups, h, w))
    return shapes.reshape(shapes.swapaxes(split, len(lead), len(lead) + 1), x.shape)


upsample = images.interpolate

AffineGrid = operator("AffineGrid", affine_grid, "align_corners")
CropAndResize = operator("CropAndResize", crop_and_resize, "method extrapolation_value")
GridSampler2D = operator("GridSampler2D", grid_sample)
Im2Col = operator("Im2Col", _im2col, "ksizes strides dilations pads")
MaxPoolWithArgmax = operator("MaxPoolWithArgmax", _max_pool_with_argmax, "kernel_size strides pad_mode data_format")
MaxPoolWithArgmaxV2 = operator(
    "MaxPoolWithArgmaxV2", _max_pool_with_argmax_v2, "kernel_size strides pads dilation ceil_mode argmax_type"
)
ROIAlign = operator("ROIAlign", _roi_align, "pooled_height pooled_width spatial_scale sample_num roi_end_mode")
