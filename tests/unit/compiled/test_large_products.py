"""Products of large matrices through C, with panels copied one at a time, and of sizes that fill no tiles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import msc

PRODUCT = """func.func @main(
  %x: tensor<{batch}{m}x{k}xf32>, %y: tensor<{batch}{k}x{n}xf32>, %bias: tensor<{n}xf32>
) -> tensor<{batch}{m}x{n}xf32> {{
  %0 = ms.{op} %x, %y
  %1 = ms.add %0, %bias
  %2 = ms.relu %1
  func.return %2 : tensor<{batch}{m}x{n}xf32>
}}
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", [(640, 640, 640), (523, 517, 519), (2, 300, 1030, 301), (45, 70, 33), (45, 67, 18)])
def test_large_product(tmp_path: Path, sizes: tuple[int, ...], threads: int) -> None:
    *batch, m, k, n = sizes
    text = PRODUCT.format(
        batch="".join(f"{b}x" for b in batch), m=m, k=k, n=n, op="batch_matmul" if batch else "matmul"
    )
    path = tmp_path / "net.mir"
    path.write_text(text, encoding="utf-8")
    rng = np.random.default_rng(m)
    x, y, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((*batch, m, k), (*batch, k, n), (n,)))
    model = msc.compile(path, threads=threads, use_cache=False)
    expected = np.maximum(x.astype(np.float64) @ y + bias, 0)
    np.testing.assert_allclose(model(x, y, bias), expected, atol=1e-3)


OPEN = """builtin.module @open {{
  func.func @main(%x: tensor<256x300xf32>, %y: tensor<{shape}xf32> {{ms.dims = {dims}}}) -> tensor<256x?xf32> {{
    %r = ms.matmul %x, %y {{transpose_b = {transposed}}}
    func.return %r : tensor<256x?xf32>
  }}
}}
"""


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("most", [704, 601])
def test_columns_that_a_call_decides(tmp_path: Path, most: int, transposed: bool) -> None:
    path = tmp_path / "net.mir"
    shape, dims = ("?x300", '["n", ""]') if transposed else ("300x?", '["", "n"]')
    path.write_text(OPEN.format(shape=shape, dims=dims, transposed=str(transposed).lower()), encoding="utf-8")
    model = msc.compile(path, dims={"n": (1, most)}, use_cache=False)
    rng = np.random.default_rng(most)
    x = rng.standard_normal((256, 300)).astype(np.float32)
    for n in (1, 64, 333, most):
        y = rng.standard_normal((300, n)).astype(np.float32)
        given = np.ascontiguousarray(y.T) if transposed else y
        np.testing.assert_allclose(model(x, given), x.astype(np.float64) @ y, atol=1e-3)
