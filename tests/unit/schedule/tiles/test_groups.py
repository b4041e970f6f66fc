"""Register tiles of grouped convolutions, whose channels are digits of one index."""

from __future__ import annotations

from pathlib import Path

import pytest

from msc.driver.options import CompileOptions
from msc.driver.reports.explanations import explain_model

GROUPED = """
func.func @main(%x: tensor<1x384x14x14xf32>, %w: tensor<256x192x3x3xf32>) -> tensor<1x256x12x12xf32> {
  %y = ms.conv2d %x, %w {group = 2}
  %z = ms.relu %y
  func.return %z : tensor<1x256x12x12xf32>
}
"""


@pytest.mark.parametrize("march", ["znver5", "x86-64-v4"])
def test_a_tile_has_channels_of_one_group_or_all_of_several(march: str, tmp_path: Path) -> None:
    """Sums of some channels of two groups would lie on the stack, with others between them."""
    path = tmp_path / "model.mir"
    path.write_text(GROUPED)
    kernels = explain_model(str(path), CompileOptions(march=march))
    (lines,) = (kernel.schedule for kernel in kernels if "conv2d" in kernel.label)
    assert any("place t0 in register" in line for line in lines)
    assert not any("g unroll" in line for line in lines)
