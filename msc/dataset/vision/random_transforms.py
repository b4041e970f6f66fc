"""Transforms of images that draw, for each row, what they do."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from typing import Any

import numpy as np

from msc.dataset.runs import draws
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


class RandomVerticalFlip(VerticalFlip):
    """Top and bottom exchanged, with a probability."""

    def __init__(self, prob: float = 0.5) -> None:
        self._chance = probability("RandomVerticalFlip", prob)

    def changed(self, picture: Array) -> Any:
        return super().changed(picture) if draws().random() < self._chance else picture


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
        top, left = (int(draws().integers(n - m + 1)) for n, m in zip(picture.shape[:2], self._size, strict=True))
        return pixels.cropped(picture, top, left, height, width)


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
        part = pixels.cropped(picture, *self._part(*picture.shape[:2]))
        return pixels.resized(part, self._size, self._method)

    def _part(self, height: int, width: int) -> tuple[int, int, int, int]:
        for _ in range(self._attempts):
            area = height * width * draws().uniform(*self._scale)
            ratio = math.exp(draws().uniform(math.log(self._ratio[0]), math.log(self._ratio[1])))
            wide, high = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < wide <= width and 0 < high <= height:
                top, left = int(draws().integers(height - high + 1)), int(draws().integers(width - wide + 1))
                return top, left, high, wide
        high, wide = min(height, round(width / self._ratio[0])), min(width, round(height * self._ratio[1]))
        return (height - high) // 2, (width - wide) // 2, high, wide


class RandomCropDecodeResize(RandomResizedCrop):
    """RandomResizedCrop of the bytes of an image file."""

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
                top, left = int(draws().integers(height - high + 1)), int(draws().integers(width - wide + 1))
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
            y, x = (int(draws().integers(n)) for n in view.shape[:2])
            half = self._length // 2
            view[max(y - half, 0) : y - half + self._length, max(x - half, 0) : x - half + self._length] = 0
        return made
