"""Steps of training as programs for MindSpore write them: subclasses of the library's, and gradients with the value."""

# Results are trees of tensors.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn, ops

X = Tensor(np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32))
Y = Tensor(np.arange(8, dtype=np.int32) % 2)


class Clipped(nn.TrainOneStepCell):
    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        sens = ops.fill(loss.dtype, loss.shape, self.sens)
        gradients = self.grad(self.network, self.weights)(*inputs, sens)
        gradients = ops.clip_by_global_norm(self.grad_reducer(gradients), 100.0)
        return ops.depend(loss, self.optimizer(gradients))


class Scaled(nn.TrainOneStepWithLossScaleCell):
    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        status, scale = self.start_overflow_check(loss, self.scale_sense)
        gradients = self.grad(self.network, self.weights)(*inputs, ops.cast(scale, msc.float32))
        gradients = ops.HyperMap()(ops.partial(_unscaled, scale), self.grad_reducer(gradients))
        overflow = self.process_loss_scale(self.get_overflow_status(status, gradients))
        if not overflow:
            self.optimizer(gradients)
        return loss


def _unscaled(scale: Any, gradient: Any) -> Any:
    return gradient / scale


STEPS: dict[str, Callable[[nn.Cell, nn.Optimizer], nn.Cell]] = {
    "plain": nn.TrainOneStepCell,
    "clipped": Clipped,
    "scaled": lambda net, optimiser: Scaled(net, optimiser, nn.DynamicLossScaleUpdateCell(1024.0, 2.0, 100)),
    "fixed scale": lambda net, optimiser: Scaled(net, optimiser, Tensor(8.0)),
}


@pytest.mark.parametrize("name", STEPS)
def test_all_take_the_same_steps(name: str, mode: int) -> None:
    losses: list[list[float]] = []
    for make in (STEPS["plain"], STEPS[name]):
        net = nn.Dense(3, 2, weight_init="ones", bias_init="zeros")
        step = make(nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
        losses.append([float(step(X, Y)) for _ in range(4)])
    assert losses[0][3] < losses[0][0]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


def test_the_value_with_its_gradients(mode: int) -> None:
    net = nn.Dense(3, 1, weight_init="ones", bias_init="zeros")
    value, gradients = nn.ForwardValueAndGrad(net, net.trainable_params(), get_by_list=True)(X)
    np.testing.assert_allclose(value.asnumpy(), X.asnumpy().sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(gradients[0].asnumpy(), X.asnumpy().sum(0, keepdims=True), rtol=1e-5, atol=1e-6)
    (by_input,) = nn.ForwardValueAndGrad(net, get_all=True, sens_param=True)(X, Tensor(np.full((8, 1), 2.0)))[1]
    assert by_input.tolist() == [[2.0] * 3] * 8


def test_a_scale_that_is_set() -> None:
    net = nn.Dense(3, 2)
    step = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.SGD(net.trainable_params(), 0.1), 8.0
    )
    step.set_sense_scale(16.0)
    assert float(step(X, Y)[2]) == 16.0
