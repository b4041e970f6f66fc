"""The networks: an ONNX file and inputs of each, in f32 or f16, full size or tiny."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.sample_models import LeNet5
from msc.dialects.arrays import Array

torch: Any = importlib.import_module("torch")
catalogue: Any = importlib.import_module("benchmarks.torch_models.catalogue")
exporting: Any = importlib.import_module("benchmarks.torch_models.export")


def _images(generator: Any) -> Mapping[str, Any]:
    return {"image": torch.randn((1, 1, 32, 32), generator=generator)}


NETWORKS: Mapping[str, Any] = {
    "lenet5": catalogue.Variant("lenet5", LeNet5().torch_module, _images),
    **{name: catalogue.FULL[name] for name in ("resnet50", "mobilenetv2", "bert")},
    **{name: catalogue.TINY[name] for name in ("resnet-tiny", "mobilenet-tiny", "bert-tiny")},
}
"""By name. The tiny ones are small enough for a test."""

FULL_SIZE = ("lenet5", "resnet50", "mobilenetv2", "bert")
"""The networks that the command checks by default, batch 1."""

DTYPES = ("f32", "f16")


def written(name: str, dtype: str, folder: Path) -> tuple[Path, Mapping[str, Array]]:
    """A network as an ONNX file in a folder, and its inputs."""
    variant = NETWORKS[name] if dtype == "f32" else _half(NETWORKS[name])
    path = exporting.export(variant, "script", folder / f"{name}-{dtype}.onnx")
    return path, {key: value.numpy() for key, value in variant.example().items()}


def _half(variant: Any) -> Any:
    """The same network in f16."""

    def inputs(generator: Any) -> Mapping[str, Any]:
        made: Mapping[str, Any] = variant.inputs(generator)
        return {key: value.half() if value.is_floating_point() else value for key, value in made.items()}

    return replace(variant, make=lambda: variant.module().half(), inputs=inputs)
