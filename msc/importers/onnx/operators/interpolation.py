"""The tables of a resize: which elements each place of an axis takes, and with which weights.

Source: ONNX Resize (its reference implementation for the order of clipping and rounding).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from msc.dialects.arrays import Array


@dataclass(frozen=True)
class AxisResize:
    """How one axis is resized: `scale` is new size by old; `roi` the part of the axis for "tf_crop_and_resize"."""

    old: int
    new: int
    scale: float
    roi: tuple[float, float]
    transformation: str
    mode: str
    nearest: str
    cubic: float
    exclude_outside: bool
    antialias: bool

    def coordinates(self) -> Array:
        """Where in the old axis each place of the new one lies."""
        i, s, n, m = np.arange(self.new, dtype=np.float64), self.scale, self.old, self.new
        length = s * n
        match self.transformation:
            case "align_corners":
                return np.zeros(m) if length == 1 else i * (n - 1) / (length - 1)
            case "asymmetric":
                return i / s
            case "tf_half_pixel_for_nn":
                return (i + 0.5) / s
            case "pytorch_half_pixel":
                return np.full(m, -0.5) if length == 1 else (i + 0.5) / s - 0.5
            case "half_pixel_symmetric":
                # The fraction of the output that was rounded away is spread on both sides.
                centre = n / 2
                return centre * (1 - m / length) + (i + 0.5) / s - 0.5
            case "tf_crop_and_resize":
                begin, end = self.roi
                if m > 1:
                    return begin * (n - 1) + i * (end - begin) * (n - 1) / (m - 1)
                return np.full(m, 0.5 * (begin + end) * (n - 1))
            case _:
                return (i + 0.5) / s - 0.5

    def weights(self) -> Array:
        """The matrix `[new, old]` that resizes the axis."""
        return self._nearest() if self.mode == "nearest" else self._interpolated()

    def _nearest(self) -> Array:
        matrix = np.zeros((self.new, self.old))
        places = np.clip(np.array([self._rounded(float(x)) for x in self.coordinates()]), 0, self.old - 1)
        matrix[np.arange(self.new), places.astype(np.int64)] = 1
        return matrix

    def _rounded(self, x: float) -> int:
        match self.nearest:
            case "round_prefer_ceil":
                return math.floor(x + 0.5)
            case "floor":
                return math.floor(x)
            case "ceil":
                return math.ceil(x)
            case _:
                return math.ceil(x - 0.5)

    def _interpolated(self) -> Array:
        matrix = np.zeros((self.new, self.old))
        stretch = min(self.scale, 1.0) if self.antialias else 1.0
        reach = (1 if self.mode == "linear" else 2) / stretch
        for row, x in enumerate(map(float, self.coordinates())):
            taps = list(range(math.floor(x - reach) + 1, math.ceil(x + reach) + 1))
            shares = [self._kernel((tap - x) * stretch) for tap in taps]
            if self.exclude_outside:
                shares = [share if 0 <= tap < self.old else 0.0 for tap, share in zip(taps, shares, strict=True)]
            total = sum(shares) if self.exclude_outside or self.antialias else 1.0
            for tap, share in zip(taps, shares, strict=True):
                matrix[row, min(max(tap, 0), self.old - 1)] += share / total
        return matrix

    def _kernel(self, distance: float) -> float:
        kernel: Callable[[float], float] = _hat if self.mode == "linear" else self._cubic
        return kernel(abs(distance))

    def _cubic(self, d: float) -> float:
        """The kernel of Keys (1981) with coefficient a."""
        a = self.cubic
        if d <= 1:
            return (a + 2) * d**3 - (a + 3) * d**2 + 1
        return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def _hat(distance: float) -> float:
    return max(1 - distance, 0.0)
