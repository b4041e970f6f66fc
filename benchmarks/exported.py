"""The networks of ``torch_models/`` as ONNX files that PyTorch's exporter writes."""

from __future__ import annotations

import importlib
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.model import Array, Model

NAMES = ("resnet50", "mobilenetv2", "bert", "gpt", "lstm", "gru", "unet", "dcgan", "vit")


class Exported(Model):
    """A network of ``torch_models/``, by name. PyTorch is imported when it is needed: it takes seconds."""

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def _variant(self) -> Any:
        return importlib.import_module("benchmarks.torch_models.catalogue").FULL[self.name]

    def example(self) -> dict[str, Array]:
        return {name: value.numpy() for name, value in self._variant.example().items()}

    def torch_module(self) -> Any:
        return self._variant.module()

    def _write(self, path: Path) -> None:
        importlib.import_module("benchmarks.torch_models.export").export(self._variant, "script", path)

    @property
    def multiply_adds(self) -> int:
        """As PyTorch counts them; recurrent layers as the matrix products that they are made of."""
        return importlib.import_module("benchmarks.torch_models.export").multiply_adds(self._variant)
