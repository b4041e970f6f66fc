"""Fixtures: a small model with weights, and a cache of its own for every test."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

MODEL = """// A small network.
builtin.module @small attributes {ms.weights = "small.safetensors"} {
  ms.parameter @w : tensor<4x6xf32>
  ms.parameter @b : tensor<4xf32>
  func.func @main(%x: tensor<2x6xf32> {ms.name = "x"}) -> (tensor<2x4xf32> {ms.name = "y"}) {
    %w = ms.get_parameter @w : tensor<4x6xf32>
    %b = ms.get_parameter @b : tensor<4xf32>
    %0 = ms.dense %x, %w, %b
    %1 = ms.gelu %0
    %2 = ms.softmax %1
    func.return %2 : tensor<2x4xf32>
  }
}
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """`small.mir` with its weights beside it."""
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal(shape, np.float32) for name, shape in (("w", (4, 6)), ("b", (4,)))}
    (tmp_path / "small.safetensors").write_bytes(save(weights))
    path = tmp_path / "small.mir"
    path.write_text(MODEL, "utf-8")
    return path
