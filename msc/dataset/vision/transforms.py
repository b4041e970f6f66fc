"""Transforms of images that draw nothing."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from msc.dataset.pictures import Picture, Unplanned
from msc.dataset.transforms.arguments import array, integer, number, pair, refuse
from msc.dataset.transforms.general import Transform
from msc.dataset.values import Array
from msc.dataset.vision import pixels
from msc.dataset.vision.decoding import is_picture, picture, pillow
from msc.dataset.vision.pixels import Border, ConvertMode, Inter, image
from msc.frontend.dtypes import as_dtype

LARGEST = float(np.finfo(np.float32).max)


def method_of(transform: str, value: Any) -> Inter:
    """A way to interpolate."""
    if not isinstance(value, Inter):
        refuse(transform, "interpolation", value, "a member of vision.Inter", is_type=True)
    return value


def border_of(transform: str, value: Any) -> Border:
    """What stands outside of an image."""
    if not isinstance(value, Border):
        refuse(transform, "padding_mode", value, "a member of vision.Border", is_type=True)
    return value


def sides_of(transform: str, padding: Any) -> tuple[int, int, int, int]:
    """Left, top, right, bottom: of one number for all, two (left and right, top and bottom), or four."""
    given = tuple(cast("Sequence[Any]", padding)) if isinstance(padding, list | tuple) else (padding,)
    found = [integer(transform, "padding", side, 0) for side in given]
    if len(found) not in (1, 2, 4):
        refuse(transform, "padding", str(padding), "one integer, two or four")
    left, top, right, bottom = found * (4 // len(found))
    return left, top, right, bottom


def size_of(transform: str, value: Any) -> int | tuple[int, int]:
    """One integer, the shorter side, or height and width."""
    return pair(transform, "size", value) if isinstance(value, list | tuple) else integer(transform, "size", value)


class ImageTransform(Transform):
    """Base: `changed` gives the new image. What was an image of Pillow's becomes an array."""

    _computes = True
    """Whether pixels become others, and do not only lie elsewhere."""

    def __call__(self, *values: Any) -> Any:
        picture = image(self._kind, values[0])
        if picture.dtype.kind != "f" or not self._computes:
            return self.changed(picture)
        with np.errstate(invalid="ignore", over="ignore"):  # What is not finite stays so without a warning.
            return self.changed(picture)

    def changed(self, picture: Array) -> Any:
        """The new image."""
        raise NotImplementedError


class PixelTransform(ImageTransform):
    """Base: each pixel is changed by itself, in its channel."""

    def planned(self, picture: Picture) -> None:
        picture.look_up(self)


class Decode(Transform):
    """The bytes of an image file as [height, width, 3] of UInt8, or as an image of Pillow's."""

    def __init__(self, to_pil: bool = False) -> None:
        self._to_pil = bool(to_pil)

    DECODES = True

    def planned(self, picture: Picture) -> None:
        if self._to_pil or not picture.differ:
            raise Unplanned("it gives images of Pillow's" if self._to_pil else "it decodes bytes")

    def __call__(self, *values: Any) -> Any:
        found = picture(array("Decode", values[0]), "an image")
        return found if self._to_pil else np.asarray(found)


class ToPIL(ImageTransform):
    """An image of Pillow's."""

    def __call__(self, *values: Any) -> Any:
        if is_picture(values[0]):
            return values[0]
        found = image("ToPIL", values[0])
        return pillow().fromarray(found[..., 0] if found.ndim == 3 and found.shape[2] == 1 else found)


class ToNumpy(ImageTransform):
    """An array."""

    def changed(self, picture: Array) -> Any:
        return picture


