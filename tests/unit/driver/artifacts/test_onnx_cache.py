"""The cache of compiled models and weights that lie beside an ONNX file."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from safetensors.numpy import save

import msc
from msc import MscError
from msc.driver.artifacts import artifact_cache
from msc.runtime.cache import Cache
from tests.unit.importers.models import model, node, tensor


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A model x + w whose w lies in `w.bin`."""
    made = model(
        [node("Add", ["x", "w"], ["y"])], [tensor("x", [64])], [tensor("y", [64])], {"w": np.zeros(64, np.float32)}
    )
    path = tmp_path / "m.onnx"
    cast(Any, onnx).save(made, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    return path


def value(path: Path) -> float:
    return float(np.asarray(msc.compile(path)(np.zeros(64, np.float32)))[0])


def test_changed_external_data_is_compiled_anew(beside: Path) -> None:
    assert value(beside) == 0
    (beside.parent / "w.bin").write_bytes(np.full(64, 7, np.float32).tobytes())
    assert value(beside) == 7


def test_also_if_size_and_time_look_the_same(beside: Path) -> None:
    data = beside.parent / "w.bin"
    before = data.stat()
    assert value(beside) == 0
    data.write_bytes(np.full(64, 7, np.float32).tobytes())
    os.utime(data, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert value(beside) == 7


def test_a_library_that_the_cache_loses_is_compiled_again(beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where another program empties the cache just after the library has moved into it."""

    def lost(self: Cache, key: str, artifact: Path) -> None:
        artifact.unlink()

    monkeypatch.setattr(Cache, "take", lost)
    assert value(beside) == 0


def test_a_library_whose_recipe_cannot_be_written_is_loaded(beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str, **_: bool) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(artifact_cache, "write_text", full)
    assert value(beside) == 0


def test_external_data_that_has_gone_is_no_hit(beside: Path) -> None:
    assert value(beside) == 0
    (beside.parent / "w.bin").unlink()
    with pytest.raises(msc.MscError, match="MSC0706"):
        value(beside)


def outside(path: Path, folder: Path) -> None:
    """The same bytes, by a link to another folder."""
    target = folder / "outside"
    path.rename(target)
    path.symlink_to(target)


def other_name(path: Path, folder: Path) -> None:
    os.link(path, folder / "other")


@pytest.mark.parametrize("change", [outside, other_name])
def test_a_model_that_is_known_is_checked_as_one_that_is_not(
    change: Callable[[Path, Path], None], beside: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert value(beside) == value(beside)
    change(next(path for path in beside.parent.iterdir() if path != beside), tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(MscError, match="MSC0706"):
        value(beside)


MIR = """builtin.module attributes {ms.weights = "w.safetensors"} {
  ms.parameter @w : tensor<2xf32>
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %w = ms.get_parameter @w : tensor<2xf32>
    %y = ms.add %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    func.return %y : tensor<2xf32>
  }
}
"""


def test_weights_that_a_link_leads_to_are_checked_though_the_model_is_known(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    model, weights = tmp_path / "m.mir", tmp_path / "w.safetensors"
    model.write_text(MIR)
    weights.write_bytes(save({"w": np.ones(2, np.float32)}))
    assert msc.compile(str(model))(np.ones(2, np.float32)).tolist() == [2, 2]
    outside(weights, tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(MscError, match="MSC0305"):
        msc.compile(str(model))
