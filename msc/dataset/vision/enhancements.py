"""Transforms of images by histograms, tables and neighbours, their random forms, and policies of several."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from msc.dataset.runs import draws
from msc.dataset.transforms.arguments import integer, number, pair, probability, refuse, span
from msc.dataset.transforms.general import Compose, RandomApply, Transform
from msc.dataset.values import Array
from msc.dataset.vision import pixels
from msc.dataset.vision.pixels import Inter
from msc.dataset.vision.transforms import AdjustSaturation, Grayscale, ImageTransform, Invert, PixelTransform, Resize
from msc.frontend.dtypes import as_dtype


def _bytes_of(transform: str, picture: Array) -> Array:
    if picture.dtype != np.uint8:
        refuse(transform, "the image", str(picture.dtype), "bytes (UInt8)", is_type=True)
    return picture


def _by_channel(picture: Array, table: Callable[[Array], Array]) -> Array:
    """Each channel through a table that its histogram gives."""
    planes = picture[..., None] if picture.ndim == 2 else picture
    made = [table(np.bincount(plane.reshape(-1), minlength=256))[plane] for plane in np.moveaxis(planes, 2, 0)]
    return np.stack(made, -1).reshape(picture.shape)


class AutoContrast(ImageTransform):
    """Each channel stretched from its darkest to its brightest pixel, without a percentage `cutoff` at both ends.

    Pixels of the values `ignore` do not count.
    """

    def __init__(self, cutoff: float = 0.0, ignore: Any = None) -> None:
        self._cutoff = number(self._kind, "cutoff", cutoff, 0, 50)
        self._ignored = [] if ignore is None else list(np.atleast_1d(np.asarray(ignore, np.int64)))

    def changed(self, picture: Array) -> Any:
        return _by_channel(_bytes_of(self._kind, picture), self._table)

    def _table(self, counts: Array) -> Array:
        counts = counts.copy()
        counts[self._ignored] = 0
        cut = int(counts.sum() * self._cutoff // 100)
        for order in (slice(None), slice(None, None, -1)):
            before = np.cumsum(counts[order]) - counts[order]
            counts[order] -= np.clip(cut - before, 0, counts[order])
        (there,) = np.nonzero(counts)
        values = np.arange(256)
        if there.size < 2:
            return values.astype(np.uint8)
        return np.clip((values - there[0]) * 255 // (there[-1] - there[0]), 0, 255).astype(np.uint8)


class Equalize(ImageTransform):
    """Each channel with a flat histogram."""

    def __init__(self) -> None:
        """A transform without arguments."""

    def changed(self, picture: Array) -> Any:
        return _by_channel(_bytes_of(self._kind, picture), self._table)

    def _table(self, counts: Array) -> Array:
        (there,) = np.nonzero(counts)
        if there.size < 2:
            return np.arange(256, dtype=np.uint8)
        behind = np.cumsum(counts) - counts[there[0]]
        scale = np.float32(255 / (counts.sum() - counts[there[0]]))
        return np.clip(np.rint(behind.astype(np.float32) * scale), 0, 255).astype(np.uint8)


class Posterize(PixelTransform):
    """The upper bits of each byte."""

    def __init__(self, bits: int) -> None:
        if not 0 <= integer("Posterize", "bits", bits, 0) <= 8:
            refuse("Posterize", "bits", bits, "an integer from 0 to 8")
        self._bits = bits

    def changed(self, picture: Array) -> Any:
        return _bytes_of(self._kind, picture) & np.uint8(256 - (1 << (8 - self._bits)) & 255)


class Solarize(PixelTransform):
    """Bytes within a range inverted."""

    def __init__(self, threshold: Any) -> None:
        both = threshold if isinstance(threshold, list | tuple) else (threshold, 255)
        self._range = span("Solarize", "threshold", both, 0, 255)

    def changed(self, picture: Array) -> Any:
        low, high = self._range
        return np.where((picture >= low) & (picture <= high), 255 - _bytes_of(self._kind, picture), picture)


class AdjustGamma(PixelTransform):
    """gain * pixel^gamma, of pixels from 0 to 1."""

    def __init__(self, gamma: float, gain: float = 1) -> None:
        self._gamma, self._gain = number(self._kind, "gamma", gamma, 0), number(self._kind, "gain", gain)

    def changed(self, picture: Array) -> Any:
        if picture.dtype.kind == "f":
            return np.clip(self._gain * picture**self._gamma, 0, 1).astype(picture.dtype)
        shares = self._gain * (256 - 1e-3) * (_bytes_of(self._kind, picture) / 255) ** self._gamma
        return np.clip(np.trunc(shares), 0, 255).astype(np.uint8)


def sharpened(picture: Array, factor: float) -> Array:
    """Between the image that its neighbours smooth, at 0, and itself, at 1; beyond it above 1. Edges stay."""
    smooth = picture.astype(np.float32)
    if min(picture.shape[:2]) > 2:
        parts = [smooth[i : i + smooth.shape[0] - 2, j : j + smooth.shape[1] - 2] for i in range(3) for j in range(3)]
        inside = (sum(parts) + 4 * parts[4]) / 13
        smooth = smooth.copy()
        smooth[1:-1, 1:-1] = pixels.rounded(inside, picture).astype(np.float32)
    return pixels.mixed(picture, smooth, factor)


class AdjustSharpness(ImageTransform):
    """Sharper above 1, smoother below."""

    def __init__(self, sharpness_factor: float) -> None:
        self._factor = number(self._kind, "sharpness_factor", sharpness_factor, 0)

    def changed(self, picture: Array) -> Any:
        return sharpened(picture, self._factor)


class GaussianBlur(ImageTransform):
    """Smoothed by a bell; pixels are reflected at the edges. Sizes and widths are those along height and width."""

    def __init__(self, kernel_size: Any, sigma: Any = None) -> None:
        sizes = pair(self._kind, "kernel_size", kernel_size)
        if not all(size % 2 for size in sizes):
            refuse(self._kind, "kernel_size", str(kernel_size), "odd integers")
        widths = sigma if isinstance(sigma, list | tuple) else (sigma, sigma)
        self._sizes = sizes
        self._widths = [
            0.3 * ((size - 1) * 0.5 - 1) + 0.8 if w is None or w == 0 else number(self._kind, "sigma", w, 0)
            for size, w in zip(sizes, widths, strict=True)
        ]

    def changed(self, picture: Array) -> Any:
        made = picture.astype(np.float64)
        for axis, size, width in zip((1, 0), self._sizes, self._widths, strict=True):
            places = np.arange(size) - size // 2
            shares = np.exp(-(places**2) / (2 * width**2))
            ends = [(0, 0)] * picture.ndim
            ends[axis] = (size // 2, size // 2)
            wide = np.pad(made, ends, "reflect" if picture.shape[axis] > 1 else "edge")
            windows = np.lib.stride_tricks.sliding_window_view(wide, size, axis)
            made = windows @ (shares / shares.sum())
        return pixels.rounded(made, picture)


class ResizedCrop(ImageTransform):
    """A part of a size at (top, left), resized."""

    def __init__(
        self, top: int, left: int, height: int, width: int, size: Any, interpolation: Inter = Inter.BILINEAR
    ) -> None:
        self._place = integer(self._kind, "top", top, 0), integer(self._kind, "left", left, 0)
        self._part = integer(self._kind, "height", height), integer(self._kind, "width", width)
        self._resize = Resize(size, interpolation)

    def changed(self, picture: Array) -> Any:
        if any(p + n > m for p, n, m in zip(self._place, self._part, picture.shape[:2], strict=True)):
            refuse(self._kind, "the image", f"of {list(picture.shape[:2])}", f"{self._part} at {self._place} inside it")
        return self._resize.changed(pixels.cropped(picture, *self._place, *self._part))


class NormalizePad(ImageTransform):
    """(pixels - mean) / std for each channel, in Float32 or Float16, and a channel of zeros behind them."""

    def __init__(
        self, mean: Sequence[float], std: Sequence[float], dtype: str = "float32", is_hwc: bool = True
    ) -> None:
        self._mean, self._std = np.asarray(mean, np.float32), np.asarray(std, np.float32)
        self._dtype, self._axis = as_dtype(dtype).numpy, 2 if is_hwc else 0

    def changed(self, picture: Array) -> Any:
        if picture.ndim != 3 or picture.shape[self._axis] != self._mean.size:
            refuse(self._kind, "the image", f"of shape {list(picture.shape)}", f"{self._mean.size} channels")
        shape = (-1,) if self._axis == 2 else (-1, 1, 1)
        made = (picture.astype(np.float32) - self._mean.reshape(shape)) / self._std.reshape(shape)
        ends = [(0, 0)] * 3
        ends[self._axis] = (0, 1)
        return np.pad(made, ends).astype(self._dtype)


class SliceMode(enum.IntEnum):
    """What SlicePatches does with sizes that it does not divide."""

    PAD = 0
    DROP = 1


class SlicePatches(ImageTransform):
    """Patches of an image, row by row, as columns; what does not divide is padded or dropped."""

    def __init__(
        self, num_height: int = 1, num_width: int = 1, slice_mode: SliceMode = SliceMode.PAD, fill_value: int = 0
    ) -> None:
        self._counts = integer(self._kind, "num_height", num_height), integer(self._kind, "num_width", num_width)
        self._drops, self._fill = (
            SliceMode(slice_mode) is SliceMode.DROP,
            integer(self._kind, "fill_value", fill_value, 0),
        )

    def changed(self, picture: Array) -> Any:
        sizes = [n // c if self._drops else -(-n // c) for n, c in zip(picture.shape, self._counts, strict=False)]
        (rows, columns), (height, width) = self._counts, sizes
        whole = np.full((rows * height, columns * width, *picture.shape[2:]), self._fill, picture.dtype)
        part = picture[: rows * height, : columns * width]
        whole[: part.shape[0], : part.shape[1]] = part
        starts = [(i * height, j * width) for i in range(rows) for j in range(columns)]
        return tuple(whole[i : i + height, j : j + width].copy() for i, j in starts)


class LinearTransformation(Transform):
    """(flat image - mean) through a square matrix, in the image's shape."""

    def __init__(self, transformation_matrix: Any, mean_vector: Any) -> None:
        self._matrix, self._mean = np.asarray(transformation_matrix, np.float64), np.asarray(mean_vector, np.float64)
        if self._matrix.ndim != 2 or self._matrix.shape != (self._mean.size, self._mean.size):
            refuse(self._kind, "transformation_matrix", str(self._matrix.shape), f"a square of {self._mean.size}")

    def __call__(self, *values: Any) -> Any:
        image = np.asarray(values[0])
        if image.size != self._mean.size:
            refuse(self._kind, "the image", f"of {image.size} elements", f"{self._mean.size}")
        return ((image.reshape(-1) - self._mean) @ self._matrix).reshape(image.shape).astype(image.dtype)


