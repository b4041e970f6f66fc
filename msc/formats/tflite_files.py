"""TensorFlow Lite files: read by `msc.importers.tflite`, run by TensorFlow Lite for Microcontrollers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msc.formats.format import Format, Reading

if TYPE_CHECKING:
    from msc.importers.imported import Imported


class TfliteFormat(Format):
    """`.tflite`."""

    name = "tflite"
    title = "a TFLite model"
    extensions = (".tflite",)
    lacks = "(msc does not write it)"
    packages = ("tflite", "flatbuffers")

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
