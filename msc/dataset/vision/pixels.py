"""Arithmetic on images: [height, width] or [height, width, channels]."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from msc.dataset.transforms.arguments import refuse
from msc.dataset.values import Array
from msc.dataset.vision.decoding import is_picture


class Inter(enum.IntEnum):
    """Ways to interpolate."""

    NEAREST = 0
    LINEAR = 1
    BILINEAR = 1
    CUBIC = 2
    BICUBIC = 2
    AREA = 3
    PILCUBIC = 4
    ANTIALIAS = 5


class Border(enum.StrEnum):
    """What stands outside of an image."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class ConvertMode(enum.IntEnum):
    """Conversions of colours."""

    COLOR_RGB2GRAY = 7
    COLOR_RGB2BGR = 4
    COLOR_BGR2RGB = 4
    COLOR_GRAY2RGB = 8


def image(transform: str, value: Any) -> Array:
    """An image as an array. Raises MSC0874 for what is none."""
    found = np.asarray(value) if is_picture(value) else value
    if not isinstance(found, np.ndarray):
        refuse(transform, "the value", value, "an image: an array, or an image of Pillow's", is_type=True)
    if found.ndim not in (2, 3) or found.dtype.kind not in "uifb":
        is_file = found.ndim == 1 and found.dtype == np.uint8
        advice = (
            "these are the bytes of a file: decode=True in the data set, or vision.Decode() first" if is_file else None
        )
        what = f"{found.dtype} of shape {list(found.shape)}"
        refuse(transform, "the value", what, "[height, width, channels]", advice=advice)
    return found


def rounded(values: Array, like: Array) -> Array:
    """Numbers in the element type of an image: integers are rounded half up, and kept in their range."""
    if like.dtype.kind == "f":
        return values.astype(like.dtype)
    limits = np.iinfo(like.dtype)
    return np.clip(np.floor(values + 0.5), limits.min, limits.max).astype(like.dtype)


