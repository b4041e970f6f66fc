"""The networks: an ONNX file and inputs of each, in f32 or f16, full size or tiny."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.sample_models import LeNet5
from benchmarks.torch_models.catalogue import FULL, TINY, Inputs, Variant
from benchmarks.torch_models.export import export
from msc.dialects.arrays import Array

_LENET = Variant(
    "lenet5",
    lambda: LeNet5().torch_module(),
    lambda generator: {"image": torch.randn((1, 1, 32, 32), generator=generator)},
)
NETWORKS: Mapping[str, Variant] = {
    "lenet5": _LENET,
    **{name: FULL[name] for name in ("resnet50", "mobilenetv2", "bert")},
    **{name: TINY[name] for name in ("resnet-tiny", "mobilenet-tiny", "bert-tiny")},
}
"""By name. The tiny ones are small enough for a test."""

FULL_SIZE = ("lenet5", "resnet50", "mobilenetv2", "bert")
"""The networks that the command checks by default, batch 1."""

DTYPES = ("f32", "f16")


def written(name: str, dtype: str, folder: Path) -> tuple[Path, Mapping[str, Array]]:
    """A network as an ONNX file in a folder, and its inputs."""
    variant = NETWORKS[name] if dtype == "f32" else _half(NETWORKS[name])
    path = export(variant, "script", folder / f"{name}-{dtype}.onnx")
    return path, {key: value.numpy() for key, value in variant.example().items()}


def _half(variant: Variant) -> Variant:
    """The same network in f16."""

    def inputs(generator: torch.Generator) -> Inputs:
        made = variant.inputs(generator)
        return {key: value.half() if value.is_floating_point() else value for key, value in made.items()}

    return replace(variant, make=lambda: variant.module().half(), inputs=inputs)
