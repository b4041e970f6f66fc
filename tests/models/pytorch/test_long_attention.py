"""Attention of exported networks over long sequences: whatever PyTorch writes, the scores are never all in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import msc
from benchmarks.torch_models.bert import Bert
from benchmarks.torch_models.catalogue import Variant, masked_tokens, tokens
from benchmarks.torch_models.export import EXPORTERS, Exporter, expected, export
from benchmarks.torch_models.gpt import Gpt
from tests.models.comparison import TOLERANCE, largest_error

SEQUENCE, HEADS = 1024, 4
SCORES = HEADS * SEQUENCE * SEQUENCE * 4
LONG = {
    "padding": Variant("bert-long", lambda: Bert(1, 32, HEADS, 64, SEQUENCE), masked_tokens(64, SEQUENCE)),
    "causal": Variant("gpt-long", lambda: Gpt(1, 32, HEADS, 64, SEQUENCE), tokens(64, SEQUENCE)),
}


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("mask", LONG)
def test_scores_are_never_in_memory_at_once(mask: str, exporter: Exporter, tmp_path: Path) -> None:
    variant = LONG[mask]
    model = msc.compile(export(variant, exporter, tmp_path / "long.onnx"), march="x86-64-v3")
    assert model.signature.workspace_bytes < SCORES / 4
    inputs = [np.ascontiguousarray(value.numpy()) for value in variant.example().values()]
    assert largest_error(model.results(*inputs), expected(variant)) <= TOLERANCE
