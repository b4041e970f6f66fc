"""Training in Python on several ranks: what one computes, and an end in words when a rank ends."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msc.msrun import command
from msc.support.diagnostics import MscError
from tests.unit.parallel.programs import mpirun, needs_mpi

TRAINING = """
import numpy as np
import msc
import msc.dataset as ds
from msc import nn, ops
from msc.communication import create_group, get_group_size, get_rank, init

init()
n, r = get_group_size(), get_rank()
if n > 1:
    msc.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, device_num=n)
msc.set_seed(1 + r)  # parameters begin as those of rank 0
draw = np.random.default_rng(0)
x = draw.random((32, 8))
y = x @ draw.random((8, 2))
found = {}


class Keep(msc.Callback):
    def step_end(self, context):
        found[f"loss{len(found)}"] = context.original_args().net_outputs.asnumpy()


class Clipped(nn.Cell):
    def __init__(self, network, optimizer):
        super().__init__(auto_prefix=False)
        self.step = nn.TrainOneStepCell(network, optimizer)
        self.gradients = msc.value_and_grad(network, None, optimizer.parameters)
        self.optimizer = optimizer

    def construct(self, x, y):
        loss, gradients = self.gradients(x, y)
        gradients = self.step.grad_reducer(gradients)
        self.optimizer(ops.clip_by_global_norm(gradients, 0.5))
        return loss


shards = dict(num_shards=n, shard_id=r) if n > 1 else {}
data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False, **shards).batch(8 // n)
net = nn.SequentialCell(nn.Dense(8, 16, dtype=msc.float64), nn.ReLU(), nn.Dense(16, 2, dtype=msc.float64))
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
msc.set_context(mode=msc.GRAPH_MODE)
msc.Model(net, nn.MSELoss(), optimizer).train(2, data, callbacks=[Keep(), msc.LossMonitor(), *CHECKPOINTS])
msc.set_context(mode=msc.PYNATIVE_MODE)
step = Clipped(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
for columns in data.create_tuple_iterator():
    step(*columns)
for parameter in net.get_parameters():
    found[parameter.name] = parameter.asnumpy()
if n > 1:
    create_group("pair", [1, 0])
    one = msc.Tensor([float(r)])
    assert ops.AllReduce(group="pair")(one).asnumpy() == 1
    assert list(ops.AllGather("pair")(one).asnumpy()) == [1, 0]
    assert get_rank("pair") == 1 - r
np.savez(f"{n}_{r}.npz", **found)
"""


@needs_mpi
def test_two_ranks_train_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """Losses of 8 steps in graph mode, 4 more with clipped gradients in PyNative; rank 0 speaks and writes."""
    monkeypatch.chdir(tmp_path)
    checkpoint = 'msc.ModelCheckpoint("net", "saved", msc.CheckpointConfig(save_checkpoint_steps=4))'
    Path("two.py").write_text(TRAINING.replace("*CHECKPOINTS", checkpoint), "utf-8")
    ran = mpirun(2, [sys.executable, "two.py"], tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("loss is") == 8
    assert len(list((tmp_path / "saved").glob("*.ckpt"))) == 2
    Path("one.py").write_text(TRAINING.replace("*CHECKPOINTS", ""), "utf-8")
    runpy.run_path("one.py")
    with np.load("1_0.npz") as one, np.load("2_0.npz") as first, np.load("2_1.npz") as second:
        for name in one.files:
            np.testing.assert_allclose(first[name], one[name], rtol=1e-9, atol=1e-9, err_msg=name)
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)


@needs_mpi
def test_a_rank_that_ends_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(
        "import msc\nfrom msc import ops\nfrom msc.communication import get_rank, init\ninit()\n"
        "if get_rank() == 1:\n    raise ValueError('no more')\nops.AllReduce()(msc.Tensor([1.0]))\n",
        "utf-8",
    )
    ran = mpirun(2, [sys.executable, "ends.py"], tmp_path, seconds=30)
    assert ran.returncode not in (0, 110)  # 110: the time was over
    assert "rank 1 ended" in ran.stderr


def test_msrun_is_mpirun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mpirun").write_text("#!/bin/sh\n", "utf-8")
    (tmp_path / "mpirun").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    words = command(["--worker_num", "4", "--local_worker_num=4", "--hostfile=hosts", "train.py", "--epochs=2"])
    assert words == [
        str(tmp_path / "mpirun"),
        "--hostfile",
        "hosts",
        "-n",
        "4",
        sys.executable,
        "train.py",
        "--epochs=2",
    ]
    for wrong in (["train.py"], ["--worker_num=0", "train.py"], ["--workers=2", "train.py"], ["--worker_num=2"]):
        with pytest.raises(MscError, match="MSC1108"):
            command(wrong)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MscError, match="MSC1105"):
        command(["--worker_num=2", "train.py"])
