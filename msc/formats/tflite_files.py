"""TensorFlow Lite files: read by `msc.importers.tflite`, run by TensorFlow Lite for Microcontrollers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from msc.formats.format import Format, Reading
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.plain_files import content

if TYPE_CHECKING:
    from msc.dialects.arrays import Array
    from msc.importers.imported import Imported

_ARENAS = (1 << 20, 1 << 26)
"""Bytes that TensorFlow Lite for Microcontrollers is given for its tensors, at first and if they do not suffice."""


class TfliteFormat(Format):
    """`.tflite`."""

    name = "tflite"
    title = "a TFLite model"
    extensions = (".tflite",)
    lacks = "msc does not write it"
    packages = ("tflite", "flatbuffers")
    references = {"tflite_micro": "TensorFlow Lite for Microcontrollers"}

    def takes_data(self, data: bytes) -> bool:
        return data[4:8] == b"TFL3"

    def read(self, model: str, how: Reading) -> Imported:
        """Raises MSC0717 without the packages, and MSC07xx."""
        del how
        self.check_packages()
        from msc.importers.tflite import import_model

        return import_model(Path(model))

    def operators(self) -> Iterator[str]:
        self.check_packages()
        from msc.importers.tflite.registry import importer

        yield from sorted(importer.all())

    def reference(self, package: str, model: str, how: Reading) -> TfliteMicro:
        """Raises MSC0717 without the packages."""
        del how
        self.check_packages()
        self.check_package(package, f"comparing with {self.references[package]}")
        return TfliteMicro(self.read(model, Reading()), Path(model))


class TfliteMicro:
    """A model run by TensorFlow Lite for Microcontrollers."""

    title = "TensorFlow Lite for Microcontrollers"

    def __init__(self, imported: Imported, path: Path) -> None:
        self._imported, self._path = imported, path

    def fixed(self) -> Mapping[str, Array]:
        return {}

    def outputs(self) -> Sequence[str]:
        return self._imported.outputs

    def results(self, inputs: Mapping[str, Array]) -> Sequence[Array]:
        """Raises MSC0721."""
        runtime: Any = import_module("tflite_micro").runtime
        data, reason = content(self._path), ""
        for size in _ARENAS:
            try:
                interpreter = runtime.Interpreter.from_bytes(data, arena_size=size)
                for index, array in enumerate(inputs.values()):
                    interpreter.set_input(array, index)
                interpreter.invoke()
                return [interpreter.get_output(index) for index in range(len(self.outputs()))]
            except (RuntimeError, ValueError) as error:
                reason = str(error).strip().partition("\n")[0]
        raise MscError(Diagnostic("MSC0721", f"{self.title} does not run '{self._path}': {reason}"))

    def with_all_values(self) -> NoReturn:
        message = f"{self.title} gives no values between the operators"
        raise MscError(Diagnostic("MSC0721", message))
