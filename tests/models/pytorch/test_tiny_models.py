"""A tiny variant of every architecture, exported by PyTorch; `python -m tests.models` runs the full sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.torch_models.catalogue import TINY
from benchmarks.torch_models.export import EXPORTERS, Exporter
from tests.models.comparison import SENSITIVITY, TOLERANCE, compare, sensitivity


@pytest.mark.parametrize("name", TINY)
def test_results_depend_on_the_input(name: str) -> None:
    assert sensitivity(TINY[name]) > SENSITIVITY


@pytest.mark.parametrize(("number", "name"), list(enumerate(TINY)))
def test_agrees_with_pytorch(number: int, name: str, tmp_path: Path) -> None:
    exporter: Exporter = EXPORTERS[number % 2]
    assert compare(TINY[name], exporter, tmp_path).error <= TOLERANCE
