"""The networks of MLPerf Tiny in integers give TFLM's bytes."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.model import GraphModel
from benchmarks.tflite_graph import run_micro
from benchmarks.tflite_quantised import NETWORKS, example, quantised
from msc.importers.tflite import import_bytes
from msc.interp import evaluate


@pytest.mark.parametrize("kind", NETWORKS, ids=lambda kind: kind.name)
def test_networks_equal_tflm(kind: type[GraphModel]) -> None:
    data = quantised(kind())
    given = example(data)
    imported = import_bytes(data)
    (name,) = kind.inputs
    (got,) = evaluate(imported.module, {name: given}, imported.weights)
    (wanted,) = run_micro(data, [given])
    np.testing.assert_array_equal(got, wanted)
    assert len(np.unique(got)) > 1
