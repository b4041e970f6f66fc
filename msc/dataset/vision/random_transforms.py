"""Transforms of images that draw, for each row, what they do."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from typing import Any

import numpy as np

from msc.dataset.pictures import Extents, Picture, Shares, Unplanned, behind
from msc.dataset.runs import Draws, draws
from msc.dataset.transforms.arguments import around, integer, number, pair, probability, refuse, span
from msc.dataset.values import Array
from msc.dataset.vision import pixels
from msc.dataset.vision.decoding import decoded
from msc.dataset.vision.pixels import Border, Inter
from msc.dataset.vision.transforms import (
    AdjustBrightness,
    AdjustContrast,
    AdjustHue,
    AdjustSaturation,
    HorizontalFlip,
    ImageTransform,
    VerticalFlip,
    border_of,
    method_of,
    sides_of,
    turned,
)
from msc.frontend.settings import unused


class RandomHorizontalFlip(HorizontalFlip):
    """Left and right exchanged, with a probability."""

    def __init__(self, prob: float = 0.5) -> None:
        self._chance = probability("RandomHorizontalFlip", prob)

    def changed(self, picture: Array) -> Any:
        return super().changed(picture) if draws().random() < self._chance else picture

    def planned(self, picture: Picture) -> None:
        width = picture.size[1]
        picture.move(lambda d: (None, _turned_round(d, width, self._chance)), random=True)


def _turned_round(draws: Draws, size: int, chance: float) -> Array:
    """The places along an axis, of each row: backward with a probability."""
    places = np.arange(size)
    return np.where((draws.random() < chance)[:, None], places[::-1], places)


class RandomVerticalFlip(VerticalFlip):
    """Top and bottom exchanged, with a probability."""

    def __init__(self, prob: float = 0.5) -> None:
        self._chance = probability("RandomVerticalFlip", prob)

    def changed(self, picture: Array) -> Any:
        return super().changed(picture) if draws().random() < self._chance else picture

    def planned(self, picture: Picture) -> None:
        height = picture.size[0]
        picture.move(lambda d: (_turned_round(d, height, self._chance), None), random=True)


class RandomCrop(ImageTransform):
    """A part of a size, at a random place; after padding, if that is asked for."""

    def __init__(
        self,
        size: Any,
        padding: Any = None,
        pad_if_needed: bool = False,
        fill_value: Any = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self._size = pair("RandomCrop", "size", size)
        self._sides = None if padding is None else sides_of("RandomCrop", padding)
        self._pads, self._fill, self._border = bool(pad_if_needed), fill_value, border_of("RandomCrop", padding_mode)

    def changed(self, picture: Array) -> Any:
        height, width = self._size
        if self._sides is not None:
            picture = pixels.padded(picture, self._sides, self._fill, self._border)
        down, right = max(height - picture.shape[0], 0), max(width - picture.shape[1], 0)
        if down or right:
            if not self._pads:
                refuse("RandomCrop", "the image", f"of {list(picture.shape[:2])}", f"at least {[height, width]}")
            picture = pixels.padded(picture, (right, down, right, down), self._fill, self._border)
        top, left = (draws().integers(n - m + 1) for n, m in zip(picture.shape[:2], self._size, strict=True))
        return pixels.cropped(picture, top, left, height, width)

    def planned(self, picture: Picture) -> None:
        left, top, right, bottom = self._sides or (0, 0, 0, 0)
        whole: list[Array] = []
        for size, wanted, before, after in zip(picture.size, self._size, (top, left), (bottom, right), strict=False):
            places = pixels.padded_places(size, before, after, self._border)
            missing = max(wanted - len(places), 0)
            if missing:
                if not self._pads:
                    raise Unplanned("the picture is smaller")
                places = _behind(pixels.padded_places(len(places), missing, missing, self._border), places)
            whole.append(places)

        def find(draws: Draws) -> tuple[Array, Array]:
            rows, columns = (_part(draws, places, n) for places, n in zip(whole, self._size, strict=True))
            return rows, columns

        pads = any((places < 0).any() for places in whole)
        picture.move(find, random=True, fill=self._fill if pads else None)


def _behind(later: Array, earlier: Array) -> Array:
    found = behind(later, earlier)
    assert found is not None
    return found


def _part(draws: Draws, places: Array, size: int) -> Array:
    """For each row `size` of the places, from a random one on."""
    first = np.asarray(draws.integers(len(places) - size + 1))
    return places[first[:, None] + np.arange(size)]


class RandomResizedCrop(ImageTransform):
    """A part of random size and proportion, resized to one size."""

    def __init__(
        self,
        size: Any,
        scale: Any = (0.08, 1.0),
        ratio: Any = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Inter = Inter.BILINEAR,
        max_attempts: int = 10,
    ) -> None:
        self._size = pair(self._kind, "size", size)
        self._scale, self._ratio = span(self._kind, "scale", scale, 0), span(self._kind, "ratio", ratio, 1e-6)
        self._method, self._attempts = (
            method_of(self._kind, interpolation),
            integer(self._kind, "max_attempts", max_attempts),
        )

    def changed(self, picture: Array) -> Any:
        part = self._parts(draws(), *picture.shape[:2])[0]
        return pixels.resized(pixels.cropped(picture, *map(int, part)), self._size, self._method)

    def _parts(self, draws: Draws, height: Any, width: Any) -> Array:
        """Top, left, height and width of the part of each row [rows, 4]: the first of the attempts that fits.

        Pictures have one size, or each row its own [rows, 1].
        """
        area = height * width * np.atleast_2d(draws.uniform(*self._scale, self._attempts))
        low, high = (math.log(bound) for bound in self._ratio)
        ratio = np.exp(np.atleast_2d(draws.uniform(low, high, self._attempts)))
        wide, tall = np.rint(np.sqrt(area * ratio)), np.rint(np.sqrt(area / ratio))
        fits = (wide > 0) & (wide <= width) & (tall > 0) & (tall <= height)
        first = fits.argmax(1)[:, None]
        size = np.concatenate([np.take_along_axis(v, first, 1) for v in (tall, wide)], 1).astype(np.int64)
        largest = (
            np.minimum(height, np.rint(width / self._ratio[0])),
            np.minimum(width, np.rint(height * self._ratio[1])),
        )
        found = fits.any(axis=1, keepdims=True)
        size = np.where(found, size, np.stack(largest, -1).reshape(-1, 2).astype(np.int64))
        room = np.stack([height, width], -1).reshape(-1, 2) - size
        limits = room.T + 1 if len(room) > 1 else room[0] + 1
        drawn = np.stack([np.atleast_1d(draws.integers(limit)) for limit in limits], 1)
        return np.concatenate([np.where(found, drawn, room // 2), size], 1)

    def planned(self, picture: Picture) -> None:
        height, width, _ = picture.size
        if self.DECODES and not picture.differ:
            raise Unplanned("it decodes bytes")

        def places(draws: Draws) -> tuple[Array, Array]:
            part = self._parts(draws, height, width)
            found = [part[:, k, None] + pixels.nearest(part[:, k + 2, None], self._size[k]) for k in range(2)]
            return found[0], found[1]

        def shares(draws: Draws, extents: Extents) -> tuple[Shares, Shares]:
            part = self._parts(draws, *extents)
            rows, columns = (pixels.shares(part[:, k + 2, None], self._size[k]) for k in range(2))
            first = [part[:, k, None] for k in range(2)]
            return (
                (rows[0] + first[0], rows[1] + first[0], rows[2]),
                (columns[0] + first[1], columns[1] + first[1], columns[2]),
            )

        if self._method is Inter.NEAREST and picture.dtype == np.uint8:
            picture.move(places, random=True)
        elif self._method is Inter.LINEAR:
            picture.blend(shares, self._size, random=True)
        else:
            raise Unplanned(f"it resizes by {self._method.name}")


class RandomCropDecodeResize(RandomResizedCrop):
    """RandomResizedCrop of the bytes of an image file."""

    DECODES = True

    def __call__(self, *values: Any) -> Any:
        return self.changed(decoded(np.asarray(values[0])))


class RandomRotation(ImageTransform):
    """Turned by an angle from a range of degrees; one number is a range around 0."""

    def __init__(
        self,
        degrees: Any,
        resample: Inter = Inter.NEAREST,
        expand: bool = False,
        center: Any = None,
        fill_value: Any = 0,
    ) -> None:
        self._degrees = around("RandomRotation", "degrees", degrees, 0.0)
        self._method, self._expand, self._fill = method_of("RandomRotation", resample), bool(expand), fill_value
        self._centre = None if center is None else pair("RandomRotation", "center", center, 0)

    def changed(self, picture: Array) -> Any:
        angle = draws().uniform(*self._degrees)
        return turned(picture, angle, self._method, self._expand, self._centre, self._fill)


class RandomAffine(ImageTransform):
    """A random turn, shift (shares of width and height), scale and shear (degrees)."""

    def __init__(
        self,
        degrees: Any,
        translate: Any = None,
        scale: Any = None,
        shear: Any = None,
        resample: Inter = Inter.NEAREST,
        fill_value: Any = 0,
    ) -> None:
        self._degrees = around("RandomAffine", "degrees", degrees, 0.0)
        shift = (0.0, 0.0) if translate is None else tuple(translate)
        if len(shift) not in (2, 4):
            refuse("RandomAffine", "translate", str(shift), "two shares, or two ranges of them")
        found = [number("RandomAffine", "translate", share, -1, 1) for share in shift]
        x, y = ((-found[0], found[0]), (-found[1], found[1])) if len(found) == 2 else (found[:2], found[2:])
        self._shift = (span("RandomAffine", "translate", x), span("RandomAffine", "translate", y))
        self._scale = (1.0, 1.0) if scale is None else span("RandomAffine", "scale", scale, 1e-6)
        self._shear = _shears(shear)
        self._method, self._fill = method_of("RandomAffine", resample), fill_value

    def changed(self, picture: Array) -> Any:
        height, width = picture.shape[:2]
        angle = draws().uniform(*self._degrees)
        shift = (draws().uniform(*self._shift[0]) * width, draws().uniform(*self._shift[1]) * height)
        scale = draws().uniform(*self._scale)
        shear = draws().uniform(*self._shear[0]), draws().uniform(*self._shear[1])
        inverse = pixels.affine(angle, shift, scale, shear, (height, width))
        return pixels.warped(picture, inverse, (height, width), self._method, self._fill)


def _shears(given: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    if given is None:
        return (0.0, 0.0), (0.0, 0.0)
    if isinstance(given, list | tuple) and len(tuple(given)) == 4:
        return span("RandomAffine", "shear", given[:2]), span("RandomAffine", "shear", given[2:])
    return around("RandomAffine", "shear", given, 0.0), (0.0, 0.0)


class RandomColorAdjust(ImageTransform):
    """Random brightness, contrast, saturation and hue, in a random order.

    Each is a range of factors, or a distance around 1; of the hue a range of turns from -0.5 to 0.5, or one around 0.
    """

    def __init__(
        self, brightness: Any = (1, 1), contrast: Any = (1, 1), saturation: Any = (1, 1), hue: Any = (0, 0)
    ) -> None:
        turns = around("RandomColorAdjust", "hue", hue, 0.0)
        span("RandomColorAdjust", "hue", turns, -0.5, 0.5)
        self._ranges: list[tuple[type[ImageTransform], float, tuple[float, float]]] = [
            (kind, 1.0, around("RandomColorAdjust", name, value, 1.0, 0.0))
            for kind, name, value in (
                (AdjustBrightness, "brightness", brightness),
                (AdjustContrast, "contrast", contrast),
                (AdjustSaturation, "saturation", saturation),
            )
        ]
        self._ranges.append((AdjustHue, 0.0, turns))

    def changed(self, picture: Array) -> Any:
        for place in draws().permutation(len(self._ranges)):
            kind, neutral, (low, high) = self._ranges[place]
            if low < high or low != neutral:
                picture = kind(draws().uniform(low, high)).changed(picture)
        return picture


class RandomErasing(ImageTransform):
    """With a probability a random part gets one value; images have their channels in front."""

    def __init__(
        self,
        prob: float = 0.5,
        scale: Any = (0.02, 0.33),
        ratio: Any = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
        max_attempts: int = 10,
    ) -> None:
        unused("RandomErasing", inplace=inplace)
        self._chance = probability("RandomErasing", prob)
        self._scale, self._ratio = span("RandomErasing", "scale", scale, 0), span("RandomErasing", "ratio", ratio, 1e-6)
        self._value, self._attempts = value, integer("RandomErasing", "max_attempts", max_attempts)

    def changed(self, picture: Array) -> Any:
        height, width = picture.shape[-2:]
        if draws().random() >= self._chance:
            return picture
        for _ in range(self._attempts):
            area = height * width * draws().uniform(*self._scale)
            ratio = draws().uniform(*self._ratio)
            high, wide = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if high < height and wide < width:
                top, left = draws().integers(height - high + 1), draws().integers(width - wide + 1)
                made = picture.copy()
                made[..., top : top + high, left : left + wide] = self._value
                return made
        return picture


class CutOut(ImageTransform):
    """Squares of zeros at random places."""

    def __init__(self, length: int, num_patches: int = 1, is_hwc: bool = True) -> None:
        self._length, self._patches = integer("CutOut", "length", length), integer("CutOut", "num_patches", num_patches)
        self._last = is_hwc

    def changed(self, picture: Array) -> Any:
        made = picture.copy()
        view = made if self._last or made.ndim == 2 else made.transpose(1, 2, 0)
        for _ in range(self._patches):
            y, x = (draws().integers(n) for n in view.shape[:2])
            half = self._length // 2
            view[max(y - half, 0) : y - half + self._length, max(x - half, 0) : x - half + self._length] = 0
        return made
