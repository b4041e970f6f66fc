"""Pointwise convolutions through C, along the image and along channels: sizes that fill neither vectors nor tiles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

import msc

ALONE = "func.return %2 : tensor<2x{b}x{h}x{w}xf32>"
THEN_A_WINDOW = """%3 = ms.max_pool2d %2 {{kernel_size = [1, 1]}}
    func.return %3 : tensor<2x{b}x{h}x{w}xf32>"""
NETWORK = """builtin.module @net attributes {{ms.weights = "net.safetensors"}} {{
  ms.parameter @w : tensor<{b}x{a}x1x1xf32>
  ms.parameter @bias : tensor<{b}xf32>
  func.func @main(%x: tensor<2x{a}x{h}x{w}xf32>) -> tensor<2x{b}x{h}x{w}xf32> {{
    %w = ms.get_parameter @w : tensor<{b}x{a}x1x1xf32>
    %bias = ms.get_parameter @bias : tensor<{b}xf32>
    %1 = ms.conv2d %x, %w, %bias
    %2 = ms.relu %1
    {end}
  }}
}}
"""


@pytest.mark.parametrize("end", [ALONE, THEN_A_WINDOW], ids=["along the image", "along channels"])
@pytest.mark.parametrize("march", ["native", "generic"])
@pytest.mark.parametrize("sizes", [(5, 24, 9, 9), (3, 7, 5, 13), (40, 64, 1, 33), (8, 2, 7, 7), (20, 37, 7, 7)])
def test_pointwise(tmp_path: Path, sizes: tuple[int, int, int, int], march: str, end: str) -> None:
    a, b, h, w = sizes
    rng = np.random.default_rng(a)
    weights = {
        "w": rng.standard_normal((b, a, 1, 1)).astype(np.float32),
        "bias": rng.standard_normal(b).astype(np.float32),
    }
    (tmp_path / "net.safetensors").write_bytes(save(weights))
    path = tmp_path / "net.mir"
    path.write_text(NETWORK.format(a=a, b=b, h=h, w=w, end=end.format(b=b, h=h, w=w)), encoding="utf-8")
    x = rng.standard_normal((2, a, h, w)).astype(np.float32)
    product = np.einsum("oc,nchw->nohw", weights["w"][:, :, 0, 0], x, dtype=np.float64)
    expected = np.maximum(product + weights["bias"][:, None, None], 0)
    np.testing.assert_allclose(msc.compile(path, march=march, use_cache=False)(x), expected, atol=1e-4)