# Random forms.


class RandomColor(ImageTransform):
    """Colours stronger or weaker by a factor from a range."""

    def __init__(self, degrees: Any = (0.1, 1.9)) -> None:
        self._range = span(self._kind, "degrees", degrees, 0)

    def changed(self, picture: Array) -> Any:
        return AdjustSaturation(draws().uniform(*self._range)).changed(picture)


class RandomSharpness(RandomColor):
    """Sharper or smoother by a factor from a range."""

    def changed(self, picture: Array) -> Any:
        return sharpened(picture, draws().uniform(*self._range))


class RandomPosterize(ImageTransform):
    """The upper bits of each byte, as many as a range says."""

    def __init__(self, bits: Any = (8, 8)) -> None:
        both = bits if isinstance(bits, list | tuple) else (bits, bits)
        low, high = span(self._kind, "bits", both, 1, 8)
        self._range = int(low), int(high)

    def changed(self, picture: Array) -> Any:
        low, high = self._range
        return Posterize(low + draws().integers(high - low + 1)).changed(picture)


class RandomSolarize(ImageTransform):
    """Bytes inverted within a random part of a range."""

    def __init__(self, threshold: Any = (0, 255)) -> None:
        low, high = span(self._kind, "threshold", threshold, 0, 255)
        self._range = int(low), int(high)

    def changed(self, picture: Array) -> Any:
        low, high = self._range
        ends = sorted(low + draws().integers(high - low + 1) for _ in range(2))
        return Solarize((low, high) if low == high else tuple(ends)).changed(picture)


