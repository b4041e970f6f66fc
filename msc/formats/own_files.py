"""msc's own text, a module of any stage, and the safetensors file of its weights beside it; Python files with Cells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from msc.formats.format import Format, Reading
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.other_frameworks import file_advice

if TYPE_CHECKING:
    from msc.importers.imported import Imported
    from msc.support.outputs import OutputGuard, OutputSet

_CELL = re.compile(r".*\.py(:.*)?", re.DOTALL)


class IrFormat(Format):
    """`.mir` files, of all stages."""

    name = "mir"
    title = "a .mir file"
    extensions = (".mir", ".mlir")
    lacks = "nothing that msc compiles"
    holds = "ir"

    def takes_data(self, data: bytes) -> bool:
        return not any(byte < 32 and byte not in b"\t\n\r\f" for byte in data[:64])

    def read(self, model: str, how: Reading) -> Imported:
        """The module alone: its weights are read when they are wanted. Raises MSC0001 to MSC0003, MSC01xx."""
        from msc.importers.imported import Imported
        from msc.ir.reading import parse_module
        from msc.support.files import read_source, source_name

        assert how.context is not None
        text, name = read_source(Path(model)), source_name(model)
        return Imported(parse_module(how.context(), text, name), sources={name: text})

    def write(self, model: Imported, path: Path, files: OutputSet) -> None:
        from xdsl.dialects.builtin import StringAttr

        from msc.dialects.ms.attributes import MS_WEIGHTS
        from msc.ir.locations import format_module
        from msc.support.marks import is_marked, marked
        from msc.weights.safetensors_writing import is_written_here, write_tensors

        if model.weights:
            file = path.with_suffix(".safetensors")
            with files.open(file, is_written_here) as data:
                write_tensors(model.weights, data)
            model.module.attributes[MS_WEIGHTS] = StringAttr(file.name)
        files.write(path, marked(format_module(model.module, debuginfo=model.has_lines)), is_marked)


class SafetensorsFormat(Format):
    """`.safetensors`."""

    name = "safetensors"
    title = "a file of weights"
    extensions = (".safetensors",)
    lacks = "operations: it has weights alone"
    holds = "weights"

    def read(self, model: str, how: Reading) -> NoReturn:
        del how
        advice = file_advice(model)
        raise MscError(Diagnostic("MSC0006", f"'{model}' holds no model", help=None if advice is None else advice[1]))

    def parameters(self, path: Path) -> Mapping[str, tuple[str, int]]:
        """Raises MSC0301 and MSC0302."""
        from msc.weights.safetensors_file import TensorFile

        return {name: (entry.type_text, entry.end - entry.begin) for name, entry in TensorFile(path).entries.items()}


class PythonFormat(Format):
    """`module.py:Net`: running a file executes whatever stands in it."""

    name = "python"
    title = "a Cell"
    extensions = (".py",)
    lacks = "what graph mode does not read"
    holds = "program"

    def takes(self, model: str) -> bool:
        return _CELL.fullmatch(model) is not None

    def read(self, model: str, how: Reading) -> Imported:
        """Raises MSC0001, MSC0851 to MSC0853, and what capturing raises."""
        from msc.formats.cell_files import captured_file

        return captured_file(model, how.types, how.init)


def save(model: Imported, path: Path, guard: OutputGuard | None = None) -> None:
    """Write `path` (.mir) and, if the model has parameters, the safetensors file of the same stem: both or none.

    Raises MSC0004, and MSC0010 and MSC0011 (`OutputGuard.check`).
    """
    from msc.support.outputs import OutputGuard, OutputSet

    with OutputSet(guard or OutputGuard()) as files:
        IrFormat().write(model, path, files)
