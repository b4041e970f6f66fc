"""Sums of many terms through C: blocks of terms are summed first, so that no chain of roundings is long."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import msc

TERMS = 16384
PRODUCT = """func.func @main(%x: tensor<3x{k}xf32>, %y: tensor<{k}x40xf32>) -> tensor<3x40xf32> {{
  %0 = ms.matmul %x, %y
  func.return %0 : tensor<3x40xf32>
}}
"""
OPEN = """builtin.module @open {
  func.func @main(%x: tensor<?x24xf32> {ms.dims = ["n", ""]}) -> tensor<24xf32> {
    %0 = ms.reduce_sum %x {axis = 0}
    func.return %0 : tensor<24xf32>
  }
}
"""


def _worst(result: NDArray[np.float32], expected: NDArray[np.float64]) -> float:
    """The largest relative error; one chain of 16384 roundings has 5e-6, one of 5003 has 3e-6."""
    return float(np.max(np.abs(result - expected) / np.abs(expected)))


@pytest.mark.parametrize("terms", [TERMS, 5003])
@pytest.mark.parametrize("march", ["native", "x86-64-v2"])
def test_product(tmp_path: Path, terms: int, march: str) -> None:
    path = tmp_path / "net.mir"
    path.write_text(PRODUCT.format(k=terms), encoding="utf-8")
    rng = np.random.default_rng(terms)
    x, y = (rng.random(shape, np.float32) for shape in ((3, terms), (terms, 40)))
    model = msc.compile(path, march=march, without=["reduction-blocks"], use_cache=False)
    assert _worst(model(x, y), x.astype(np.float64) @ y.astype(np.float64)) < 1e-6


def test_terms_that_a_call_decides(tmp_path: Path) -> None:
    path = tmp_path / "net.mir"
    path.write_text(OPEN, encoding="utf-8")
    model = msc.compile(path, dims={"n": (1, TERMS)}, use_cache=False)
    rng = np.random.default_rng(1)
    for n in (1, 255, 256, 257, 1025, TERMS):
        x = rng.random((n, 24), np.float32)
        assert _worst(model(x), x.astype(np.float64).sum(0)) < 1e-6


@pytest.mark.parametrize("blocked", [True, False])
def test_length_of_a_call_is_estimated_alike(tmp_path: Path, blocked: bool) -> None:
    path = tmp_path / "net.mir"
    path.write_text(PRODUCT.format(k=TERMS), encoding="utf-8")
    without = ["reduction-blocks"] if blocked else ["reduction-blocks", "sums"]
    operations = msc.compile(path, without=without, use_cache=False).signature.operations
    assert operations is not None
    assert TERMS <= operations < 100 * TERMS
