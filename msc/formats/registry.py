"""The formats there are: msc's own, and those of installed packages (entry-point group `msc.formats`).

    [project.entry-points."msc.formats"]
    sketch = "sketch_format:SketchFormat"

names a subclass of `msc.formats.format.Format`, whose `name` is that of the entry point.
"""

from __future__ import annotations

from collections.abc import Iterator

from msc.formats.format import Format
from msc.support.plugins import Plugins

FORMATS = Plugins(
    group="msc.formats",
    what="format",
    code="MSC0580",
    own={
        "mir": "msc.formats.own_files:IrFormat",
        "onnx": "msc.formats.onnx_files:OnnxFormat",
        "python": "msc.formats.own_files:PythonFormat",
        "safetensors": "msc.formats.own_files:SafetensorsFormat",
        "tflite": "msc.formats.tflite_files:TfliteFormat",
    },
    base=lambda: Format,
    given=("title", "extensions", "lacks"),
    page="docs/formats.md",
)


def format_of(model: str) -> Format | None:
    """The format of a file by its name: msc's own come first, other packages' are asked for names unknown to these."""
    return next((each for each in _each() if each.takes(model)), None)


def format_of_data(data: bytes) -> Format:
    """The format of a model in memory; ONNX is what no other takes."""
    return next((each for each in _each() if each.takes_data(data)), FORMATS.find("onnx"))


def ir_format() -> Format:
    """The format of msc's own text."""
    return next(each for each in _each() if each.holds == "ir")


def written_formats() -> dict[str, Format]:
    """The formats that models are written in but msc's own text, by name."""
    return {each.name: each for each in FORMATS.found() if each.writes and each.holds != "ir"}


def written_format(name: str) -> Format | None:
    """The format of a name that models are written in, msc's own text excepted."""
    found = next((each for each in _each() if each.name == name), None)
    return found if found is not None and found.writes and found.holds != "ir" else None


def imported_extensions() -> tuple[str, ...]:
    """The extensions of files that hold a graph of another format."""
    return tuple(extension for each in FORMATS.found() if each.holds == "graph" for extension in each.extensions)


def _each() -> Iterator[Format]:
    """All formats: msc's own, and then those that can be loaded."""
    for name in FORMATS.own:
        yield FORMATS.find(name)
    yield from (each for each in FORMATS.found() if each.name not in FORMATS.own)
