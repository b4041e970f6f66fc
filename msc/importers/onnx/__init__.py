"""ONNX models to graphs of `ms` operations: opsets 6 to the newest that the `onnx` package knows.

`import_model` reads a file, `import_proto` a model in memory.
"""

from msc.importers.onnx.importing import import_model, import_proto
from msc.importers.onnx.model import Binding

__all__ = ["Binding", "import_model", "import_proto"]
