"""A compiled step of training gives the same bits for any number of threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.training.engines import network, training_step
from benchmarks.training.networks import TASKS
from msc import Tensor, nn
from msc.dialects.loop import ForOp, LoopKind
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.formats.capture import capture
from msc.formats.own_files import save
from tests.steps_on_threads import differing


def step_of(name: str) -> nn.Cell:
    return training_step(network(TASKS[name]))


@pytest.mark.parametrize("name", ["mlp-b64", "lenet5-b32"])
def test_one_and_two_threads_give_the_same_bits(name: str) -> None:
    """`python -m tests.steps_on_threads` compares the others, which take longer to compile."""
    assert differing(TASKS[name], threads=2, steps=3) == []


def test_threads_do_share_the_loops_of_a_step(tmp_path: Path) -> None:
    path = tmp_path / "step.mir"
    save(capture(step_of("mlp-b64"), tuple(map(Tensor, TASKS["mlp-b64"].data()))), path)
    module = compile_model(str(path), CompileOptions(threads=2)).module
    assert any(isinstance(op, ForOp) and op.kind.data is LoopKind.PARALLEL for op in module.walk())
