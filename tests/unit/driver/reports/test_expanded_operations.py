"""Every composite operation, and random graphs, through the whole compiler to C: equal to the interpreter."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import HealthCheck, given, settings
from safetensors.numpy import save

import msc
from tests.unit.compiled.programs import Case
from tests.unit.compiled.test_operations import check_all
from tests.unit.graph.expand.test_expanders import ACTIVATIONS, OF_X, OTHERS, X
from tests.unit.graph_kernel.graphs import Array, random_inputs, random_weights, read, results
from tests.unit.graph_kernel.test_random_graphs import graphs

CASES = [*(("%x: tensor<4x9xf32>", text) for text in ACTIVATIONS), *((X, text) for text in OF_X), *OTHERS]


def check(actual: Array, expected: Array, tolerance: float) -> None:
    assert actual.dtype == expected.dtype
    exact = expected.dtype.kind not in "fV"
    wide, reference = actual.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(wide, reference, rtol=0 if exact else tolerance, atol=0 if exact else tolerance)


def as_case(arguments: str, text: str) -> Case:
    """An operation on operands by number, as compiled programs of many operations have them."""
    named = re.findall(r"(%\w+): tensor<([^>]*)>", arguments)
    numbers = {name: f"%{number}" for number, (name, _) in enumerate(named)}
    operation = re.sub(r"%\w+", lambda name: numbers[name[0]], f"ms.{text}")
    return operation, " ".join(type_ for _, type_ in named)


def test_operations(tmp_path: Path) -> None:
    check_all([as_case(*case) for case in CASES], tmp_path)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graphs())
def test_random_graph(text: str) -> None:
    module = read(text)
    inputs, weights = random_inputs(module), random_weights(module)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.mir"
        path.write_text(f'builtin.module attributes {{ms.weights = "weights.safetensors"}} {{\n{text}\n}}\n')
        (Path(folder) / "weights.safetensors").write_bytes(save(weights or {"none": np.zeros(1, np.float32)}))
        outputs = msc.compile(path, threads=1)(*inputs)
    for actual, expected in zip(outputs, results(module, inputs, weights), strict=True):
        check(np.asarray(actual), expected, 1e-3)
