"""TensorFlow Lite models (`.tflite`) to graphs of `ms` operations: of floats, and quantised as its kernels compute.

`import_model` reads a file, `import_bytes` a model in memory.
"""

from msc.importers.tflite.importing import import_bytes, import_model

__all__ = ["import_bytes", "import_model"]
