"""Networks that several ranks train by one graph: in the interpreter with all ranks, or compiled and run by mpirun.

    python -m tests.unit.parallel.training [--steps N] [NETWORK...]

trains each network on each mesh in the interpreter, 20 steps in f64, and compares losses with one rank's.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
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
    size = prod(int(axis.partition("=")[2]) for axis in mesh.split(","))
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


def main(words: Sequence[str]) -> None:
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
