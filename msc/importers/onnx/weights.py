"""Writing an imported model: a `.mir` text and a safetensors file beside it, the arrays streamed, never joined."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from xdsl.dialects.builtin import StringAttr
from xdsl.printer import Printer

from msc.importers.onnx.model import Imported
from msc.interp.safetensors_writing import write_safetensors
from msc.interp.weights import FILE_ATTRIBUTE
from msc.support.files import write_text


def save(imported: Imported, path: Path) -> None:
    """Write `path` (.mir) and, if the model has parameters, the safetensors file of the same stem. Raises MSC0004."""
    if imported.weights:
        file = path.with_suffix(".safetensors")
        write_safetensors(imported.weights, file)
        imported.module.attributes[FILE_ATTRIBUTE] = StringAttr(file.name)
    text = StringIO()
    Printer(text).print_op(imported.module)
    write_text(path, text.getvalue() + "\n")
