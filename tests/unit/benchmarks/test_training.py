"""The tasks of the training benchmark."""

from __future__ import annotations

import click
import pytest

from benchmarks.training.__main__ import chosen_engines, main
from benchmarks.training.engines import network
from benchmarks.training.networks import TASKS
from msc import Tensor, nn


def test_engines_that_are_not_there_are_named_and_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find_spec(name: str) -> bool | None:
        return name == "torch" or None

    monkeypatch.setattr("benchmarks.training.engines.find_spec", find_spec)
    context, option = click.Context(main), main.params[1]
    assert chosen_engines(context, option, "jax,torch-compile") == ["msc", "torch-compile"]
    assert capsys.readouterr().out == "jax: not installed (pip install jax)\n"
    with pytest.raises(click.BadParameter, match=r"unknown engine 'jacks'; known: msc, torch"):
        chosen_engines(context, option, "jacks")


@pytest.mark.parametrize("name", ["lenet5-b32", "mlp-b64", "resnet8-b16"])
def test_a_task_learns(name: str) -> None:
    task = TASKS[name]
    net, (x, y) = network(task).set_train(), task.data()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.05, 0.9))
    first, second = (float(step(Tensor(x[:4]), Tensor(y[:4]))) for _ in range(2))
    assert second < first
