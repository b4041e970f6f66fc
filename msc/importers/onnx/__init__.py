"""ONNX models to graphs of `ms` operations: opsets 6 to the newest that the `onnx` package knows.

`import_model` reads a file, `import_proto` a model in memory; `save` writes what they give as a `.mir` file with its
weights beside it.
"""

from msc.importers.onnx.importing import import_model, import_proto
from msc.importers.onnx.model import Binding, Imported
from msc.importers.onnx.saving import save

__all__ = ["Binding", "Imported", "import_model", "import_proto", "save"]
