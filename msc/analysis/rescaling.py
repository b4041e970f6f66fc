"""Scales of integers, one after the other, as one, where that rounds the same: what requantisation multiplies by."""

from __future__ import annotations

import math

_USUAL = 2.0**60


def one_scale(*scales: float) -> float | None:
    """The scale that gives the same f32 as some one after the other; None where they round more than once.

    Multiplying by a power of two rounds nothing. Scales are positive, and far from those that f32 has no room for.
    """
    usual = all(1 / _USUAL < scale < _USUAL for scale in scales)
    rounding = sum(math.frexp(scale)[0] != 0.5 for scale in scales)
    return math.prod(scales) if usual and rounding <= 1 else None
