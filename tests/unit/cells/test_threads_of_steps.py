"""A compiled step of training gives the same bits for any number of threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.training.engines import network, training_step
from benchmarks.training.networks import TASKS
from msc import Tensor, nn
from msc.dialects.arrays import Array
from msc.dialects.loop import ForOp, LoopKind
from msc.driver.artifacts.libraries import library_of
from msc.driver.compile import compile_model
from msc.driver.models.cells import capture
from msc.driver.options import CompileOptions

STEPS = 3


def step_of(name: str) -> nn.Cell:
    return training_step(network(TASKS[name]))


@pytest.mark.parametrize("name", ["mlp-b64", "lenet5-b32"])
def test_one_and_two_threads_give_the_same_bits(name: str, tmp_path: Path) -> None:
    step, (x, y) = step_of(name), TASKS[name].data()
    values = {p.name: p.asnumpy() for p in step.get_parameters()}
    path = tmp_path / "step.mir"
    capture(step, (Tensor(x), Tensor(y))).write(path)

    def trained(threads: int) -> list[Array]:
        model = library_of(str(path), CompileOptions(threads=threads), use_cache=False).load()
        states = [np.array(values[t.name], order="C") for t in model.inputs[2:]]
        losses = [np.array(model.results(x, y, *states)[0]) for _ in range(STEPS)]
        return [*losses, *states]

    for number, (one, two) in enumerate(zip(trained(1), trained(2), strict=True)):
        assert one.tobytes() == two.tobytes(), number


def test_threads_do_share_the_loops_of_a_step(tmp_path: Path) -> None:
    path = tmp_path / "step.mir"
    capture(step_of("mlp-b64"), tuple(map(Tensor, TASKS["mlp-b64"].data()))).write(path)
    module = compile_model(str(path), CompileOptions(threads=2)).module
    assert any(isinstance(op, ForOp) and op.kind.data is LoopKind.PARALLEL for op in module.walk())
