"""Extensions in capitals say what a file is, as those in small letters do."""

from __future__ import annotations

from msc.backends.registry import DEFAULT, find_backend
from msc.formats.registry import format_of


def test_capitals_are_the_same_letters() -> None:
    table = find_backend(DEFAULT).table
    assert format_of("RESNET.ONNX") is format_of("resnet.onnx") is not None
    for name in ("model.mir", "model.gk.mir", "model.mlir"):
        assert table.of_file(name) is not None
        assert table.of_file(name.upper()) is table.of_file(name)
