"""The tasks of the training benchmark."""

from __future__ import annotations

import pytest

from benchmarks.training.engines import network
from benchmarks.training.networks import TASKS
from msc import Tensor, nn


@pytest.mark.parametrize("name", ["lenet5-b32", "mlp-b64", "resnet8-b16"])
def test_a_task_learns(name: str) -> None:
    task = TASKS[name]
    net, (x, y) = network(task).set_train(), task.data()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.05, 0.9))
    first, second = (float(step(Tensor(x[:4]), Tensor(y[:4]))) for _ in range(2))
    assert second < first
