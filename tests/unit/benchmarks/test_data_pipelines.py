"""The benchmark of data pipelines makes the batches that it says it measures."""

from __future__ import annotations

from pathlib import Path

import pytest

import msc.dataset as ds
from benchmarks.data_pipelines import measured, of_msc
from msc.dataset import pictures
from msc.frontend.modes import INTERPRETER, Wishes


@pytest.mark.parametrize(("recipe", "shape"), [("mnist-augmented", (32, 1, 32, 32)), ("cifar", (32, 3, 32, 32))])
def test_pipelines_of_msc(recipe: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pictures, "WISHES", Wishes(INTERPRETER))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    try:
        batches = list(of_msc(recipe, 64))
    finally:
        ds.config.set_auto_offload(False)
    assert [batch[0].shape for batch in batches] == [shape, shape]
    assert batches[0][0].dtype == "f4"
    assert measured(batches, 0.0)[0] > 0
