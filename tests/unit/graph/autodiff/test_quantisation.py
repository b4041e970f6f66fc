"""Gradients straight through quantised values, against their formulas."""

from __future__ import annotations

import numpy as np
import pytest

from msc.interp import evaluate
from msc.support.diagnostics import MscError
from tests.unit.compiled.programs import parsed
from tests.unit.graph.autodiff.differences import differentiated

FAKE = """
func.func @main(%x: tensor<6x40xf32>, %s: tensor<40xf32>, %z: tensor<40x{type}>) -> tensor<6x40xf32> {{
  %0 = ms.quantize %x, %s, %z {{dtype = {type}}}
  %1 = ms.dequantize %0, %s, %z
  func.return %1 : tensor<6x40xf32>
}}
"""


@pytest.mark.parametrize("dtype", ["i8", "ui8"])
def test_fake_quantisation_passes_gradients_where_nothing_is_cut(dtype: str) -> None:
    """To x by the straight-through estimator, to the scales by the formula of LSQ."""
    rng = np.random.default_rng(3)
    kind = np.dtype("int8" if dtype == "i8" else "uint8")
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    x, s = rng.normal(0, 3, (6, 40)).astype(np.float32), rng.uniform(0.005, 0.05, 40).astype(np.float32)
    z, g = rng.integers(low, high, 40).astype(kind), rng.normal(size=(6, 40)).astype(np.float32)
    gradient = differentiated(parsed(FAKE.format(type=dtype)), inputs=(0, 1), sens=True)
    by_x, by_scale = evaluate(gradient, [x, s, z, g], {})
    ratio = x / s
    moved = np.round(ratio) + z
    inside = (moved >= low) & (moved <= high)
    assert 0.2 < inside.mean() < 0.9
    np.testing.assert_array_equal(by_x, np.where(inside, g, 0))
    each = np.where(inside, np.round(ratio) - ratio, np.clip(moved, low, high) - z)
    np.testing.assert_allclose(by_scale, (g * each).sum(0), rtol=1e-3, atol=1e-3 * np.abs(g * each).sum(0).max())


def test_integers_that_nothing_dequantises_have_no_gradient() -> None:
    module = parsed("""
    func.func @main(%x: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xf32> {
      %0 = ms.quantize %x, %s {dtype = i8}
      %1 = ms.cast %0 {dtype = f32}
      %2 = ms.mul %1, %x
      func.return %2 : tensor<4xf32>
    }""")
    x = np.array([0.1, -0.6, 1.2, 9], np.float32)
    (by_x,) = evaluate(differentiated(module, inputs=(0,)), [x, np.array(0.5, np.float32)], {})
    np.testing.assert_array_equal(by_x, np.round(x / 0.5))


def test_packed_weights_have_no_gradient() -> None:
    module = parsed("""
    func.func @main(%x: tensor<1x32xf32>, %c: tensor<1x1x16x16xui8>, %s: tensor<1x1x16xf32>) -> tensor<1x16xf32> {
      %0 = ms.packed_matmul %x, %c, %s
      func.return %0 : tensor<1x16xf32>
    }""")
    with pytest.raises(MscError, match="MSC0414"):
        differentiated(module, inputs=(0,))
