"""Optimisers: MindSpore's numbers, groups, learning rates, and what they refuse."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import Parameter, Tensor, nn, ops
from msc.frontend.modes import GRAPH_MODE, PYNATIVE_MODE


def parameter(value: float = 1.0, name: str = "p") -> Parameter:
    return Parameter(Tensor([value]), name=name)


def run(make: Callable[[Parameter], nn.Optimizer], steps: int = 3, value: float = 1.0) -> list[float]:
    """A parameter after each of some steps with gradient 1."""
    p = parameter(value)
    optimiser = make(p)
    found: list[float] = []
    for _ in range(steps):
        optimiser((Tensor([1.0]),))
        found.append(float(p.asnumpy()[0]))
    return found


ORACLES: dict[str, tuple[Callable[[Parameter], nn.Optimizer], list[float]]] = {
    "momentum": (lambda p: nn.Momentum([p], 0.1, 0.9), [0.9, 0.71, 0.439]),
    "adam": (lambda p: nn.Adam([p], 0.1), [0.9, 0.8, 0.7]),
    "sgd": (lambda p: nn.SGD([p], 0.1, momentum=0.9, nesterov=True), [0.81, 0.539, 0.1951]),
    "scaled loss": (lambda p: nn.SGD([p], 0.1, loss_scale=10.0), [0.99, 0.98, 0.97]),
    "weight decay": (lambda p: nn.SGD([p], 0.1, weight_decay=0.5), [0.85, 0.7075, 0.572125]),
    "rates of steps": (lambda p: nn.SGD([p], [0.1, 0.2]), [0.9, 0.7, 0.5]),
    "rmsprop": (lambda p: nn.RMSProp([p], 0.1), [0.9, 0.8, 0.7]),
    "amsgrad": (lambda p: nn.Adam([p], 0.1, use_amsgrad=True), [0.9, 0.8, 0.7]),
    "lamb": (lambda p: nn.Lamb([p], 0.1), [0.9, 0.81, 0.729]),
    "ftrl with l1": (lambda p: nn.FTRL([p], l1=1e4), [0.0, 0.0, 0.0]),
}


@pytest.mark.parametrize("mode", [PYNATIVE_MODE, GRAPH_MODE], ids=["pynative", "graph"])
@pytest.mark.parametrize("name", ORACLES)
def test_numbers(name: str, mode: int) -> None:
    make, expected = ORACLES[name]
    with msc.set_context(mode=mode):
        assert run(make) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def ftrl(lr: float, power: float, l1: float, l2: float) -> list[float]:
    """The formulas of McMahan et al. in f64, from 1 with gradient 1."""
    p, accum, linear = 1.0, 0.1, 0.0
    found: list[float] = []
    for _ in range(3):
        after = accum + 1
        linear += 1 - (after**-power - accum**-power) / lr * p
        accum = after
        p = (np.sign(linear) * l1 - linear) / (accum**-power / lr + 2 * l2) if abs(linear) > l1 else 0.0
        found.append(float(p))
    return found


@pytest.mark.parametrize("power", [-0.5, -0.7])
def test_ftrl(power: float) -> None:
    found = run(lambda p: nn.FTRL([p], learning_rate=0.1, lr_power=power, l1=0.01, l2=0.1))
    assert found == pytest.approx(ftrl(0.1, power, 0.01, 0.1), rel=1e-5)


def test_adam_with_weight_decay_is_decoupled() -> None:
    m = v = 0.0
    p, expected = 1.0, []
    for _ in range(3):
        m, v = 0.9 * m + 0.1, 0.999 * v + 0.001
        p -= 0.1 * (m / (np.sqrt(v) + 1e-6) + 0.5 * p)
        expected.append(p)
    assert run(lambda p: nn.AdamWeightDecay([p], 0.1, weight_decay=0.5)) == pytest.approx(expected, rel=1e-5)


def test_centred_rmsprop() -> None:
    s, mean, step, p = 1.0, 0.0, 0.0, 1.0
    expected: list[float] = []
    for _ in range(3):
        s, mean = 0.9 * s + 0.1, 0.9 * mean + 0.1
        step = 0.5 * step + 0.1 / np.sqrt(s - mean * mean + 1e-3)
        p -= step
        expected.append(p)
    found = run(lambda p: nn.RMSProp([p], 0.1, momentum=0.5, epsilon=1e-3, centered=True))
    assert found == pytest.approx(expected, rel=1e-5)


def test_groups_have_their_own_rates_and_decays() -> None:
    a, b, c = (parameter(name=name) for name in "abc")
    groups = [{"params": [a], "lr": 0.5}, {"params": [b, c], "weight_decay": 1.0}, {"order_params": [c, a, b]}]
    optimiser = nn.SGD(groups, 0.1)
    assert [p.name for p in optimiser.parameters] == ["c", "a", "b"]
    optimiser(tuple(Tensor([g]) for g in (3.0, 1.0, 2.0)))
    assert [float(p.asnumpy()[0]) for p in (a, b, c)] == pytest.approx([0.5, 0.7, 0.6])
    assert [float(r) for r in optimiser.get_lr()] == pytest.approx([0.1, 0.5, 0.1])


def test_beta_and_gamma_do_not_decay() -> None:
    weight, gamma = parameter(name="norm.weight"), parameter(name="norm.gamma")
    nn.SGD([weight, gamma], 0.1, weight_decay=1.0)((Tensor([0.0]), Tensor([0.0])))
    assert [float(weight.asnumpy()[0]), float(gamma.asnumpy()[0])] == pytest.approx([0.9, 1.0])


SCHEDULES: dict[str, tuple[nn.LearningRateSchedule, Callable[[int], float]]] = {
    "exponential": (nn.ExponentialDecayLR(0.1, 0.5, 2), lambda t: 0.1 * 0.5 ** (t / 2)),
    "stairs": (nn.ExponentialDecayLR(0.1, 0.5, 2, is_stair=True), lambda t: 0.1 * 0.5 ** (t // 2)),
    "natural": (nn.NaturalExpDecayLR(0.1, 0.5, 2), lambda t: 0.1 * np.exp(-0.5 * t)),
    "natural stairs": (nn.NaturalExpDecayLR(0.1, 0.5, 2, True), lambda t: 0.1 * np.exp(-0.5 * (t // 2 * 2))),
    "inverse": (nn.InverseDecayLR(0.1, 0.5, 2), lambda t: 0.1 / (1 + 0.5 * t / 2)),
    "cosine": (nn.CosineDecayLR(0.01, 0.1, 3), lambda t: 0.01 + 0.045 * (1 + np.cos(np.pi * min(t, 3) / 3))),
    "polynomial": (nn.PolynomialDecayLR(0.1, 0.01, 3, 2.0), lambda t: 0.09 * (1 - min(t, 3) / 3) ** 2 + 0.01),
    "warm-up": (nn.WarmUpLR(0.1, 3), lambda t: 0.1 * min(t, 3) / 3),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str) -> None:
    schedule, expected = SCHEDULES[name]
    for step in range(5):
        assert float(schedule(Tensor(step, msc.int32))) == pytest.approx(expected(step), rel=1e-5)
    rates = [expected(step) for step in range(3)]
    assert run(lambda p: nn.SGD([p], schedule)) == pytest.approx(list(1 - np.cumsum(rates)), rel=1e-5)


def test_rates_as_lists() -> None:
    assert nn.piecewise_constant_lr([2, 3], [0.1, 0.05]) == [0.1, 0.1, 0.05]
    assert nn.exponential_decay_lr(0.1, 0.9, 4, 2, 1) == pytest.approx([0.1, 0.1, 0.09, 0.09])
    assert nn.natural_exp_decay_lr(0.1, 0.9, 3, 1, 2, is_stair=True) == pytest.approx([0.1, 0.1, 0.1 * np.exp(-1.8)])
    assert nn.inverse_decay_lr(0.1, 0.5, 3, 1, 1) == pytest.approx([0.1, 0.1 / 1.5, 0.05])
    assert nn.cosine_decay_lr(0.01, 0.1, 3, 1, 2) == pytest.approx([0.1, 0.055, 0.01])
    assert nn.polynomial_decay_lr(0.1, 0.01, 3, 1, 2, 0.5) == pytest.approx([0.1, 0.09 * 0.5**0.5 + 0.01, 0.01])
    assert nn.warmup_lr(0.1, 4, 2, 2) == pytest.approx([0, 0, 0.05, 0.05])


def test_clipping() -> None:
    tensors = (Tensor([3.0]), Tensor([4.0]))
    assert [float(t.asnumpy()[0]) for t in ops.clip_by_global_norm(tensors, 1.0)] == pytest.approx([0.6, 0.8])
    assert [float(t.asnumpy()[0]) for t in ops.clip_by_global_norm(tensors, 9.0)] == [3.0, 4.0]
    assert ops.clip_by_norm(Tensor([3.0, 4.0]), 2.5).tolist() == pytest.approx([1.5, 2.0], rel=1e-5)
    assert [t.tolist() for t in ops.clip_by_value(tensors, 3.5)] == [[3.5], [4.0]]
    assert ops.clip_by_value(Tensor([-3.0, 9.0]), clip_value_min=-1, clip_value_max=1).tolist() == [-1.0, 1.0]
    assert ops.clip_by_norm([Tensor([3.0]), Tensor([-4.0])], 2.0, float("inf"))[1].tolist() == pytest.approx([-2.0])


@pytest.mark.parametrize("mode", [PYNATIVE_MODE, GRAPH_MODE], ids=["pynative", "graph"])
def test_a_step_of_training(mode: int) -> None:
    def net() -> nn.Cell:
        return nn.WithLossCell(nn.Dense(2, 1, weight_init="ones", bias_init="zeros"), nn.MSELoss())

    x, y = Tensor([[1.0, 2.0]]), Tensor([[1.0]])
    with msc.set_context(mode=mode):
        plain, scaled = net(), net()
        step = nn.TrainOneStepCell(plain, nn.SGD(plain.trainable_params(), 0.1))
        losses = [float(step(x, y)) for _ in range(3)]
        assert losses == pytest.approx([4.0, 0.16, 0.0064], rel=1e-4)
        optimiser = nn.SGD(scaled.trainable_params(), 0.1, loss_scale=8.0)
        loss, gradients = nn.TrainOneStepCell(scaled, optimiser, sens=8.0, return_grad=True)(x, y)
        assert float(loss) == 4.0
        assert gradients["weight"].tolist() == [[32.0, 64.0]]
        assert next(iter(scaled.get_parameters())).asnumpy()[0].tolist() == pytest.approx([0.6, 0.2])


class Halving(nn.Cell):
    def construct(self, global_step: Any) -> Any:
        return 0.5 ** global_step.astype(msc.float32)


@pytest.mark.parametrize("mode", [PYNATIVE_MODE, GRAPH_MODE], ids=["pynative", "graph"])
def test_a_weight_decay_that_depends_on_the_step(mode: int) -> None:
    with msc.set_context(mode=mode):
        assert run(lambda p: nn.SGD([p], 0.1, weight_decay=Halving())) == pytest.approx([0.8, 0.66, 0.5435])
    optimiser = nn.SGD([parameter()], 0.1, weight_decay=Halving())
    assert float(optimiser.get_weight_decay()) == 1.0


def test_gradients_are_centralised_in_groups_that_ask_for_it() -> None:
    a, b = (Parameter(Tensor(np.zeros((2, 2), np.float32)), name=name) for name in "ab")
    optimiser = nn.SGD([{"params": [a], "grad_centralization": True}, {"params": [b]}], 1.0)
    gradient = Tensor([[1.0, 3.0], [5.0, 5.0]])
    optimiser((gradient, gradient))
    assert (a.asnumpy().tolist(), b.asnumpy().tolist()) == ([[1.0, -1.0], [0.0, 0.0]], [[-1.0, -3.0], [-5.0, -5.0]])
    assert optimiser.gradients_centralization((gradient, gradient))[0].tolist() == [[-1.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize("mode", [PYNATIVE_MODE, GRAPH_MODE], ids=["pynative", "graph"])
def test_a_learning_rate_that_is_set_between_steps(mode: int) -> None:
    p = parameter()
    optimiser = nn.SGD([p], 0.1)
    with msc.set_context(mode=mode):
        for rate in (0.1, 0.2, 0.3):
            ops.assign(optimiser.learning_rate, Tensor(rate, msc.float32))
            optimiser((Tensor([1.0]),))
    assert float(p.asnumpy()[0]) == pytest.approx(0.4)
    schedule = nn.WarmUpLR(0.1, 3)
    assert nn.SGD([p], schedule).learning_rate is schedule
    assert nn.SGD([p], iter([0.1, 0.2])).learning_rate.tolist() == pytest.approx([0.1, 0.2])


class OwnMomentum(nn.Optimizer):
    """As MindSpore's tutorial writes an optimiser."""

    def __init__(self, params: Any, learning_rate: float, momentum: float = 0.9) -> None:
        super().__init__(learning_rate, params, weight_decay=0.5, loss_scale=2.0)
        self.momentum = Parameter(Tensor(momentum, msc.float32), name="momentum")
        self.moments = self.parameters.clone(prefix="moments", init="zeros")
        self.assign = ops.Assign()

    def construct(self, gradients: Any) -> Any:
        rate, params = self.get_lr(), self.parameters
        gradients = self.decay_weight(self.scale_grad(self.gradients_centralization(gradients)))
        for i in range(len(params)):
            self.assign(self.moments[i], self.moments[i] * self.momentum + gradients[i])
            self.assign(params[i], params[i] - self.moments[i] * rate)
        return params


