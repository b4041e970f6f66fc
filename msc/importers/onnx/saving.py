"""Writing an imported model: a `.mir` text and a safetensors file beside it, the arrays streamed, never joined."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from xdsl.dialects.builtin import StringAttr
from xdsl.printer import Printer

from msc.dialects.ms.attributes import MS_WEIGHTS
from msc.importers.onnx.model import Imported
from msc.support.marks import is_marked, marked
from msc.support.outputs import OutputGuard, OutputSet
from msc.weights.safetensors_writing import is_written_here, write_tensors


def save(imported: Imported, path: Path, guard: OutputGuard | None = None) -> None:
    """Write `path` (.mir) and, if the model has parameters, the safetensors file of the same stem: both or none.

    Raises MSC0004, and MSC0010 and MSC0011 (`Guard.check`).
    """
    with OutputSet(guard or OutputGuard()) as files:
        if imported.weights:
            file = path.with_suffix(".safetensors")
            with files.open(file, is_written_here) as data:
                write_tensors(imported.weights, data)
            imported.module.attributes[MS_WEIGHTS] = StringAttr(file.name)
        text = StringIO()
        Printer(text).print_op(imported.module)
        files.write(path, marked(text.getvalue() + "\n"), is_marked)
