"""Models that are in memory: `.mir` text, the bytes of an ONNX file, a ModelProto, an open file.

Each is written to a file of its own, which is read as any other; messages call it `<text>` or `<bytes>`.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Self, cast
from weakref import finalize

from msc.formats.registry import format_of, format_of_data
from msc.support.argument_values import file_path, refuse
from msc.support.diagnostics import Diagnostic, Location, MscError
from msc.support.files import write_bytes
from msc.support.temporary import make_temporary, remove_temporary

_KINDS = "the path of a model file, .mir text, the bytes of a model, an object with SerializeToString, or an open file"


class ModelFile:
    """The file of a model; one that was made for a model in memory goes with this object."""

    def __init__(self, model: Any) -> None:
        """Raises MSC0008 for what is no model."""
        self.in_memory = not isinstance(model, PathLike) and not (isinstance(model, str) and "\n" not in model)
        self._name = "<text>"
        self.path = self._written(_data(model)) if self.in_memory else file_path("model", model, _KINDS)

    def _written(self, data: bytes) -> Path:
        folder = make_temporary("model")
        finalize(self, remove_temporary, folder)
        found = format_of_data(data)
        self._name = "<text>" if found.holds == "ir" else "<bytes>"
        path = folder / f"model{found.extensions[0]}"
        write_bytes(path, data, durable=False)
        return path

    @property
    def fixes_inputs(self) -> bool:
        """Whether values may be given to inputs."""
        found = format_of(str(self.path))
        return found is not None and found.fixes_inputs

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Errors name the model in memory by a name that says something."""
        if self.in_memory and type(error) is MscError:
            raise MscError(*map(self.renamed, error.diagnostics)) from error

    def renamed(self, diagnostic: Diagnostic) -> Diagnostic:
        """A diagnostic with the name of the model in place of its file's."""
        return _renamed(diagnostic, str(self.path), self._name) if self.in_memory else diagnostic


def _data(model: Any) -> bytes:
    data: object = model
    if hasattr(model, "read"):
        data = model.read()
    elif hasattr(model, "SerializeToString"):
        data = model.SerializeToString()
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if not isinstance(data, bytes | bytearray) or not data:
        refuse("model", cast(object, model), _KINDS)
    return bytes(data)


def _renamed(diagnostic: Diagnostic, path: str, name: str) -> Diagnostic:
    location = diagnostic.location
    if location is not None:
        written = None if location.written is None else _named(location.written, path, name)
        location = replace(_named(location, path, name), written=written)
    notes = tuple(note.replace(path, name) for note in diagnostic.notes)
    return replace(diagnostic, message=diagnostic.message.replace(path, name), location=location, notes=notes)


def _named(location: Location, path: str, name: str) -> Location:
    return replace(location, file=name) if location.file == path else location