def _cubic(distance: Array, a: float = -0.75) -> Array:
    """The cubic kernel, with OpenCV's a by default."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _lanczos(distance: Array) -> Array:
    return np.where(np.abs(distance) < 3, np.sinc(distance) * np.sinc(distance / 3), 0.0)


def _triangle(distance: Array) -> Array:
    return np.maximum(0.0, 1.0 - np.abs(distance))


_KERNELS: dict[Inter, Callable[[Array], Array]] = {
    Inter.LINEAR: _triangle,
    Inter.AREA: _triangle,
    Inter.CUBIC: _cubic,
    Inter.PILCUBIC: lambda distance: _cubic(distance, -0.5),
    Inter.ANTIALIAS: _lanczos,
}


@functools.lru_cache(64)
def _weights(size: int, wanted: int, method: Inter) -> Array:
    """The matrix [wanted, size] from an axis to a resized one, with half-pixel centres.

    Edges are repeated; the methods of Pillow's, which average where an image gets smaller, leave out what is beyond.
    """
    scale = size / wanted
    if method is Inter.NEAREST:
        return np.eye(size)[nearest(size, wanted)]
    if method is Inter.AREA and scale > 1:
        ends = np.arange(wanted + 1) * scale
        cover = np.minimum(ends[1:, None], np.arange(size) + 1) - np.maximum(ends[:-1, None], np.arange(size))
        return np.maximum(cover, 0) / scale
    averages = method in (Inter.PILCUBIC, Inter.ANTIALIAS)
    smooth = max(scale, 1.0) if averages else 1.0
    kernel = _KERNELS[method]
    centres = (np.arange(wanted) + 0.5) * scale - 0.5
    reach = int(np.ceil(3 * smooth)) + 1
    made = np.zeros((wanted, size))
    for offset in range(-reach, reach + 1):
        places = np.floor(centres).astype(np.int64) + offset
        share = kernel((places - centres) / smooth)
        if averages:
            share = np.where((places >= 0) & (places < size), share, 0.0)
        np.add.at(made, (np.arange(wanted), np.clip(places, 0, size - 1)), share)
    return made / made.sum(1, keepdims=True)


def resized(picture: Array, size: tuple[int, int], method: Inter) -> Array:
    """An image in another size."""
    if picture.shape[:2] == size:
        return picture
    if method is Inter.LINEAR and picture.dtype == np.uint8:
        return _resized_in_integers(picture, size)
    rows, columns = (_weights(n, m, method) for n, m in zip(picture.shape[:2], size, strict=True))
    planes = picture[..., None] if picture.ndim == 2 else picture
    made = np.einsum("ij,jkc->ikc", rows, np.einsum("kl,jlc->jkc", columns, planes, optimize=True), optimize=True)
    return rounded(made.reshape(*size, *picture.shape[2:]), picture)


def shares(size: int | Array, wanted: int) -> tuple[Array, Array, Array]:
    """For each place of a resized axis: its neighbour below, the one above, and what each counts, of 2048.

    Sizes [rows, 1] give those of each row.
    """
    scale = size / wanted
    places = ((np.arange(wanted) + 0.5) * scale - 0.5).astype(np.float32)
    below = np.floor(places)
    share = places - below
    first = below.astype(np.int64)
    counts = np.rint(np.stack([1 - share, share], -1) * 2048).astype(np.int64)
    return np.clip(first, 0, size - 1), np.clip(first + 1, 0, size - 1), counts


def nearest(size: int | Array, wanted: int) -> Array:
    """For each place of a resized axis: the one that it is taken from."""
    return np.minimum((np.arange(wanted) * (size / wanted)).astype(np.int64), size - 1)


def padded_places(size: int, before: int, after: int, border: Border) -> Array:
    """For each place of an axis with more at its ends: the one that it is taken from, -1 for what is filled."""
    if border is Border.CONSTANT:
        return np.concatenate([np.full(before, -1), np.arange(size), np.full(after, -1)])
    return np.pad(np.arange(size), (before, after), border.value)


def _resized_in_integers(picture: Array, size: tuple[int, int]) -> Array:
    """Linear interpolation of bytes in the fixed-point arithmetic of OpenCV's, which MindSpore's pixels come from."""
    planes = picture[..., None] if picture.ndim == 2 else picture
    left, right, counts = shares(planes.shape[1], size[1])
    wide = _weighed(planes, (left, right), counts, 1, 4)
    above, below, counts = shares(planes.shape[0], size[0])
    made = _weighed(wide, (above, below), counts, 0, 16)
    made += 2
    made >>= 2
    return made.astype(np.uint8).reshape(*size, *picture.shape[2:])


def _weighed(planes: Array, places: tuple[Array, Array], counts: Array, axis: int, bits: int) -> Array:
    """Two places along an axis, each times its count; along height each is shifted by itself, along width their sum."""
    weights = counts.astype(np.int32).T.reshape(2, *(-1 if k == axis else 1 for k in range(planes.ndim)))
    first, second = (np.take(planes, p, axis) * w for p, w in zip(places, weights, strict=True))
    if axis == 0:
        first >>= bits
        second >>= bits
        return np.add(first, second, out=first)
    first += second
    return np.right_shift(first, bits, out=first)


def size_for(picture: Array, size: int | tuple[int, int]) -> tuple[int, int]:
    """Height and width; one number is the shorter side, and the other keeps the proportion."""
    if isinstance(size, tuple):
        return size
    height, width = picture.shape[:2]
    if height <= width:
        return size, max(int(size * width / height), 1)
    return max(int(size * height / width), 1), size


def padded(picture: Array, sides: tuple[int, int, int, int], fill: Any, border: Border) -> Array:
    """An image with more on the left, top, right and bottom."""
    left, top, right, bottom = sides
    widths = [(top, bottom), (left, right)] + [(0, 0)] * (picture.ndim - 2)
    if border is not Border.CONSTANT:
        return np.pad(picture, widths, border.value)
    made = np.empty([n + sum(w) for n, w in zip(picture.shape, widths, strict=True)], picture.dtype)
    made[...] = fill
    made[top : top + picture.shape[0], left : left + picture.shape[1]] = picture
    return made


def cropped(picture: Array, top: int, left: int, height: int, width: int) -> Array:
    """A part of an image."""
    return picture[top : top + height, left : left + width]


def warped(picture: Array, inverse: Array, size: tuple[int, int], method: Inter, fill: Any) -> Array:
    """An image under an affine map, whose `inverse` [2, 3] takes places (x, y) of the result to those of the image."""
    rows, columns = np.meshgrid(np.arange(size[0]), np.arange(size[1]), indexing="ij")
    x = inverse[0, 0] * columns + inverse[0, 1] * rows + inverse[0, 2]
    y = inverse[1, 0] * columns + inverse[1, 1] * rows + inverse[1, 2]
    planes = (picture[..., None] if picture.ndim == 2 else picture).astype(np.float64)
    outside = np.zeros((1, 1, planes.shape[2]))
    outside[...] = fill
    if method is Inter.NEAREST:
        made = _at(planes, np.floor(y + 0.5), np.floor(x + 0.5), outside)
    else:
        made = _blended(planes, y, x, outside)
    return rounded(made.reshape(*size, *picture.shape[2:]), picture)


def _blended(planes: Array, y: Array, x: Array, outside: Array) -> Array:
    top, left = np.floor(y), np.floor(x)
    down, right = (y - top)[..., None], (x - left)[..., None]
    above = _at(planes, top, left, outside) * (1 - right) + _at(planes, top, left + 1, outside) * right
    below = _at(planes, top + 1, left, outside) * (1 - right) + _at(planes, top + 1, left + 1, outside) * right
    return above * (1 - down) + below * down


def _at(planes: Array, y: Array, x: Array, outside: Array) -> Array:
    height, width = planes.shape[:2]
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    rows = np.clip(y, 0, height - 1).astype(np.int64)
    columns = np.clip(x, 0, width - 1).astype(np.int64)
    return np.where(inside[..., None], planes[rows, columns], outside)


def affine(angle: float, translate: tuple[float, float], scale: float, shear: tuple[float, float], size: Any) -> Array:
    """The inverse [2, 3] of a turn by degrees against the clock, a shear, a scale and a shift, around the centre."""
    turn = np.deg2rad(-angle)
    first, second = np.deg2rad(shear)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    sheared = rotation @ np.array([[1.0, -np.tan(first)], [-np.tan(second), 1.0]])
    forward = np.linalg.inv(sheared * scale)
    centre = (np.array([size[1], size[0]]) - 1) / 2
    shift = centre - forward @ (centre + np.asarray(translate))
    return np.concatenate([forward, shift[:, None]], 1)


def luminance(picture: Array) -> Array:
    """The brightness [height, width] of colours, as ITU-R 601 weighs them."""
    if picture.ndim == 2 or picture.shape[2] == 1:
        return picture.reshape(picture.shape[:2]).astype(np.float64)
    return picture[..., :3].astype(np.float64) @ np.array([0.299, 0.587, 0.114])


def mixed(picture: Array, other: Array | float, factor: float) -> Array:
    """Between another image, at 0, and this one, at 1; beyond it above 1. Halves are rounded as OpenCV does."""
    made = other + (picture.astype(np.float64) - other) * factor
    return rounded(made if picture.dtype.kind == "f" else np.rint(made), picture)


def hue_turned(picture: Array, turn: float) -> Array:
    """Colours with another hue, a share of the way around the circle of hues further; value and saturation stay.

    Hue in sixths from red over green and blue, and back: https://en.wikipedia.org/wiki/HSL_and_HSV.
    """
    colours = picture.astype(np.float64)
    value = colours.max(2, keepdims=True)
    chroma = value - colours.min(2, keepdims=True)
    red, green, blue = np.moveaxis(colours / np.where(chroma, chroma, 1.0), 2, 0)
    largest = colours.argmax(2)
    sixths = np.choose(largest, [green - blue, 2 + blue - red, 4 + red - green]) + 6 * turn
    distance = (sixths[..., None] + [5, 3, 1]) % 6
    return rounded(value - chroma * np.clip(np.minimum(distance, 4 - distance), 0, 1), picture)
