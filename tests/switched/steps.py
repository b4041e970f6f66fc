"""Steps of training against the interpreter: losses, weights and momenta, which may lie as products read them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

from benchmarks.training.engines import network, training_step
from benchmarks.training.networks import Gpt, Task
from msc import Tensor
from msc.driver.models.interpretation import input_tensors
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions
from msc.formats.capture import capture
from msc.formats.own_files import save
from tests.sanitized_steps import SMALL
from tests.switched.networks import compare
from tests.switched.trying import Check, Compile

STEPS = SMALL | {"gpt of 512 tokens": Task(lambda: Gpt(61, 32, 1, 2, 512), (1, 512), 512, 61, 61)}
"""By name; the scores of the last outgrow L2."""

LEAST = 1e-5
"""An error that does not count: the gradient of a key's bias is zero."""


def steps() -> Iterator[Check]:
    """Between them the optimisations of training make a difference."""
    return (Check(name, partial(_of_step, name)) for name in STEPS)


def _of_step(name: str, compile: Compile) -> None:
    step, data = training_step(network(STEPS[name])), STEPS[name].data()
    path = Path(_folder().name) / f"{name}.mir"
    save(capture(step, tuple(map(Tensor, data)), any_layout=True), path)
    states = {p.name: p.asnumpy() for p in step.get_parameters()}
    tensors = input_tensors(read_model(str(path), CompileOptions()).module)
    compare(path, compile, [*data, *(states[tensor.name] for tensor in tensors[len(data) :])], LEAST)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where models lie until the process ends: a copy without an optimisation is built later, and reads weights."""
    return tempfile.TemporaryDirectory()
