"""Norms of data far from 0, interpreted and compiled: the rounding of the mean does not reach the result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import msc
from tests.unit.compiled.programs import interpreted

GROUPED = "tensor<4x8x12x16xf32>"
CHANNELS = "tensor<8xf32>"
NORMS = {
    "layer_norm %x, %g, %b {begin_norm_axis = -1, epsilon = 1e-05}": ("tensor<16x768xf32>", "tensor<768xf32>", (1,)),
    "group_norm %x, %g, %b {num_groups = 2, epsilon = 1e-05}": (GROUPED, CHANNELS, (2, 3, 4)),
    "instance_norm %x, %g, %b {epsilon = 1e-05}": (GROUPED, CHANNELS, (2, 3)),
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_norm_of_data_around(tmp_path: Path, norm: str, offset: float) -> None:
    """Off by less than 2e-6; the rounding of one f32 mean of 1000 alone is up to 3e-5."""
    data, scales, axes = NORMS[norm]
    path = tmp_path / "net.mir"
    path.write_text(
        f"func.func @main(%x: {data}, %g: {scales}, %b: {scales}) -> {data} {{\n"
        f"  %y = ms.{norm}\n  func.return %y : {data}\n}}\n",
        encoding="utf-8",
    )
    shape, n = (tuple(int(d) for d in t.removeprefix("tensor<").split("x")[:-1]) for t in (data, scales))
    x = (np.random.default_rng(0).standard_normal(shape) + offset).astype(np.float32)
    exact = x.astype(np.float64)
    grouped = exact.reshape(4, 2, 4, 12, 16) if "group" in norm else exact
    centred = grouped - grouped.mean(axes, keepdims=True)
    expected = (centred / np.sqrt((centred**2).mean(axes, keepdims=True) + 1e-5)).reshape(shape)
    scale, shift = np.ones(n, np.float32), np.zeros(n, np.float32)
    compiled = msc.compile(path, use_cache=False)(x, scale, shift)
    (meant,) = interpreted(path.read_text(encoding="utf-8"), [x, scale, shift])
    for result in (compiled, meant):
        assert np.max(np.abs(result - expected)) < 2e-6
