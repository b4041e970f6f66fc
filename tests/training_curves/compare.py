"""The losses of a compiled step of training and of PyTorch's, step by step."""

# PyTorch has no types here.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import msc
from benchmarks.training.engines import network
from benchmarks.training.networks import TASKS, BertLayer, Gpt, Task
from msc import Tensor, nn
from msc.dialects.arrays import Array

torch: Any = importlib.import_module("torch")
models: Any = importlib.import_module("benchmarks.torch_models.training")

RATE, MOMENTUM = 0.002, 0.9
"""At larger rates rounding decides where a run goes: then PyTorch's own runs in f32 and in f64 part after 50 steps."""
BATCHES = 10
"""Different ones, which come again and again: no network learns them by heart in a hundred steps."""
TOLERANCE = 1e-3
"""Of a loss, relative to PyTorch's."""

NETWORKS: dict[str, tuple[Task, Callable[[], Any]]] = {
    "lenet5": (TASKS["lenet5-b32"], models.MODULES["lenet5-b32"]),
    "resnet8": (TASKS["resnet8-b16"], models.MODULES["resnet8-b16"]),
    "lstm": (TASKS["lstm-b16-s50"], models.MODULES["lstm-b16-s50"]),
    "gpt": (Task(lambda: Gpt(512, 64, 2, 4, 32), (4, 32), 128, 512, 512), lambda: models.Gpt(512, 64, 2, 4, 32)),
    "bert-layer": (Task(lambda: BertLayer(128, 4, 512), (4, 32, 128), 4, 4), lambda: models.BertLayer(128, 4, 512)),
}
"""By name: the network, and PyTorch's."""


@dataclass(frozen=True)
class Curves:
    """The losses of both runs."""

    found: Sequence[float]
    expected: Sequence[float]

    @property
    def errors(self) -> Array:
        """Of each step, relative to PyTorch's loss."""
        return np.abs(np.subtract(self.found, self.expected) / self.expected)

    def __str__(self) -> str:
        ends = f"loss {self.expected[0]:.4f} to {self.expected[-1]:.4f}"
        return f"{ends}, off by {self.errors[-1]:.1e} in step {len(self.found)}, by {self.errors.max():.1e} at most"


@dataclass
class Apart(Exception):
    """The losses of the last step differ, or nothing was learnt."""

    curves: Curves

    def __str__(self) -> str:
        return str(self.curves)


def check(name: str, steps: int) -> Curves:
    """Compare runs of a network. Raises Apart."""
    task, module = NETWORKS[name] if name in NETWORKS else (TASKS[name], models.MODULES[name])
    batches = [_batch(task, seed) for seed in range(BATCHES)]
    curves = Curves(_losses(task, batches, steps), _losses_of_torch(task, module(), batches, steps))
    last, first = np.mean(curves.expected[-BATCHES:]), np.mean(curves.expected[:BATCHES])
    if not curves.errors[-1] <= TOLERANCE or not last < first:
        raise Apart(curves)
    return curves


def _batch(task: Task, seed: int) -> tuple[Array, Array]:
    """Inputs and labels; images and states are brighter for higher labels, which is something to learn."""
    x, y = task.data(seed)
    if task.tokens:
        return x, y
    return x + y.reshape(-1, *[1] * (x.ndim - 1)).astype(np.float32) / task.classes, y


def _losses(task: Task, batches: Sequence[tuple[Array, Array]], steps: int) -> list[float]:
    net = network(task)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    momentum = nn.Momentum(net.trainable_params(), RATE, MOMENTUM)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), momentum).set_train()
    model = msc.compile(step, *map(Tensor, batches[0]))
    values = {p.name: p.asnumpy() for p in step.get_parameters()}
    states = [np.array(values[t.name], order="C") for t in model.inputs[2:]]
    return [float(np.ravel(model.results(*batches[k % BATCHES], *states)[0])[0]) for k in range(steps)]


def _losses_of_torch(task: Task, module: Any, batches: Sequence[tuple[Array, Array]], steps: int) -> list[float]:
    values = {models.torch_name(p.name): torch.tensor(p.asnumpy()) for p in network(task).get_parameters()}
    own = module.state_dict()
    module.load_state_dict({key: own[key] if "num_batches" in key else values[key] for key in own})
    module.train()
    optimiser = torch.optim.SGD(module.parameters(), RATE, momentum=MOMENTUM)
    losses: list[float] = []
    for k in range(steps):
        x, y = map(torch.from_numpy, batches[k % BATCHES])
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(x), y.long())
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses
