"""What `python -m tests.ascend_models` does with each network, on one of two kernels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msc.dialects.arrays import Array
from tests.ascend_models import checking
from tests.ascend_models.checking import CheckedKernel, check_model

BLOCK = """
func.func @main(%x: tensor<5x24xf16>, %w: tensor<24x40xf16>, %y: tensor<5x40xf16>) -> tensor<5xf32> {
  %0 = ms.matmul %x, %w : (tensor<5x24xf16>, tensor<24x40xf16>) -> tensor<5x40xf16>
  %1 = ms.add %0, %y : (tensor<5x40xf16>, tensor<5x40xf16>) -> tensor<5x40xf16>
  %2 = ms.cast %1 {dtype = f32} : (tensor<5x40xf16>) -> tensor<5x40xf32>
  %3 = ms.reduce_sum %2 {axis = [1]} : (tensor<5x40xf32>) -> tensor<5xf32>
  func.return %3 : tensor<5xf32>
}
"""


def _checked(folder: Path) -> list[CheckedKernel]:
    path = folder / "block.mir"
    path.write_text(BLOCK, "utf-8")
    return check_model(path, "ascend910b1", {})


def test_every_kernel_is_run_and_agrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = _checked(tmp_path)
    assert [kernel.unit for kernel in kernels] == ["mix", "vector"]
    assert all(kernel.error < 1 and kernel.is_proved and not kernel.problem for kernel in kernels)
    run = checking.run_kernel

    def wrong(*given: Any) -> tuple[Array, ...]:
        return tuple(np.add(array, 1, dtype=array.dtype) for array in run(*given))

    monkeypatch.setattr(checking, "run_kernel", wrong)
    assert all(kernel.problem for kernel in _checked(tmp_path))
