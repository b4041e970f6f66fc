"""Networks that several ranks train by one graph: in the interpreter with all ranks, or compiled and run by mpirun.

    python -m tests.unit.parallel.training [--steps N] [NETWORK...]

trains each network on each mesh in the interpreter, 20 steps in f64, and compares losses with one rank's.

    python -m tests.unit.parallel.training --mpi

trains a compiled network on 2, 4 and 8 ranks by mpirun, and compares parameters with one rank's.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import msc
from msc import model_zoo, nn
from msc.dialects.arrays import Array
from msc.dialects.ranks import run_ranks
from msc.frontend.parallel import reset_auto_parallel_context, set_auto_parallel_context
from msc.model_zoo.bert import EncoderLayer
from msc.model_zoo.gpt import DecoderLayer
from msc.planner.layout_search import MODES
from tests.unit.parallel.programs import mpirun

MESHES = ("dp=2", "dp=4", "dp=8", "tp=2", "dp=2,tp=2", "dp=4,tp=2", "dp=2,tp=4")
ROWS = 8
OPTIMIZER_PARALLEL: dict[str, Any] = {
    "enable_parallel_optimizer": True,
    "parallel_optimizer_config": {"parallel_optimizer_threshold": 0, "optimizer_level": "level3"},
}


SEARCHES: list[dict[str, Any]] = [{"parallel_mode": "auto_parallel", "search_mode": mode} for mode in MODES]


class Layered(nn.Cell):
    """A layer of a transformer, with its mask."""

    def __init__(self, layer: nn.Cell) -> None:
        super().__init__()
        self.layer = layer
        self.head = nn.Dense(16, 4)
        self.mask = msc.Tensor(np.triu(np.full((6, 6), -1e9), 1))

    def construct(self, x: msc.Tensor) -> msc.Tensor:
        return self.head(self.layer(x, self.mask).mean(axis=1))


class Block(nn.Cell):
    """A residual block of ResNet-8."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride)
        self.conv2 = nn.Conv2d(outputs, outputs, 3)
        self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.short = None if stride == 1 else nn.Conv2d(inputs, outputs, 1, stride)
        self.relu = nn.ReLU()

    def construct(self, x: msc.Tensor) -> msc.Tensor:
        y = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        return self.relu(y + (x if self.short is None else self.short(x)))


def resnet8() -> nn.Cell:
    blocks = [Block(4, 4, 1), Block(4, 8, 2), Block(8, 8, 2)]
    stem = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()]
    return nn.SequentialCell([*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(8, 4)])


NETWORKS: dict[str, tuple[Callable[[], nn.Cell], tuple[int, ...], int]] = {
    "mlp": (lambda: nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4)), (8,), 4),
    "lenet5": (model_zoo.LeNet5, (1, 32, 32), 10),
    "gpt": (lambda: Layered(DecoderLayer(16, 4)), (6, 16), 4),
    "bert": (lambda: Layered(EncoderLayer(16, 4, 32)), (6, 16), 4),
    "resnet8": (resnet8, (3, 8, 8), 4),
}


