"""PyTorch to ONNX: ``python -m benchmarks.torch_models.export FOLDER [NAME...]``."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
import numpy.typing as npt
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.torch_models.catalogue import FULL, TINY, Variant

Exporter = Literal["script", "dynamo"]
EXPORTERS: tuple[Exporter, ...] = ("script", "dynamo")

VARIANTS: Mapping[str, Variant] = {**FULL, **TINY}


def export(variant: Variant, exporter: Exporter, path: Path) -> Path:
    """Write a variant as ONNX; weights stand beside it where the exporter puts them."""
    example = variant.example()
    with _exporting():
        torch.onnx.export(
            variant.module(),
            tuple(example.values()),
            str(path),
            input_names=list(example),
            dynamo=exporter == "dynamo",
            verbose=False,
        )
    return path


@contextmanager
def _exporting() -> Generator[None]:
    """Without warnings, and without PyTorch's fused attention, which the TorchScript exporter can't write."""
    mha: Any = torch.backends.mha
    before = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(False)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        mha.set_fastpath_enabled(before)


def expected(variant: Variant, number: int = 0) -> list[npt.NDArray[np.generic]]:
    """What PyTorch computes for an example."""
    with torch.inference_mode():
        results = variant.module()(*variant.example(number).values())
    return [result.numpy() for result in (results if isinstance(results, tuple) else (results,))]


def multiply_adds(variant: Variant) -> int:
    """Of the convolutions and matrix products of one example; PyTorch's counter does not look into fused layers."""
    module, example = variant.module(), variant.example()  # making a module runs it, to calibrate
    counter = FlopCounterMode(display=False)
    with _exporting(), sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False), counter:
        module(*example.values())
    return counter.get_total_flops() // 2


@click.command(epilog="Example: python -m benchmarks.torch_models.export models resnet50 --exporter script")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1, type=click.Choice(list(VARIANTS)))
@click.option("--exporter", type=click.Choice(EXPORTERS), default="script", show_default=True)
def main(folder: Path, names: tuple[str, ...], exporter: Exporter) -> None:
    """Write the named variants (all by default) to FOLDER as ONNX."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or VARIANTS:
        click.echo(export(VARIANTS[name], exporter, folder / f"{name}.onnx"))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.torch_models.export")
