"""The graph stage as an ONNX model."""

from msc.exporters.onnx.model import export_model

__all__ = ["export_model"]
