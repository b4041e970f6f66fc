"""Batch norms in training: what they normalise by, and what their moving statistics become, in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msc
from msc import Parameter, Tensor, nn, ops
from msc.frontend import settings
from msc.support import notices
from msc.support.arrays import Array

MODES = {"pynative": msc.PYNATIVE_MODE, "graph": msc.GRAPH_MODE}
SHAPES = {
    "1d": (nn.BatchNorm1d, (4, 3)),
    "1d of rows": (nn.BatchNorm1d, (2, 3, 5)),
    "2d": (nn.BatchNorm2d, (2, 3, 4, 2)),
    "3d": (nn.BatchNorm3d, (2, 3, 2, 2, 2)),
    "of one value": (nn.BatchNorm2d, (1, 3, 1, 1)),
}


def batch(shape: tuple[int, ...]) -> Array:
    """A batch whose mean is far from 0."""
    return (np.random.default_rng(3).standard_normal(shape) * 2 + 1).astype(np.float32)


def moved(x: Array, momentum: float) -> tuple[Array, Array]:
    """Moving mean and variance after one step from 0 and 1, the batch's variance with divisor N - 1."""
    axes = (0, *range(2, x.ndim))
    n = x.size // x.shape[1]
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        variance = np.float64(n) * wide.var(axes) / np.float64(n - 1)
    return (1 - momentum) * wide.mean(axes), momentum + (1 - momentum) * variance


def check_moved(mean: Any, variance: Any, x: Array, momentum: float, tolerance: float = 1e-5) -> None:
    for found, expected in zip((mean, variance), moved(x, momentum), strict=True):
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("options", [{}, {"momentum": 0.5, "affine": False}], ids=str)
def test_statistics_move_towards_the_unbiased_variance(mode: str, kind: str, options: dict[str, Any]) -> None:
    cell, shape = SHAPES[kind]
    x = batch(shape)
    layer = cell(3, **options).set_train()
    with msc.set_context(mode=MODES[mode]):
        y = layer(Tensor(x)).asnumpy()
    check_moved(layer.moving_mean, layer.moving_variance, x, options.get("momentum", 0.9))
    axes = (0, *range(2, x.ndim))
    normal = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, normal, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("used", [True, False, None])
def test_statistics_of_the_batch_are_used_or_not(mode: str, trained: bool, used: bool | None) -> None:
    layer = nn.BatchNorm2d(3, use_batch_statistics=used).set_train(trained)
    x = batch((2, 3, 2, 2))
    with msc.set_context(mode=MODES[mode]):
        layer(Tensor(x))
    if trained if used is None else used:
        check_moved(layer.moving_mean, layer.moving_variance, x, 0.9)
    else:
        assert layer.moving_mean.asnumpy().tolist() == [0, 0, 0]
        assert layer.moving_variance.asnumpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize("mode", MODES)
def test_statistics_of_f16_are_measured_in_f32(mode: str) -> None:
    layer = nn.BatchNorm2d(3).to_float(msc.float16).set_train()
    x = batch((2, 3, 4, 4)).astype(np.float16)
    with msc.set_context(mode=MODES[mode]):
        assert layer(Tensor(x)).dtype is msc.float16
    check_moved(layer.moving_mean, layer.moving_variance, x.astype(np.float32), 0.9, tolerance=1e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", ["function", "primitive"])
def test_functions_move_the_statistics_of_parameters(mode: str, form: str) -> None:
    mean, variance = (Parameter(Tensor(np.full(3, v, np.float32)), name=str(v)) for v in (0, 1))
    one, zero = Tensor(np.ones(3, np.float32)), Tensor(np.zeros(3, np.float32))
    x = batch((4, 3))

    class Net(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            if form == "function":
                return ops.batch_norm(x, mean, variance, one, zero, training=True, momentum=0.1)
            return ops.BatchNorm(is_training=True, momentum=0.1)(x, one, zero, mean, variance)[0]

    with msc.set_context(mode=MODES[mode]):
        Net()(Tensor(x))
    check_moved(mean, variance, x, 0.9)


def test_a_compiled_training_step_moves_them() -> None:
    net = nn.SequentialCell(nn.Dense(4, 3), nn.BatchNorm1d(3))
    x = batch((6, 4))
    inner = x @ net[0].weight.asnumpy().T + net[0].bias.asnumpy()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.0)).set_train()
    with msc.set_context(mode=msc.GRAPH_MODE):
        step(Tensor(x), Tensor(batch((6, 3))))
    check_moved(net[1].moving_mean, net[1].moving_variance, inner, 0.9)


def test_a_batch_of_one_value_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_said", set[tuple[str, str]]())
    layer = nn.BatchNorm1d(3).set_train()
    with notices.collected() as found:
        layer(Tensor(batch((1, 3))))
        layer(Tensor(batch((1, 3))))
    assert [d.code for d in found] == ["MSC0894"]