@dataclass
class Training:
    """A network with its data; `run` trains a rank's copy."""

    name: str
    dtype: Any = np.float64
    make: Callable[[nn.Cell, nn.Optimizer], nn.Cell] = nn.TrainOneStepCell

    def __post_init__(self) -> None:
        draw = np.random.default_rng(0)
        _, sizes, classes = NETWORKS[self.name]
        self.x = draw.normal(size=(ROWS, *sizes)).astype(self.dtype)
        self.y = draw.integers(0, classes, ROWS).astype(np.int32)

    def step(self) -> nn.Cell:
        """A step of training, with parameters that are the same each time."""
        msc.set_seed(5)
        network = NETWORKS[self.name][0]()
        for parameter in network.get_parameters():
            parameter.content = parameter.asnumpy().astype(self.dtype)
        for cell in network.cells_and_names():
            if isinstance(cell[1], Layered):
                cell[1].mask = msc.Tensor(cell[1].mask.asnumpy().astype(self.dtype))
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        step = self.make(nn.WithLossCell(network, loss), nn.Adam(network.trainable_params(), 0.01))
        step.set_train()
        return step

    def run(
        self, step: nn.Cell, steps: int, rank: int = 0, ranks: int = 1, backend: str = "interpreter"
    ) -> list[float]:
        """The losses of a rank that is given its rows."""
        called: Any = msc.jit(step, backend="interpreter")
        own = slice(rank * ROWS // ranks, (rank + 1) * ROWS // ranks)
        return [float(called(msc.Tensor(self.x[own]), msc.Tensor(self.y[own])).asnumpy()) for _ in range(steps)]


def trained(training: Training, steps: int, mesh: str, **settings: Any) -> tuple[list[list[float]], list[list[Array]]]:
    """Losses and parameters of each rank of a mesh in one process."""
    size = size_of(mesh)
    count = size * settings.get("pipeline_stages", 1)
    cells = [training.step() for _ in range(count)]
    context = {"parallel_mode": "semi_auto_parallel", "mesh": mesh} | settings
    run_ranks(count, lambda rank: set_auto_parallel_context(**context) if rank == 0 else None)
    try:

        def rank(number: int) -> tuple[list[float], list[Array]]:
            losses = training.run(cells[number], steps, number % size, size)
            return losses, [parameter.asnumpy() for parameter in cells[number].get_parameters()]

        found = run_ranks(count, rank)
    finally:
        reset_auto_parallel_context()
    return [losses for losses, _ in found], [values for _, values in found]


PROGRAM = """
import sys
from pathlib import Path

import numpy as np
import msc
import msc.dataset as ds
from msc import nn
from msc.communication import get_group_size, get_rank, init

init()
n, r, stages = get_group_size(), get_rank(), STAGES
if n > 1:
    msc.set_auto_parallel_context(enable_parallel_optimizer=True, pipeline_stages=stages, **SETTINGS)
    n, r = n // stages, r % (n // stages)
msc.set_seed(1)
msc.set_context(mode=msc.GRAPH_MODE)
draw = np.random.default_rng(0)
x, y = draw.random((32, 8)).astype(np.float32), draw.integers(0, 4, 32).astype(np.int32)
shards = dict(num_shards=n, shard_id=r) if n > 1 else {}
data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False, **shards).batch(16 // n)
net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4))
net[0].pipeline_stage, net[2].pipeline_stage = 0, 1
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
parts = nn.PipelineCell(nn.WithLossCell(net, loss), 2)
model = msc.Model(parts, optimizer=nn.Adam(net.trainable_params(), 0.01))
Path("saved").mkdir(exist_ok=True)
kept = msc.ModelCheckpoint("net", "saved", msc.CheckpointConfig(save_checkpoint_steps=2))
model.train(EPOCHS, data, callbacks=[kept, msc.LossMonitor()], resume="saved")
found = {parameter.name: parameter.asnumpy() for parameter in net.get_parameters()}
np.savez(f"{get_group_size()}_{get_rank()}.npz", **found)
"""


def program(epochs: int, mesh: str, stages: int = 1, **settings: Any) -> str:
    """A program that trains, resumes from checkpoints, and writes its parameters as `RANKS_RANK.npz`."""
    words = {"parallel_mode": "semi_auto_parallel", "mesh": mesh, **settings}
    words["parallel_optimizer_config"] = {"parallel_optimizer_threshold": 0}
    return PROGRAM.replace("EPOCHS", str(epochs)).replace("STAGES", str(stages)).replace("SETTINGS", repr(words))


OVER_MPI: list[tuple[str, int, dict[str, Any]]] = [
    ("", 1, {}), ("tp=2", 1, {}), ("dp=1", 2, {}), ("dp=2,tp=2", 1, {}), ("tp=2", 2, {}), ("dp=4", 1, SEARCHES[0]),
    ("dp=4,tp=2", 1, {}), ("dp=2,tp=2", 2, {}),
]  # fmt: skip


def over_mpi() -> None:
    """Each mesh from a fresh start and with one rank's parameters as what is expected."""
    with TemporaryDirectory() as text:
        for number, (mesh, stages, settings) in enumerate(OVER_MPI):
            folder = Path(text) / str(number)
            folder.mkdir()
            (folder / "train.py").write_text(program(2, mesh, stages, **settings), "utf-8")
            ranks = size_of(mesh) * stages
            ran = mpirun(ranks, [sys.executable, "train.py"], folder, seconds=300)
            assert ran.returncode == 0, ran.stdout + ran.stderr
            assert ran.stdout.count("loss is") == 4
            expected = dict(np.load(Path(text) / "0" / "1_0.npz"))
            worst = 0.0
            for rank in range(ranks):
                found = np.load(folder / f"{ranks}_{rank}.npz")
                for name, value in expected.items():
                    worst = max(worst, float(np.max(np.abs(found[name] - value))))
            how = settings.get("search_mode", f"{stages} stages")
            sys.stdout.write(f"{ranks} ranks {mesh:12} {how:22} {worst:.1e}\n")
            sys.stdout.flush()
            assert worst < 1e-5


def size_of(mesh: str) -> int:
    """How many ranks a mesh has."""
    return prod(int(axis.partition("=")[2]) for axis in mesh.split(",") if axis)


def main(words: Sequence[str]) -> None:
    if words == ["--mpi"]:
        over_mpi()
        return
    steps = int(words[1]) if words[:1] == ["--steps"] else 20
    for name in words[2 * (words[:1] == ["--steps"]) :] or NETWORKS:
        training = Training(name)
        expected = training.run(training.step(), steps)
        for mesh in MESHES:
            for settings in ({}, OPTIMIZER_PARALLEL, *SEARCHES):
                start = time.perf_counter()
                losses, _ = trained(training, steps, mesh, **settings)
                difference = max(float(np.max(np.abs(np.subtract(each, expected)))) for each in losses)
                took, how = time.perf_counter() - start, settings.get("search_mode", f"{len(settings)} settings")
                sys.stdout.write(f"{name:8} {mesh:12} {how:22} {difference:.1e} {took:.1f} s\n")
                sys.stdout.flush()
                assert difference < 1e-9, (losses[0], expected)


if __name__ == "__main__":
    main(sys.argv[1:])
