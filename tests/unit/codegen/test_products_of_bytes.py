"""Products of bytes on every way that a machine multiplies them: signs are the trap."""

from __future__ import annotations

import numpy as np
import pytest

import msc

PROGRAM = """func.func @main(%x: tensor<1x1x6x6xi8>, %w: tensor<32x1x3x3xi8>) -> tensor<1x32x4x4xi32> {
  %r = ms.conv2d %x, %w {dtype = i32}
  func.return %r : tensor<1x32x4x4xi32>
}
"""


@pytest.mark.parametrize("march", ["native", "x86-64-v3", "generic"])
def test_products_of_two_negative_bytes(march: str) -> None:
    found = msc.compile(PROGRAM, march=march)(np.full((1, 1, 6, 6), -128, np.int8), np.full((32, 1, 3, 3), -3, np.int8))
    assert (found == 9 * 384).all()
