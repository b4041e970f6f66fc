"""One graph that several ranks train: losses and parameters are those of one rank, in the interpreter and over MPI."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc import nn, ops
from msc.dialects.ranks import run_ranks
from msc.frontend.parallel import reset_auto_parallel_context, set_auto_parallel_context
from msc.support.diagnostics import MscError
from tests.unit.parallel.programs import mpirun, needs_mpi
from tests.unit.parallel.training import OPTIMIZER_PARALLEL, Training, trained

CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("mlp", "dp=2,tp=2", OPTIMIZER_PARALLEL),
    ("gpt", "tp=2", {}),
    ("resnet8", "dp=2", {}),
]


@pytest.mark.parametrize(("network", "mesh", "settings"), CASES)
def test_ranks_train_as_one(network: str, mesh: str, settings: dict[str, Any]) -> None:
    """Tensors are cut by rows, columns and the layout of states; BatchNorm has the statistics of all rows."""
    training = Training(network)
    one = training.step()
    expected = training.run(one, 3)
    losses, parameters = trained(training, 3, mesh, **settings)
    for own, values in zip(losses, parameters, strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-9)
        for parameter, value in zip(one.get_parameters(), values, strict=True):
            np.testing.assert_allclose(value, parameter.asnumpy(), rtol=1e-9, atol=1e-9, err_msg=parameter.name)


class Clipped(nn.TrainOneStepCell):
    """Gradients are clipped by their norm over all parameters before the update."""

    def construct(self, *inputs: Any) -> Any:
        from msc import value_and_grad

        loss, gradients = value_and_grad(self.network, None, self.weights)(*inputs)
        self.optimizer(ops.clip_by_global_norm(gradients, 0.1))
        return loss


def test_norms_and_overflow_are_of_all_ranks() -> None:
    """A norm over gradients of which each rank has parts; a loss scale that one rank's rows make overflow."""
    clipped = Training("mlp", make=lambda network, optimizer: Clipped(network, optimizer))
    expected = clipped.run(clipped.step(), 3)
    for losses in trained(clipped, 3, "dp=2,tp=2", **OPTIMIZER_PARALLEL)[0]:
        np.testing.assert_allclose(losses, expected, rtol=1e-9)
    scaled = Training(
        "mlp", np.float32, make=lambda network, optimizer: nn.TrainOneStepWithLossScaleCell(
            network, optimizer, nn.DynamicLossScaleUpdateCell(2.0**127, 2, 4), returns_state=False
        )
    )  # fmt: skip
    expected = scaled.run(scaled.step(), 3)
    for losses in trained(scaled, 3, "dp=2")[0]:
        np.testing.assert_allclose(losses, expected, rtol=1e-5)


class Sharded(nn.Cell):
    """Two products, the first cut by rows, the second by columns."""

    def __init__(self, first: Any, second: Any) -> None:
        super().__init__()
        self.first, self.second = ops.MatMul().shard(first), ops.MatMul().shard(second)

    def construct(self, x: Any, w: Any, v: Any) -> Any:
        return self.second(self.first(x, w), v)


def test_operators_are_cut_as_shard_says() -> None:
    draw = np.random.default_rng(0)
    x, w, v = (draw.integers(-4, 4, (8, 8)).astype(np.float32) for _ in range(3))

    def run(first: Any, second: Any) -> list[Any]:
        def rank(_: int) -> Any:
            called: Any = msc.jit(Sharded(first, second), backend="interpreter")
            return called(*map(msc.Tensor, (x, w, v))).asnumpy()

        set_auto_parallel_context(parallel_mode="semi_auto_parallel", full_batch=True)
        try:
            return run_ranks(4, rank)
        finally:
            reset_auto_parallel_context()

    for found in run(((4, 1), (1, 1)), ((1, 1), (1, 4))):
        np.testing.assert_array_equal(found, x @ w @ v)
    for wrong in (((4, 2), (1, 1)), ((4, 1),), ((3, 1), (1, 1))):
        with pytest.raises(MscError, match="MSC1109"):
            run(wrong, ((1, 1), (1, 1)))


PROGRAM = """
from pathlib import Path

import numpy as np
import msc
import msc.dataset as ds
from msc import nn
from msc.communication import get_group_size, get_rank, init

init()
n, r = get_group_size(), get_rank()
if n > 1:
    config = {"parallel_optimizer_threshold": 0}
    msc.set_auto_parallel_context(parallel_mode="semi_auto_parallel", mesh=MESH, enable_parallel_optimizer=True,
                                  parallel_optimizer_config=config)
msc.set_seed(1)
msc.set_context(mode=msc.GRAPH_MODE)
draw = np.random.default_rng(0)
x, y = draw.random((16, 8)).astype(np.float32), draw.integers(0, 4, 16).astype(np.int32)
shards = dict(num_shards=n, shard_id=r) if n > 1 else {}
data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False, **shards).batch(8 // n)
net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4))
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
model = msc.Model(net, loss, nn.Adam(net.trainable_params(), 0.01))
Path("saved").mkdir(exist_ok=True)
kept = msc.ModelCheckpoint("net", "saved", msc.CheckpointConfig(save_checkpoint_steps=2))
model.train(EPOCHS, data, callbacks=[kept], resume="saved")
found = {}
for parameter in net.get_parameters():
    found[parameter.name] = parameter.asnumpy()
np.savez(f"{n}_{r}.npz", **found)
"""


@needs_mpi
def test_a_run_goes_on_with_fewer_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ranks share weights and states, and write whole checkpoints; one rank goes on from the last."""
    monkeypatch.chdir(tmp_path)
    whole = tmp_path / "whole"
    whole.mkdir()
    program = PROGRAM.replace("MESH", "'tp=2'")
    Path("two.py").write_text(program.replace("EPOCHS", "1"), "utf-8")
    Path("one.py").write_text(program.replace("EPOCHS", "2"), "utf-8")
    ran = mpirun(2, [sys.executable, "two.py"], tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    with msc.set_context(mode=msc.GRAPH_MODE):
        runpy.run_path("one.py")
        monkeypatch.chdir(whole)
        runpy.run_path("../one.py")
    with np.load("../1_0.npz") as resumed, np.load("1_0.npz") as expected:
        for name in expected.files:
            np.testing.assert_allclose(resumed[name], expected[name], rtol=1e-4, atol=1e-5, err_msg=name)
