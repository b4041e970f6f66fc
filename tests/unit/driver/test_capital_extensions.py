"""Extensions in capitals say what a file is, as those in small letters do."""

from __future__ import annotations

from msc.backends.registry import DEFAULT, find_backend
from msc.driver.models.onnx_models import is_onnx


def test_capitals_are_the_same_letters() -> None:
    table = find_backend(DEFAULT).table
    assert is_onnx("RESNET.ONNX")
    for name in ("model.mir", "model.gk.mir", "model.mlir"):
        assert table.of_file(name) is not None
        assert table.of_file(name.upper()) is table.of_file(name)
