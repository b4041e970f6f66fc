"""Scales, zero points and ranges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msc.quantization.ranges import BINS, METHODS, Grid, Histogram


def test_the_worked_example() -> None:
    """[-1, 2] in unsigned bytes."""
    grid = Grid("uint8")
    scale, zero = grid.fit(-1, 2)
    assert scale == pytest.approx(0.0117647, rel=1e-5)
    assert zero == 85
    assert grid.quantized(np.array([-1, 0, 0.31, 2, 5]), scale, zero).tolist() == [0, 85, 111, 255, 255]


REALS = st.floats(-1e6, 1e6, width=32)


@given(st.tuples(REALS, REALS).map(sorted), st.sampled_from(["int8", "uint8"]), st.integers(2, 8), st.booleans())
def test_zero_is_exact_and_ends_are_a_step_away_at_most(
    ends: list[float], dtype: str, bits: int, symmetric: bool
) -> None:
    grid = Grid(dtype, bits, symmetric)
    scale, zero = grid.fit(*ends)
    assert grid.quantized(np.zeros(1), scale, zero) == zero
    back = (grid.quantized(np.array(ends), scale, zero).astype(float) - zero) * scale
    assert (np.abs(back - np.array(ends)) <= 1.01 * scale).all()


def test_a_range_of_zeros_has_a_scale() -> None:
    scale, zero = Grid().fit(0, 0)
    assert (scale, zero) == (1, 0) or scale == 1


def test_counts_stay_while_the_range_grows() -> None:
    rng, seen = np.random.default_rng(0), Histogram()
    arrays = [rng.normal(size=1000).astype(np.float32) * factor for factor in (1e-3, 1, 50)]
    for array in arrays:
        seen.show(array)
    every = np.concatenate(arrays)
    assert (seen.least, seen.most) == (every.min(), every.max())
    assert seen.counts.sum() == every.size
    middles, counts = seen.centres()
    width = middles[1] - middles[0]
    assert len(middles) == 2 * BINS
    for end in (-10.0, -1.0, 2.0, 30.0):
        assert (
            abs(counts[middles < end].sum() - (every < end).sum())
            <= ((every > end - width) & (every < end + width)).sum()
        )


def test_methods_cut_an_outlier() -> None:
    seen = Histogram()
    seen.show(np.append(np.random.default_rng(1).normal(size=100_000), 1000).astype(np.float32))
    grid = Grid("uint8", 4)
    ranges = {name: find(seen, grid) for name, find in METHODS.items()}
    assert ranges["min-max"][1] == 1000
    assert all(low <= 0 <= high for low, high in ranges.values())
    assert ranges["percentile"][1] < 10


def test_the_mean_squared_error_is_least() -> None:
    """Of a normal distribution in 4 bits, the best symmetric range cuts at about 2.7 sigma."""
    seen = Histogram()
    seen.show(np.random.default_rng(1).normal(size=200_000).astype(np.float32))
    low, high = METHODS["mse"](seen, Grid("int8", 4, symmetric=True))
    assert 2 < max(-low, high) < 3.4