class Resize(ImageTransform):
    """Another size: height and width, or that of the shorter side. Pixels have their centres at halves.

    An array that gets smaller is averaged by AREA, PILCUBIC and ANTIALIAS only, an image of Pillow's by all methods.
    """

    def __init__(self, size: Any, interpolation: Inter = Inter.LINEAR) -> None:
        self._size = size_of("Resize", size)
        self._method = method_of("Resize", interpolation)

    def __call__(self, *values: Any) -> Any:
        if is_picture(values[0]) and self._method is not Inter.AREA:
            height, width = pixels.size_for(np.asarray(values[0]), self._size)
            kinds = {Inter.NEAREST: 0, Inter.LINEAR: 2, Inter.ANTIALIAS: 1}
            return values[0].resize((width, height), kinds.get(self._method, 3))
        return super().__call__(*values)

    def changed(self, picture: Array) -> Any:
        return pixels.resized(picture, pixels.size_for(picture, self._size), self._method)

    def planned(self, picture: Picture) -> None:
        height, width, _ = picture.size
        if picture.differ and not isinstance(self._size, tuple):
            raise Unplanned("pictures differ in size, and keep their proportions")
        size = pixels.size_for(np.empty((height, width)), self._size)
        if size == (height, width) and not picture.differ:
            return
        if self._method is Inter.NEAREST and picture.dtype == np.uint8:
            places = pixels.nearest(height, size[0]), pixels.nearest(width, size[1])
            picture.move(lambda _: places)
        elif self._method is Inter.LINEAR:
            picture.blend(lambda _, sizes: (pixels.shares(sizes[0], size[0]), pixels.shares(sizes[1], size[1])), size)
        else:
            raise Unplanned(f"it resizes by {self._method.name}")


class Rescale(PixelTransform):
    """Pixels times a factor, plus a shift, as Float32."""

    def __init__(self, rescale: float, shift: float) -> None:
        self._factor = np.float32(number("Rescale", "rescale", rescale, -LARGEST, LARGEST))
        self._shift = np.float32(number("Rescale", "shift", shift, -LARGEST, LARGEST))

    def changed(self, picture: Array) -> Any:
        return picture.astype(np.float32) * self._factor + self._shift


class Normalize(PixelTransform):
    """(pixels - mean) / std, for each channel, as Float32."""

    def __init__(self, mean: Sequence[float], std: Sequence[float], is_hwc: bool = True) -> None:
        given = (np.asarray(v, np.float64).reshape(-1) for v in (mean, std))
        self._mean, self._std = (np.clip(v, -LARGEST, LARGEST).astype(np.float32) for v in given)
        if self._mean.shape != self._std.shape or not self._mean.size:
            refuse("Normalize", "std", f"of {self._std.size} numbers", f"as many as mean has, {self._mean.size}")
        if not (self._std > 0).all():
            refuse("Normalize", "std", str(list(std)), "numbers above 0")
        self._last = is_hwc

    def changed(self, picture: Array) -> Any:
        channels = 1 if picture.ndim == 2 else picture.shape[-1 if self._last else 0]
        if self._mean.size not in (1, channels):
            refuse("Normalize", "the image", f"one of {channels} channels", f"{self._mean.size} channels")
        shape = (-1,) if self._last or picture.ndim == 2 else (-1, 1, 1)
        return (picture.astype(np.float32) - self._mean.reshape(shape)) / self._std.reshape(shape)

    def planned(self, picture: Picture) -> None:
        if self._mean.size > 1 and self._last == picture.is_front:
            raise Unplanned("its channels lie along another axis")
        picture.look_up(self)


class HWC2CHW(ImageTransform):
    """Channels in front."""

    _computes = False

    def changed(self, picture: Array) -> Any:
        return np.ascontiguousarray(picture.transpose(2, 0, 1)) if picture.ndim == 3 else picture

    def planned(self, picture: Picture) -> None:
        picture.channels_first()


class ToTensor(ImageTransform):
    """Channels in front, pixels from 0 to 1, in an element type."""

    def __init__(self, output_type: Any = np.float32) -> None:
        self._dtype = as_dtype(output_type).numpy

    def changed(self, picture: Array) -> Any:
        planes = picture[..., None] if picture.ndim == 2 else picture
        made = np.ascontiguousarray(planes.transpose(2, 0, 1)).astype(np.float32)
        return (made / np.float32(255) if picture.dtype == np.uint8 else made).astype(self._dtype)

    def planned(self, picture: Picture) -> None:
        picture.rank = 3
        picture.look_up(lambda table: self(table).transpose(1, 2, 0))
        picture.channels_first()


