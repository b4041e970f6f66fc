"""Models at the graph stage as ONNX files."""

from __future__ import annotations

from pathlib import Path

from msc import __version__
from msc.driver.models.reading_models import LoadedModel
from msc.exporters.onnx import export_model
from msc.graph.inline_calls import InlineCalls
from msc.graph.shapes.infer_shapes import InferShapes
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.plain_files import opened

LARGEST = (1 << 31) - 1
"""Bytes of a protobuf message."""


def onnx_bytes(model: LoadedModel) -> bytes:
    """A model as an ONNX file. Its calls are inlined and its shapes inferred. Raises MSC0720."""
    for item in (InlineCalls(), InferShapes()):
        item.apply(model.context, model.module)
    exported = export_model(model.module, model.weights(), f"msc {__version__}")
    if exported.ByteSize() > LARGEST:
        message = f"the model takes {exported.ByteSize()} bytes; a file of ONNX has {LARGEST} at most"
        raise MscError(Diagnostic("MSC0720", message))
    return exported.SerializeToString()


def is_exported(path: Path) -> bool:
    """Whether msc wrote an ONNX file. Raises OSError."""
    with opened(path) as file:
        return f"msc {__version__}".encode() in file.read(_HEAD)


_HEAD = 64
"""The producer stands among the first fields."""
