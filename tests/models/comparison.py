"""One exported network: compiled, called, compared with PyTorch."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import msc
from benchmarks.torch_models.catalogue import Variant
from benchmarks.torch_models.export import Exporter, expected, export

TOLERANCE = 1e-4
"""Largest accepted difference, relative to the largest magnitude in the result."""

SENSITIVITY = 0.05
"""Least change of the result, relative to its largest magnitude, that another input must make.

A network whose result hardly depends on its input would agree with any compiler.
"""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Comparison:
    """What was found: the largest relative error, seconds of a cold compilation, seconds of a call."""

    name: str
    exporter: Exporter
    error: float
    compile_seconds: float
    call_seconds: float


def compare(variant: Variant, exporter: Exporter, folder: Path, threads: int = 1) -> Comparison:
    """Export into `folder`, compile without the cache, and compare. Raises MscError where the compiler refuses."""
    path = export(variant, exporter, folder / f"{variant.name}-{exporter}.onnx")
    start = time.perf_counter()
    model = msc.compile(path, threads=threads, use_cache=False)
    compiled = time.perf_counter() - start
    inputs = [np.ascontiguousarray(value.numpy()) for value in variant.example().values()]
    results = _tuple(model(*inputs))
    start = time.perf_counter()
    model(*inputs)
    called = time.perf_counter() - start
    return Comparison(variant.name, exporter, largest_error(results, expected(variant)), compiled, called)


def largest_error(results: tuple[Array, ...], wanted: list[Array]) -> float:
    """Over all results: the largest difference relative to the largest magnitude; infinite where one is not finite."""
    return max(_error(result, value) for result, value in zip(results, wanted, strict=True))


def _error(result: Array, wanted: Array) -> float:
    if result.shape != wanted.shape or not np.isfinite(result).all():
        return float("inf")
    return float(np.max(np.abs(np.subtract(result, wanted))) / np.max(np.abs(wanted)))


def _tuple(results: Array | tuple[Array, ...]) -> tuple[Array, ...]:
    return results if isinstance(results, tuple) else (results,)


def sensitivity(variant: Variant) -> float:
    """By how much the first result changes with the input, relative to its largest magnitude, in PyTorch."""
    first, other = (expected(variant, number)[0] for number in (0, 5))
    return float(np.max(np.abs(np.subtract(first, other))) / np.max(np.abs(first)))