class CenterCrop(ImageTransform):
    """The middle in a size; around a smaller image there are zeros."""

    def __init__(self, size: Any) -> None:
        self._size = pair("CenterCrop", "size", size)

    def changed(self, picture: Array) -> Any:
        height, width = self._size
        missing = [max(n - m, 0) for n, m in zip(self._size, picture.shape[:2], strict=True)]
        top, left = missing[0] // 2, missing[1] // 2
        found = pixels.padded(picture, (left, top, missing[1] - left, missing[0] - top), 0, Border.CONSTANT)
        return pixels.cropped(found, (found.shape[0] - height) // 2, (found.shape[1] - width) // 2, height, width)

    def planned(self, picture: Picture) -> None:
        places: list[Array] = []
        for wanted, size in zip(self._size, picture.size, strict=False):
            before = max(wanted - size, 0) // 2
            whole = pixels.padded_places(size, before, max(wanted - size, 0) - before, Border.CONSTANT)
            first = (len(whole) - wanted) // 2
            places.append(whole[first : first + wanted])
        picture.move(lambda _: (places[0], places[1]), fill=0)


class Crop(ImageTransform):
    """The part of a size at (top, left)."""

    def __init__(self, coordinates: Any, size: Any) -> None:
        self._place, self._size = pair("Crop", "coordinates", coordinates, 0), pair("Crop", "size", size)

    def changed(self, picture: Array) -> Any:
        if any(p + n > m for p, n, m in zip(self._place, self._size, picture.shape[:2], strict=True)):
            refuse("Crop", "the image", f"of {list(picture.shape[:2])}", f"{self._size} at {self._place} inside it")
        return pixels.cropped(picture, *self._place, *self._size)

    def planned(self, picture: Picture) -> None:
        if any(p + n > m for p, n, m in zip(self._place, self._size, picture.size, strict=False)):
            raise Unplanned("it leaves the picture")
        top, left = (np.arange(p, p + n) for p, n in zip(self._place, self._size, strict=True))
        picture.move(lambda _: (top, left))


class Pad(ImageTransform):
    """An image with more at its sides: one number, two (left and right, top and bottom) or four."""

    def __init__(self, padding: Any, fill_value: Any = 0, padding_mode: Border = Border.CONSTANT) -> None:
        self._sides, self._fill = sides_of("Pad", padding), fill_value
        self._border = border_of("Pad", padding_mode)

    def changed(self, picture: Array) -> Any:
        return pixels.padded(picture, self._sides, self._fill, self._border)

    def planned(self, picture: Picture) -> None:
        left, top, right, bottom = self._sides
        rows = pixels.padded_places(picture.size[0], top, bottom, self._border)
        columns = pixels.padded_places(picture.size[1], left, right, self._border)
        picture.move(lambda _: (rows, columns), fill=self._fill if self._border is Border.CONSTANT else None)


class HorizontalFlip(ImageTransform):
    """Left and right exchanged."""

    def changed(self, picture: Array) -> Any:
        return picture[:, ::-1]

    def planned(self, picture: Picture) -> None:
        places = np.arange(picture.size[1])[::-1]
        picture.move(lambda _: (None, places))


class VerticalFlip(ImageTransform):
    """Top and bottom exchanged."""

    def changed(self, picture: Array) -> Any:
        return picture[::-1]

    def planned(self, picture: Picture) -> None:
        places = np.arange(picture.size[0])[::-1]
        picture.move(lambda _: (places, None))


class Rotate(ImageTransform):
    """Turned against the clock by degrees around the centre; `expand` makes the image large enough for all of it."""

    def __init__(
        self,
        degrees: float,
        resample: Inter = Inter.NEAREST,
        expand: bool = False,
        center: Any = None,
        fill_value: Any = 0,
    ) -> None:
        self._degrees = number("Rotate", "degrees", degrees)
        self._method, self._expand, self._fill = method_of("Rotate", resample), bool(expand), fill_value
        self._centre = None if center is None else pair("Rotate", "center", center, 0)

    def changed(self, picture: Array) -> Any:
        return turned(picture, self._degrees, self._method, self._expand, self._centre, self._fill)


def turned(
    picture: Array, degrees: float, method: Inter, expand: bool, centre: tuple[int, int] | None, fill: Any
) -> Array:
    """An image turned against the clock."""
    height, width = picture.shape[:2]
    inverse = pixels.affine(degrees, (0.0, 0.0), 1.0, (0.0, 0.0), (height, width))
    if centre is not None:
        middle = np.asarray(centre, np.float64)
        inverse[:, 2] = middle - inverse[:, :2] @ middle
    size = (height, width)
    if expand:
        turn = np.abs(inverse[:, :2])
        size = (int(np.ceil(turn[1] @ (width, height) - 1e-9)), int(np.ceil(turn[0] @ (width, height) - 1e-9)))
        corner = (np.array([width, height]) - 1) / 2 - inverse[:, :2] @ ((np.array([size[1], size[0]]) - 1) / 2)
        inverse[:, 2] = corner
    return pixels.warped(picture, inverse, size, method, fill)


class Grayscale(ImageTransform):
    """The brightness, in one channel or in three alike."""

    def __init__(self, num_output_channels: int = 1) -> None:
        if num_output_channels not in (1, 3):
            refuse("Grayscale", "num_output_channels", num_output_channels, "1 or 3")
        self._channels = num_output_channels

    def changed(self, picture: Array) -> Any:
        grey = pixels.rounded(pixels.luminance(picture), picture)
        return grey if self._channels == 1 else np.stack([grey] * 3, -1)


class ConvertColor(ImageTransform):
    """Colours in another order, or none."""

    def __init__(self, convert_mode: ConvertMode) -> None:
        if not isinstance(convert_mode, ConvertMode):  # pyright: ignore[reportUnnecessaryIsInstance]
            refuse("ConvertColor", "convert_mode", convert_mode, "a member of vision.ConvertMode", is_type=True)
        self._mode = convert_mode

    def changed(self, picture: Array) -> Any:
        if self._mode is ConvertMode.COLOR_RGB2GRAY:
            return pixels.rounded(pixels.luminance(picture), picture)
        if self._mode is ConvertMode.COLOR_GRAY2RGB:
            return np.stack([picture.reshape(picture.shape[:2])] * 3, -1)
        return picture[..., ::-1]

    def planned(self, picture: Picture) -> None:
        channels = picture.size[2]
        if self._mode is ConvertMode.COLOR_RGB2GRAY or picture.rank == 2:
            raise Unplanned("it mixes channels")
        if self._mode is ConvertMode.COLOR_GRAY2RGB and channels != 1:
            raise Unplanned(f"a picture of {channels} channels is not grey")
        picture.reorder([0, 0, 0] if self._mode is ConvertMode.COLOR_GRAY2RGB else range(channels)[::-1])


class Invert(PixelTransform):
    """255 less the pixels."""

    def changed(self, picture: Array) -> Any:
        return (255 - picture.astype(np.int64)).astype(picture.dtype)


class AdjustBrightness(PixelTransform):
    """Brighter above 1, darker below."""

    def __init__(self, brightness_factor: float) -> None:
        self._factor = number("AdjustBrightness", "brightness_factor", brightness_factor, 0)

    def changed(self, picture: Array) -> Any:
        return pixels.mixed(picture, 0.0, self._factor)


class AdjustContrast(ImageTransform):
    """More contrast above 1, less below."""

    def __init__(self, contrast_factor: float) -> None:
        self._factor = number("AdjustContrast", "contrast_factor", contrast_factor, 0)

    def changed(self, picture: Array) -> Any:
        return pixels.mixed(picture, float(np.floor(pixels.luminance(picture).mean() + 0.5)), self._factor)


class AdjustSaturation(ImageTransform):
    """Stronger colours above 1, weaker ones below."""

    def __init__(self, saturation_factor: float) -> None:
        self._factor = number("AdjustSaturation", "saturation_factor", saturation_factor, 0)

    def changed(self, picture: Array) -> Any:
        return (
            pixels.mixed(picture, pixels.rounded(pixels.luminance(picture), picture)[..., None], self._factor)
            if picture.ndim == 3
            else picture
        )


class AdjustHue(ImageTransform):
    """Hues turned by a share of the circle, from -0.5 to 0.5; a grey image stays as it is."""

    def __init__(self, hue_factor: float) -> None:
        self._turn = number("AdjustHue", "hue_factor", hue_factor, -0.5, 0.5)

    def changed(self, picture: Array) -> Any:
        has_colours = picture.ndim == 3 and picture.shape[2] == 3
        return pixels.hue_turned(picture, self._turn) if has_colours else picture


if not TYPE_CHECKING:  # MindSpore has all transforms of images in this module.

    def __getattr__(name: str) -> object:
        from msc.dataset import vision

        if name in vision.__all__:
            return getattr(vision, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
