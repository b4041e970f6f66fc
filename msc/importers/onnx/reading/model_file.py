"""Reading an ONNX file without trusting it: sizes first, and every number checked before memory is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import FunctionProto, ModelProto, OperatorSetIdProto

from msc.importers.failures import failure, shown
from msc.support.files import near_file
from msc.support.plain_files import content

MAXIMUM_MODEL_BYTES = 2 << 30
"""What protobuf itself can hold; larger weights are external data."""

MINIMUM_OPSET = 1
MAXIMUM_OPSET = onnx.defs.onnx_opset_version()

DEFAULT_DOMAINS = ("", "ai.onnx")


def read_model(path: Path) -> ModelProto:
    """The model of a file. Raises MSC0701 (unreadable) and MSC0702 (not an ONNX model)."""
    return parse_model(_bytes(path), str(path))


def parse_model(data: bytes, name: str) -> ModelProto:
    """The model of a file's bytes. Raises MSC0702."""
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise failure("MSC0702", f"'{name}' is not an ONNX model, or is truncated: {error}") from error
    if not model.HasField("graph"):
        raise failure("MSC0702", f"'{name}' is not an ONNX model: it has no graph")
    return model


def _bytes(path: Path) -> bytes:
    try:
        return content(path, MAXIMUM_MODEL_BYTES)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise failure("MSC0701", f"cannot read '{path}': {reason}", help=near_file(path)) from error


def opsets(model: ModelProto) -> dict[str, int]:
    """Domain -> opset of a model; the default domain is "". Raises MSC0703 for one that msc does not know."""
    found = _opsets(model.opset_import)
    version = found.setdefault("", MAXIMUM_OPSET if model.functions or found else 1)
    if not MINIMUM_OPSET <= version <= MAXIMUM_OPSET:
        message = f"the model is of opset {version}; msc reads opsets {MINIMUM_OPSET} to {MAXIMUM_OPSET}"
        raise failure("MSC0703", message, help="convert it with onnx.version_converter")
    return found


_MAXIMUM_VERSION = 1 << 31
"""Of the opset of any domain: the format's own limit is lost on its readers."""


def _opsets(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Raises MSC0703 for a version that no opset can have."""
    found = {"" if o.domain in DEFAULT_DOMAINS else o.domain: o.version for o in imports}
    for domain, version in found.items():
        if not 0 <= version < _MAXIMUM_VERSION:
            raise failure("MSC0703", f"domain '{shown(domain)}' is of opset {version}, which cannot be")
    return found


def function_opsets(function: FunctionProto) -> dict[str, int]:
    """Domain -> opset of a function's body."""
    return _opsets(function.opset_import)
