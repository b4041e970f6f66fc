"""The cache of compiled models and weights that lie beside an ONNX file."""

import os
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest

import msc
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


def test_external_data_that_has_gone_is_no_hit(beside: Path) -> None:
    assert value(beside) == 0
    (beside.parent / "w.bin").unlink()
    with pytest.raises(msc.MscError, match="MSC0706"):
        value(beside)
