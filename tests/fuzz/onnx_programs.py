"""Damaged ONNX models that import are taken on to C, through every pass: what is legal must also compile."""

from __future__ import annotations

from pathlib import Path

from msc.backends.registry import find_backend
from msc.driver.compile import compile_read, generate_c
from msc.driver.models.reading_models import LoadedModel
from msc.driver.options import CompileOptions
from msc.driver.passes.registry import new_context
from msc.importers.onnx import import_proto
from msc.importers.onnx.reading.model_file import parse_model
from msc.ir.verification import verify_module
from tests.fuzz.onnx_models import OnnxModels

TABLE = find_backend("cpu").table

_OPTIONS = CompileOptions(march="x86-64-v3")


class OnnxPrograms(OnnxModels):
    """The target `onnx-c`."""

    def run(self, data: bytes) -> str:
        """Parse, import, verify, compile to C."""
        imported = import_proto(parse_model(data, "model.onnx"))
        verify_module(imported.module)
        model = LoadedModel("model.onnx", imported.module, TABLE["graph"], Path(), {}, new_context(), imported)
        return f"{'long ' if len(generate_c(compile_read(model, _OPTIONS)).source) > 1 << 20 else ''}program"
