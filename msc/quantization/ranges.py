"""From observed reals to the integers that stand for them: `real = (integer - zero) * scale`.

Sources: Krishnamoorthi 2018 (arXiv:1806.08342) for scales and zero points; Migacz 2017 ("8-bit inference with
TensorRT") for entropy; Banner et al. 2019 (arXiv:1810.05723) for the mean squared error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from msc.dialects.arrays import Array

BINS = 4096
_SHRINKS = np.linspace(0.2, 1.0, 81)
_LEVELS = 128
"""Entropy compares with so many levels of a magnitude, as TensorRT does."""


@dataclass(frozen=True)
class Grid:
    """The integers of a quantised tensor: `bits` of them, in a type of NumPy (`int8`, `uint8`, `int16`, `uint16`).

    A symmetric grid has the zero point 0 (128 if unsigned); a narrow one leaves out the least integer, so that both
    ends have the same magnitude.
    """

    dtype: str = "int8"
    bits: int = 8
    symmetric: bool = False
    narrow: bool = False

    @property
    def low(self) -> int:
        return (0 if self.dtype.startswith("u") else -(1 << (self.bits - 1))) + self.narrow

    @property
    def high(self) -> int:
        return (1 << self.bits) - 1 if self.dtype.startswith("u") else (1 << (self.bits - 1)) - 1

    @property
    def middle(self) -> int:
        """The zero point of a symmetric grid."""
        return 1 << (self.bits - 1) if self.dtype.startswith("u") else 0

    def fit(self, least: Array | float, most: Array | float) -> tuple[Array, Array]:
        """Scale (f32) and zero point of ranges, element by element.

        A range is widened to hold 0, which padding needs. A range of zeros alone has the scale 1.
        """
        least = np.minimum(np.asarray(least, np.float64), 0)
        most = np.maximum(np.asarray(most, np.float64), 0)
        if self.symmetric:
            ends = min(self.high - self.middle, self.middle - self.low)
            scale = np.maximum(np.abs(least), np.abs(most)) / ends
        else:
            scale = (most - least) / (self.high - self.low)
        scale = np.asarray(np.where(scale < np.finfo(np.float32).tiny, 1, scale), np.float32)
        if self.symmetric:
            return scale, np.full(scale.shape, self.middle, self.dtype)
        zero = np.clip(np.rint(self.low - least / np.float64(scale)), self.low, self.high)
        return scale, zero.astype(self.dtype)

    def quantized(self, reals: Array, scale: Array, zero: Array | int = 0) -> Array:
        """IntegerWriter of reals: rounded half to even, moved, cut. Scale and zero point broadcast."""
        moved = np.rint(np.float64(reals) / np.float64(scale)) + np.asarray(zero, np.int64)
        return np.clip(moved, self.low, self.high).astype(self.dtype)


class Histogram:
    """Counts of magnitudes on both sides of 0, as arrays are shown to it; least and most are exact.

    The bins reach to a power of two, which doubles when a larger value comes: counts of two bins then become one.
    """

    def __init__(self) -> None:
        self.least, self.most = np.inf, -np.inf
        self.seen = 0
        self.counts = np.zeros((2, BINS), np.int64)
        self._reach = 0.0
        self._average: tuple[float, float] | None = None

    def show(self, values: Array) -> None:
        """Count the elements of an array of finite reals."""
        values = np.asarray(values, np.float32).ravel()
        if not values.size:
            return
        least, most = float(values.min()), float(values.max())
        self.least, self.most = min(self.least, least), max(self.most, most)
        self.seen += values.size
        before = self._average or (least, most)
        self._average = (0.9 * before[0] + 0.1 * least, 0.9 * before[1] + 0.1 * most)
        magnitude = max(-least, most)
        if magnitude > self._reach:
            self._widen(magnitude)
        if self._reach:
            places = np.minimum((np.abs(values) * np.float32(BINS / self._reach)).astype(np.int64), BINS - 1)
            both = np.bincount(places + BINS * (values >= 0), minlength=2 * BINS)
            self.counts += both.reshape(2, BINS)

    def _widen(self, magnitude: float) -> None:
        reach = float(2.0 ** np.ceil(np.log2(magnitude)))
        factor = min(BINS, round(reach / self._reach)) if self._reach else 1
        if factor > 1:
            merged = self.counts.reshape(2, -1, factor).sum(axis=2)
            self.counts = np.zeros((2, BINS), np.int64)
            self.counts[:, : merged.shape[1]] = merged
        self._reach = reach

    @property
    def average(self) -> tuple[float, float]:
        """Moving averages of the least and most values of the arrays, with 0.9 of the past."""
        return self._average or (0.0, 0.0)

    @property
    def width(self) -> float:
        return self._reach / BINS

    def centres(self) -> tuple[Array, Array]:
        """The middles of all bins from least to most, and their counts."""
        middles = (np.arange(BINS) + 0.5) * self.width
        return np.concatenate([-middles[::-1], middles]), np.concatenate([self.counts[0, ::-1], self.counts[1]])

    def quantile(self, share: float) -> float:
        """The value below which a share of the elements lies, to the width of a bin."""
        middles, counts = self.centres()
        place = int(np.searchsorted(np.cumsum(counts), share * self.seen))
        return float(np.clip(middles[min(place, len(middles) - 1)], self.least, self.most))

    def picture(self, columns: int = 40) -> str:
        """The density from the least to the most value, as a line of blocks."""
        if not self.seen or self.most <= self.least:
            return ""
        middles, counts = self.centres()
        heights, _ = np.histogram(middles, columns, (self.least, self.most), weights=counts)
        steps = np.ceil(8 * np.sqrt(heights / heights.max())).astype(int)
        return "".join(" ▁▂▃▄▅▆▇█"[step] for step in steps)


def by_extremes(seen: Histogram, grid: Grid) -> tuple[float, float]:
    """From the least to the most value."""
    del grid
    return seen.least, seen.most


def by_moving_average(seen: Histogram, grid: Grid) -> tuple[float, float]:
    """Between the averages of the ends of batches: an outlier of one batch weighs little."""
    del grid
    return seen.average


def by_percentile(seen: Histogram, grid: Grid, percent: float = 99.99) -> tuple[float, float]:
    """The range that leaves out equal shares of the least and of the most values."""
    del grid
    out = (1 - percent / 100) / 2
    return seen.quantile(out), seen.quantile(1 - out)


def by_entropy(seen: Histogram, grid: Grid) -> tuple[float, float]:
    """The range whose quantised distribution has the least Kullback-Leibler divergence from the observed one."""
    del grid
    counts = seen.counts.sum(axis=0).astype(np.float64)
    used = int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 0
    best, found = np.inf, used
    for ends in range(_LEVELS, used + 1, max(1, used // 256)):
        kept = counts[:ends].copy()
        kept[-1] += counts[ends:].sum()
        edges = np.linspace(0, ends, _LEVELS + 1).astype(np.int64)
        filled = counts[:ends] > 0
        sums = np.add.reduceat(counts[:ends], edges[:-1])
        places = np.maximum(np.add.reduceat(filled.astype(np.float64), edges[:-1]), 1)
        level = np.repeat(sums / places, np.diff(edges)) * filled
        divergence = _divergence(kept, level)
        if divergence < best:
            best, found = divergence, ends
    limit = found * seen.width
    return max(seen.least, -limit), min(seen.most, limit)


def _divergence(observed: Array, model: Array) -> float:
    """Kullback-Leibler, with a little of everything where the model has nothing."""
    p, q = observed / observed.sum(), model / max(model.sum(), 1)
    some = p > 0
    q = np.where(q > 0, q, 1e-9)
    return float((p[some] * np.log(p[some] / q[some])).sum())


def by_error(seen: Histogram, grid: Grid) -> tuple[float, float]:
    """The range with the least mean squared error: both ends shrunk together, then each alone."""
    middles, counts = seen.centres()
    some = counts > 0
    middles, counts = middles[some], counts[some]

    def error(low: float, high: float) -> float:
        scale, zero = grid.fit(low, high)
        back = (grid.quantized(middles, scale, zero).astype(np.float64) - zero) * scale
        return float((counts * (back - middles) ** 2).sum())

    low, high = min(seen.least, 0.0), max(seen.most, 0.0)
    choices = [(low * factor, high * factor) for factor in _SHRINKS]
    best = min(choices, key=lambda ends: error(*ends))
    best = min([best, *((low * factor, best[1]) for factor in _SHRINKS)], key=lambda ends: error(*ends))
    return min([best, *((best[0], high * factor) for factor in _SHRINKS)], key=lambda ends: error(*ends))


METHODS: Mapping[str, Callable[[Histogram, Grid], tuple[float, float]]] = {
    "min-max": by_extremes,
    "moving-average": by_moving_average,
    "percentile": by_percentile,
    "entropy": by_entropy,
    "mse": by_error,
}
"""How the range of an activation is found from what calibration saw."""


def weight_scales(weight: Array, grid: Grid, channel: int | None) -> tuple[Array, Array]:
    """Scale and zero point of a weight: one for each index of the axis `channel`, or one of rank 0."""
    axes = None if channel is None else tuple(axis for axis in range(weight.ndim) if axis != channel)
    least, most = weight.min(axis=axes, initial=0), weight.max(axis=axes, initial=0)
    return grid.fit(least, most)


def along(values: Array, channel: int | None, rank: int) -> Array:
    """Values of channels with axes of size 1, so that they broadcast to a weight."""
    if channel is None:
        return values
    shape: list[Any] = [1] * rank
    shape[channel] = -1
    return values.reshape(shape)
