"""Mixed precision: what computes in which type, master weights, scales of losses, skipped updates."""

# Results are trees of tensors.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, amp, nn, ops

X = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
Y = np.arange(8, dtype=np.int32) % 3


class Net(nn.Cell):
    """Notes the types that pass between its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Dense(6, 8), nn.LayerNorm((8,)), nn.Dense(8, 3)

    def construct(self, x: Any) -> Any:
        x = self.first(x)
        y = self.norm(x)
        z = ops.tanh(y)
        return self.second(z), (x.dtype, y.dtype, z.dtype)


NARROW, WIDE = msc.float16, msc.float32


@pytest.mark.parametrize(
    ("level", "types"),
    [
        ("O0", (WIDE, WIDE, WIDE)),
        ("O1", (WIDE, WIDE, WIDE)),
        ("O2", (NARROW, WIDE, NARROW)),
        ("O3", (NARROW, NARROW, NARROW)),
    ],
)
def test_levels(level: str, types: Any, mode: int) -> None:
    net = Net()
    exact = net(Tensor(X))[0].asnumpy()
    assert amp.auto_mixed_precision(net, level) is net
    result, found = net(Tensor(X))
    assert (result.dtype, found) == (msc.float32, types)
    error = np.abs(result.asnumpy() - exact).max()
    assert (error == 0) == (level == "O0")
    assert error < 1e-2
    assert all(p.dtype == msc.float32 for p in net.get_parameters())


def test_bfloat16_rounds_more() -> None:
    exact = (net := nn.Dense(6, 4))(Tensor(X)).asnumpy()
    found = [net.to_float(t)(Tensor(X)).astype(msc.float32).asnumpy() for t in (NARROW, msc.bfloat16)]
    errors = [np.abs(f - exact).max() for f in found]
    assert 0 < errors[0] < errors[1]


def test_lists() -> None:
    assert nn.Dense in amp.get_white_list()
    assert nn.LayerNorm in amp.get_black_list()
    types = amp.custom_mixed_precision(Net(), white_list=[nn.LayerNorm])(Tensor(X))[1]
    assert types == (WIDE, WIDE, WIDE)
    exact, narrow = Net(), Net()
    msc.load_param_into_net(narrow, exact.parameters_dict())
    amp.custom_mixed_precision(narrow, white_list=[nn.LayerNorm])
    assert 0 < np.abs(narrow(Tensor(X))[0].asnumpy() - exact(Tensor(X))[0].asnumpy()).max() < 1e-2
    types = amp.custom_mixed_precision(Net(), black_list=[nn.Dense])(Tensor(X))[1]
    assert types == (WIDE, NARROW, NARROW)


class Primitives(nn.Cell):
    """Gives what a product and a softmax of it compute in, as functions or as operators."""

    def __init__(self, *, functions: bool) -> None:
        super().__init__()
        self.product, self.softmax = (ops.matmul, ops.softmax) if functions else (ops.MatMul(), ops.Softmax())
        self.loss = ops.SmoothL1Loss()
        self.weight = msc.Parameter(Tensor(np.full((6, 6), 1.0001, np.float32)), name="weight")

    def construct(self, x: Any) -> Any:
        y = self.product(x, self.weight)
        return y, self.softmax(y * 1.0), self.loss(y, y + 1)


@pytest.mark.parametrize("functions", [False, True])
def test_lists_of_primitives(mode: int, functions: bool) -> None:
    assert ops.MatMul in amp.get_white_list()
    exact = Primitives(functions=functions)(Tensor(X))[0].asnumpy()
    net = amp.custom_mixed_precision(Primitives(functions=functions), white_list=[ops.MatMul])
    found = net(Tensor(X))
    assert {t.dtype for t in found} == {WIDE}
    assert 0 < np.abs(found[0].asnumpy() - exact).max() < 2e-2
    net = amp.custom_mixed_precision(Primitives(functions=functions), black_list=[ops.MatMul])
    np.testing.assert_array_equal(net(Tensor(X))[0].asnumpy(), exact)
    narrow = net(Tensor(X))[1].asnumpy()
    assert 0 < np.abs(narrow - ops.softmax(Tensor(exact)).asnumpy()).max() < 1e-2
    net = amp.custom_mixed_precision(Primitives(functions=False), white_list=[ops.SmoothL1Loss])
    assert net(Tensor(X))[2].dtype == WIDE
    np.testing.assert_array_equal(net(Tensor(X))[0].asnumpy(), exact)


def test_master_weights(mode: int) -> None:
    """Updates too small for f16 add up in f32."""
    net = nn.Dense(6, 3)
    before = net.weight.asnumpy().copy()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = amp.build_train_network(net, nn.SGD(net.trainable_params(), 1e-5), loss, "O3")
    for _ in range(3):
        step(Tensor(X), Tensor(Y))
    change = net.weight.asnumpy() - before
    assert net.weight.dtype == msc.float32
    assert (np.abs(change) > 0).mean() > 0.9
    assert np.abs(change).max() < 1e-4


def test_a_dynamic_scale_finds_its_size(mode: int) -> None:
    net = nn.Dense(6, 3)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    manager = nn.DynamicLossScaleUpdateCell(2.0**22, 2.0, 3)
    step = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(amp.auto_mixed_precision(net, "O3"), loss),
        nn.Momentum(net.trainable_params(), 0.1, 0.9),
        manager,
    )
    losses, overflows, scales = [], [], []
    for _ in range(14):
        before = net.weight.asnumpy().copy()
        value, overflow, scale = step(Tensor(X), Tensor(Y))
        losses.append(float(value))
        overflows.append(bool(overflow))
        scales.append(float(scale))
        assert overflows[-1] == bool((net.weight.asnumpy() == before).all())
    assert overflows[0]
    assert not all(overflows)
    for k in range(13):
        assert scales[k + 1] == scales[k] / 2 if overflows[k] else scales[k + 1] in (scales[k], 2 * scales[k])
    assert losses[-1] < losses[0]
    assert int(step.optimizer.global_step) == overflows.count(False)


def test_a_model_takes_a_level_and_a_scale() -> None:
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    for options, kind in (
        ({"amp_level": "O2"}, nn.TrainOneStepWithLossScaleCell),
        ({"amp_level": "O3"}, nn.TrainOneStepCell),
        ({"loss_scale_manager": amp.FixedLossScaleManager(8.0)}, nn.TrainOneStepWithLossScaleCell),
    ):
        net = nn.Dense(6, 3)
        model = msc.Model(net, loss, nn.SGD(net.trainable_params(), 0.1), **options)
        assert isinstance(model.train_network, kind)
        assert np.isfinite(float(model.train_network(Tensor(X), Tensor(Y))))


def test_scalers() -> None:
    scaler = amp.DynamicLossScaler(8.0, 2.0, 2)
    assert scaler.unscale((scaler.scale(Tensor(3.0)),))[0] == 3.0
    found = []
    for finite in (True, True, False, True):
        scaler.adjust(Tensor(finite))
        found.append(float(scaler.scale_value))
    assert found == [8.0, 16.0, 8.0, 8.0]
    static = amp.StaticLossScaler(4.0)
    assert (static.adjust(Tensor(False)), float(static.scale(Tensor(2.0)))) == (False, 8.0)
    assert [bool(amp.all_finite((Tensor([1.0, v]),))) for v in (2.0, np.inf, np.nan)] == [True, False, False]
    manager = amp.DynamicLossScaleManager(16.0, 2, 2)
    for overflow in (True, False, False):
        manager.update_loss_scale(overflow)
    assert manager.get_loss_scale() == 16.0


def test_a_compiled_step_has_its_scale_as_state() -> None:
    net = nn.Dense(6, 3)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = amp.build_train_network(net, nn.SGD(net.trainable_params(), 0.1), loss, "O2")
    model = msc.compile(step, Tensor(X), Tensor(Y))
    values = {p.name: p.asnumpy() for p in step.get_parameters()}
    states = [np.array(values[t.name], order="C") for t in model.inputs[2:]]
    losses = [float(np.ravel(model.results(X, Y, *states)[0])[0]) for _ in range(40)]
    assert any("scale" in t.name for t in model.inputs)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        (lambda: amp.auto_mixed_precision(nn.ReLU(), "O4"), "MSC0881", "one of O0, O1"),
        (lambda: amp.auto_mixed_precision(nn.ReLU(), "O1", msc.int8), "MSC0881", "float16 or bfloat16"),
        (lambda: amp.auto_mixed_precision(3), "MSC0881", "not of a int"),
        (lambda: amp.custom_mixed_precision(nn.ReLU()), "MSC0881", "either a white_list or a black_list"),
        (
            lambda: amp.custom_mixed_precision(nn.ReLU(), white_list=[3]),
            "MSC0881",
            "cells and of primitives, not 3",
        ),
        (lambda: amp.FixedLossScaleManager(0), "MSC0882", "a number above 0"),
        (lambda: amp.DynamicLossScaler(1.0, 2.0, 1.5), "MSC0882", "an integer above 0"),
        (
            lambda: amp.build_train_network(
                net := nn.Dense(2, 2),
                nn.SGD(net.trainable_params(), 0.1),
                nn.MSELoss(),
                loss_scale_manager=amp.FixedLossScaleManager(8.0, drop_overflow_update=False),
            ),
            "MSC0882",
            "counts 8 times, but the optimiser divides gradients by 1",
        ),
    ],
)
def test_mistakes(call: Callable[[], Any], code: str, message: str) -> None:
    with pytest.raises(msc.MscError) as caught:
        call()
    assert caught.value.diagnostics[0].code == code
    assert message in str(caught.value)