@pytest.mark.parametrize("mode", [PYNATIVE_MODE, GRAPH_MODE], ids=["pynative", "graph"])
def test_an_optimiser_of_ones_own(mode: int) -> None:
    with msc.set_context(mode=mode):
        assert run(lambda p: OwnMomentum([p], 0.1)) == pytest.approx([0.9, 0.715, 0.46275])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.SGD([]), "SGD has no parameters"),
        (lambda: nn.SGD([Tensor([1.0])]), "updates Parameters, not a Tensor"),
        (lambda: nn.SGD([Parameter(Tensor([1]), name="i")]), "cannot update 'i', which is Int64"),
        (lambda: nn.SGD([parameter()], -1.0), "learning_rate is -1.0; it must be from 0 on"),
        (lambda: nn.SGD([parameter()], "fast"), "learning_rate is a number, not a str"),
        (lambda: nn.Adam([parameter()], beta1=1.0), "beta1 is 1.0; it must be from 0 on, below 1"),
        (lambda: nn.SGD([parameter()], loss_scale=0), "loss_scale is 0; it must be above 0"),
        (lambda: nn.SGD([{"params": [parameter()], "learning": 1}]), "a group has no 'learning'"),
        (lambda: nn.SGD([{"params": [parameter()]}, parameter()]), "Parameters stand beside groups"),
        (lambda: nn.SGD([parameter()])((Tensor([1.0]), Tensor([1.0]))), "1 parameters, but was given 2 gradients"),
        (lambda: nn.SGD([parameter()])((Tensor([1.0, 2.0]),)), "the gradient of 'p' has shape (2,), not (1,)"),
        (lambda: nn.SGD([parameter()], nn.ReLU()), "a schedule is a LearningRateSchedule, not a ReLU"),
        (lambda: nn.SGD([parameter()], weight_decay="no"), "weight_decay is a number, not a str"),
        (lambda: nn.WarmUpLR(0.1, 0), "warmup_steps is 0; it must be above 0"),
        (lambda: nn.piecewise_constant_lr([3, 2], [0.1, 0.2]), "milestone rises"),
    ],
)
def test_mistakes(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(msc.MscError) as caught:
        call()
    assert caught.value.diagnostics[0].code == "MSC0858"
    assert message in str(caught.value)
