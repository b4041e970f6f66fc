"""Whole networks against the interpreter: samples, small models and layers of the benchmarks, recurrent layers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.models import MODELS
from msc.driver.models.interpretation import input_tensors, interpret
from msc.driver.models.model_inputs import random_inputs
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions
from msc.runtime.stored_order import own_array
from tests.conformance.backend import Array
from tests.switched.trying import Check, Compile
from tests.unit.importers.test_recurrent import GATES, layer

SAMPLES = Path(__file__).parents[2] / "samples"
MEASURED = "resnet8 ds_cnn mobilenetv1-0.25 autoencoder attention-512 conv3x3-128-128-28 matmul-512".split()
RELATIVE_ERROR = 1e-3
"""Of the largest result."""


def networks() -> Iterator[Check]:
    """Between them every optimisation makes a difference."""
    for path in sorted(p for p in SAMPLES.glob("*/*.mir") if p.suffixes == [".mir"]):
        yield Check(path.stem, _against_the_interpreter(lambda path=path: path))
    for name in MEASURED:
        yield Check(name, _against_the_interpreter(lambda name=name: MODELS[name].onnx))
    for operator in GATES:
        yield Check(operator, lambda compile, operator=operator: _recurrent(operator, compile))


def _against_the_interpreter(path: Callable[[], Path]) -> Callable[[Compile], None]:
    return lambda compile: compare(path(), compile)


def _recurrent(operator: str, compile: Compile) -> None:
    """A layer that runs in both directions, over more steps than are unrolled."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{operator}.onnx"
        made, _ = layer(operator, ("B", "initial_h"), direction="bidirectional")
        path.write_bytes(made.SerializeToString())
        compare(path, compile)


def compare(path: Path, compile: Compile, inputs: Sequence[Array] | None = None, least: float = 0.0) -> None:
    """Raise unless a compiled model gives near what the interpreter does, for `inputs`, or random ones.

    Errors below `least` do not count: what is zero but for rounding has no size to compare them with.
    """
    options = CompileOptions()
    if inputs is None:
        inputs = random_inputs(input_tensors(read_model(str(path), options).module), 1)
    function = compile(read_model(str(path), options), options)
    # A step of training updates its inputs, which lie as its products read them.
    arrays = (own_array(tensor, array) for tensor, array in zip(function.signature.inputs, inputs, strict=True))
    _assert_near(function.results(*arrays), interpret(read_model(str(path), options), inputs), least)


def _assert_near(results: Sequence[Array], expected: Sequence[Array], least: float) -> None:
    for found, wanted in zip(results, expected, strict=True):
        atol = max(RELATIVE_ERROR * float(np.max(np.abs(wanted))), least)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=atol)
