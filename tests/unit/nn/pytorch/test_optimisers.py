"""Optimisers and whole training runs beside PyTorch's, from the same parameters."""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import msc
from msc import Parameter, Tensor, nn, ops
from msc.frontend.modes import GRAPH_MODE, PYNATIVE_MODE

PAIRS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sgd": (lambda p: nn.SGD(p, 0.1, weight_decay=0.01), lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.01)),
    "sgd with momentum": (
        lambda p: nn.SGD(p, 0.1, momentum=0.9, dampening=0.1),
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, dampening=0.1),
    ),
    "nesterov": (
        lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.1, use_nesterov=True),
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.1, nesterov=True),
    ),
    "adam": (lambda p: nn.Adam(p, 0.1, eps=1e-12), lambda p: torch.optim.Adam(p, 0.1, eps=1e-12)),
    "adagrad": (
        lambda p: nn.Adagrad(p, 0.1, 0.2),
        lambda p: torch.optim.Adagrad(p, 0.2, initial_accumulator_value=0.1, eps=0.0),
    ),
}


@pytest.mark.parametrize("mode", [PYNATIVE_MODE, GRAPH_MODE], ids=["pynative", "graph"])
@pytest.mark.parametrize("name", PAIRS)
def test_updates_are_those_of_pytorch(name: str, mode: int) -> None:
    ours, theirs = PAIRS[name]
    rng = np.random.default_rng(0)
    start = [rng.normal(size=shape).astype(np.float32) for shape in ((3, 4), (4,))]
    parameters = [Parameter(Tensor(a), name=f"p{k}") for k, a in enumerate(start)]
    tensors = [torch.tensor(a, requires_grad=True) for a in start]
    optimiser, reference = ours(parameters), theirs(tensors)
    with msc.set_context(mode=mode):
        for _ in range(5):
            gradients = [rng.normal(size=a.shape).astype(np.float32) for a in start]
            optimiser(tuple(map(Tensor, gradients)))
            for tensor, gradient in zip(tensors, gradients, strict=True):
                tensor.grad = torch.tensor(gradient)
            reference.step()
    for parameter, tensor in zip(parameters, tensors, strict=True):
        np.testing.assert_allclose(parameter.asnumpy(), tensor.detach().numpy(), rtol=2e-5, atol=2e-6)


class Perceptron(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Dense(8, 32, activation="relu")
        self.second = nn.Dense(32, 4)

    def construct(self, x: Any) -> Any:
        return self.second(self.first(x))


class LeNet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1, self.fc2, self.fc3 = nn.Dense(400, 120), nn.Dense(120, 84), nn.Dense(84, 4)

    def construct(self, x: Any) -> Any:
        x = self.pool(ops.relu(self.conv1(x)))
        x = self.pool(ops.relu(self.conv2(x)))
        return self.fc3(ops.relu(self.fc2(ops.relu(self.fc1(ops.flatten(x))))))


class Recurrent(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 12, batch_first=True)
        self.head = nn.Dense(12, 4)

    def construct(self, x: Any) -> Any:
        return self.head(self.lstm(x)[0][:, -1])


class TorchLeNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = torch.nn.Conv2d(1, 6, 5), torch.nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = (torch.nn.Linear(a, b) for a, b in ((400, 120), (120, 84), (84, 4)))

    def forward(self, x: Any) -> Any:
        x = torch.nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x.flatten(1))))))


class TorchRecurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(5, 12, batch_first=True)
        self.head = torch.nn.Linear(12, 4)

    def forward(self, x: Any) -> Any:
        return self.head(self.lstm(x)[0][:, -1])


def perceptron() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))


NETS: dict[str, tuple[type[nn.Cell], Callable[[], torch.nn.Module], tuple[int, ...]]] = {
    "perceptron": (Perceptron, perceptron, (16, 8)),
    "lenet": (LeNet, TorchLeNet, (8, 1, 32, 32)),
    "lstm": (Recurrent, TorchRecurrent, (8, 6, 5)),
}
STEPS, RATE = 100, 0.005


@pytest.mark.parametrize(
    ("name", "mode"),
    [("perceptron", PYNATIVE_MODE), *((name, GRAPH_MODE) for name in NETS)],
    ids=["perceptron-pynative", *(f"{name}-graph" for name in NETS)],
)
def test_a_training_run_follows_that_of_pytorch(name: str, mode: int) -> None:
    ours, theirs, shape = NETS[name]
    torch.manual_seed(0)
    reference, net = theirs(), ours()
    for parameter, tensor in zip(net.get_parameters(), reference.parameters(), strict=True):
        assert parameter.shape == tuple(tensor.shape)
        parameter.set_data(Tensor(tensor.detach().numpy()))
    rng = np.random.default_rng(0)
    data = rng.normal(size=(4, *shape)).astype(np.float32)
    labels = rng.integers(0, 4, (4, shape[0])).astype(np.int32)
    data += labels.reshape(4, shape[0], *[1] * (len(shape) - 1))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), RATE, 0.9))
    optimiser = torch.optim.SGD(reference.parameters(), RATE, momentum=0.9)
    found: list[float] = []
    expected: list[float] = []
    with msc.set_context(mode=mode):
        for number in range(STEPS):
            x, y = data[number % 4], labels[number % 4]
            found.append(float(step(Tensor(x), Tensor(y))))
            optimiser.zero_grad()
            value = torch.nn.functional.cross_entropy(reference(torch.tensor(x)), torch.tensor(y).long())
            value.backward()
            optimiser.step()
            expected.append(value.item())
    assert expected[-1] < 0.7 * expected[0]
    np.testing.assert_allclose(found, expected, rtol=1e-3)