class RandomEqualize(RandomApply):
    """Equalize, with a probability."""

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__([Equalize()], prob)


class RandomAutoContrast(RandomApply):
    """AutoContrast, with a probability."""

    def __init__(self, cutoff: float = 0.0, ignore: Any = None, prob: float = 0.5) -> None:
        super().__init__([AutoContrast(cutoff, ignore)], prob)


class RandomInvert(RandomApply):
    """Invert, with a probability."""

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__([Invert()], prob)


class RandomAdjustSharpness(RandomApply):
    """AdjustSharpness, with a probability."""

    def __init__(self, degree: float, prob: float = 0.5) -> None:
        super().__init__([AdjustSharpness(degree)], prob)


class RandomGrayscale(RandomApply):
    """The brightness in as many channels as there are, with a probability."""

    def __init__(self, prob: float = 0.1) -> None:
        super().__init__([_SameGrey()], prob)


class _SameGrey(ImageTransform):
    def changed(self, picture: Array) -> Any:
        return Grayscale(3).changed(picture) if picture.ndim == 3 and picture.shape[2] == 3 else picture


class RandomResize(ImageTransform):
    """Resized by a way to interpolate that is drawn: nearest, linear, cubic or area."""

    def __init__(self, size: Any) -> None:
        methods = (Inter.NEAREST, Inter.LINEAR, Inter.CUBIC, Inter.AREA)
        self._resizes = [Resize(size, method) for method in methods]

    def changed(self, picture: Array) -> Any:
        return self._resizes[draws().integers(len(self._resizes))].changed(picture)


class RandomLighting(ImageTransform):
    """Light as AlexNet's: along the principal components of ImageNet's colours, with a standard deviation."""

    def __init__(self, alpha: float = 0.05) -> None:
        self._alpha = number(self._kind, "alpha", alpha, 0)

    def changed(self, picture: Array) -> Any:
        if picture.ndim != 3 or picture.shape[2] != 3:
            refuse(self._kind, "the image", f"of shape {list(picture.shape)}", "three channels")
        values = np.array([55.46, 4.794, 1.148])
        vectors = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
        weights = [_normal() * self._alpha for _ in range(3)]
        return pixels.rounded(picture + vectors @ (values * weights), picture)


def _normal() -> float:
    """A number of the normal distribution. Source: Box and Muller."""
    first, second = draws().random(), draws().random()
    return math.sqrt(-2 * math.log(1 - first)) * math.cos(2 * math.pi * second)


class RandomSelectSubpolicy(Transform):
    """One of several policies: a list of pairs (transform, probability), each of which is applied by itself."""

    def __init__(self, policy: Any) -> None:
        given: Any = list(policy) if isinstance(policy, list | tuple) else []
        if not given or not all(isinstance(p, list | tuple) and p for p in given):
            refuse(self._kind, "policy", policy, "a list of lists of pairs (transform, probability)", is_type=True)
        self._policies = [[RandomApply([t], chance) for t, chance in cast("list[Any]", part)] for part in given]

    def __call__(self, *values: Any) -> Any:
        return Compose(self._policies[draws().integers(len(self._policies))])(*values)


class UniformAugment(Transform):
    """`num_ops` of several transforms, drawn anew, each applied with an even chance."""

    def __init__(self, transforms: Sequence[Any], num_ops: int = 2) -> None:
        self._all = [RandomApply([t], 0.5) for t in transforms]
        self._count = integer(self._kind, "num_ops", num_ops)
        if self._count > len(self._all):
            refuse(self._kind, "num_ops", num_ops, f"at most {len(self._all)}, as many as there are transforms")

    def __call__(self, *values: Any) -> Any:
        order = draws().permutation(len(self._all))[: self._count]
        return Compose([self._all[k] for k in order])(*values)


# Batches.


class MixUpBatch(Transform):
    """Images and one-hot labels of a batch mixed with those of a shuffled one, by one share from Beta(alpha, alpha)."""

    def __init__(self, alpha: float = 1.0) -> None:
        self._alpha = number(self._kind, "alpha", alpha, 1e-6)

    def __call__(self, *values: Any) -> Any:
        images, labels = _batch_of(self._kind, values)
        share, order = _beta(self._alpha), draws().permutation(len(images))
        return tuple((share * v + (1 - share) * v[order]).astype(np.float32) for v in (images, labels))


class ImageBatchFormat(enum.IntEnum):
    """Where the channels of a batch of images are."""

    NHWC = 0
    NCHW = 1


class CutMixBatch(Transform):
    """With a probability, a rectangle of each image of a batch comes from another one, and labels mix by its area."""

    def __init__(self, image_batch_format: ImageBatchFormat, alpha: float = 1.0, prob: float = 1.0) -> None:
        self._axes = (1, 2) if ImageBatchFormat(image_batch_format) is ImageBatchFormat.NHWC else (2, 3)
        self._alpha, self._chance = number(self._kind, "alpha", alpha, 1e-6), probability(self._kind, prob)

    def __call__(self, *values: Any) -> Any:
        images, labels = _batch_of(self._kind, values)
        made, mixed = images.copy(), labels.astype(np.float32)
        order = draws().permutation(len(images))
        sizes = [images.shape[axis] for axis in self._axes]
        for k, other in enumerate(order):
            if draws().random() >= self._chance:
                continue
            side = math.sqrt(1 - _beta(self._alpha))
            centre = [draws().integers(n) for n in sizes]
            part = [
                slice(max(c - int(n * side) // 2, 0), min(c + int(n * side) // 2, n))
                for c, n in zip(centre, sizes, strict=True)
            ]
            place: tuple[Any, ...] = (*part, slice(None)) if self._axes == (1, 2) else (slice(None), *part)
            made[(k, *place)] = images[(other, *place)]
            area = math.prod(max(p.stop - p.start, 0) for p in part) / math.prod(sizes)
            mixed[k] = labels[k] * (1 - area) + labels[other] * area
        return made, mixed.astype(np.float32)


def _batch_of(transform: str, values: tuple[Any, ...]) -> tuple[Array, Array]:
    if len(values) != 2 or np.ndim(values[0]) != 4 or np.ndim(values[1]) < 2:
        refuse(transform, "the value", "not a batch", "images of rank 4, and one-hot labels of rank 2", is_type=True)
    return np.asarray(values[0]), np.asarray(values[1])


def _beta(alpha: float) -> float:
    """A number of Beta(alpha, alpha), of the row's random numbers. Source: Jöhnk, for any alpha with log weights."""
    generator = np.random.Generator(np.random.PCG64(draws().integers(1 << 32)))
    return float(generator.beta(alpha, alpha))
