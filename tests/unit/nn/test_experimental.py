"""Optimisers and layers with PyTorch's arguments, against PyTorch's formulas on paper, and their schedules."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportMissingImports=false

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import msc
from msc import Parameter, Tensor, nn, ops
from msc import mint as plain_mint
from msc.experimental import optim
from msc.experimental.optim import lr_scheduler

mint: Any = plain_mint
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {}),
    ("Adamax", {}),
    ("NAdam", {}),
    ("RAdam", {}),
    ("Adagrad", {"lr_decay": 0.1}),
    ("Adadelta", {}),
    ("ASGD", {"t0": 2.0}),
    ("Rprop", {}),
    ("RMSprop", {"momentum": 0.5, "centered": True}),
]


@pytest.mark.parametrize(("name", "options"), KINDS)
def test_steps_are_those_of_pytorch(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    start = np.array([1.0, -2.0, 3.0], np.float32)
    mine, other = Parameter(Tensor(start), name="p"), torch.nn.Parameter(torch.tensor(start))
    a, b = getattr(optim, name)([mine], **options), getattr(torch.optim, name)([other], **options)
    for step in range(7):
        gradient = np.cos(start * (step + 1)).astype(np.float32)
        a((Tensor(gradient),))
        other.grad = torch.tensor(gradient)
        b.step()
    np.testing.assert_allclose(mine.asnumpy(), other.detach().numpy(), 2e-5, 2e-6)


@pytest.mark.parametrize("mode", [msc.PYNATIVE_MODE, msc.GRAPH_MODE])
def test_a_schedule_changes_the_rate_of_compiled_steps(mode: int) -> None:
    p = Parameter(Tensor([1.0]), name="p")
    optimizer = optim.SGD([p], lr=1.0)
    schedule = lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    with msc.set_context(mode=mode):
        for _ in range(3):
            optimizer((Tensor([0.1]),))
            schedule.step()
    assert math.isclose(float(p), 1 - 0.1 * (1 + 0.5 + 0.25), rel_tol=1e-6)


SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("MultiStepLR", {"milestones": [2, 4]}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("LambdaLR", {"lr_lambda": lambda step: 1 / (1 + step)}),
    ("MultiplicativeLR", {"lr_lambda": lambda step: 0.9**step}),
    ("ConstantLR", {"total_iters": 3}),
    ("LinearLR", {}),
    ("PolynomialLR", {"power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 4}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2}),
]


@pytest.mark.parametrize(("name", "options"), SCHEDULES)
@pytest.mark.filterwarnings("ignore:Detected call of")
def test_schedules_are_those_of_pytorch(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    optimizer = optim.SGD([Parameter(Tensor([1.0]), name="p")], lr=0.1)
    other = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    mine, theirs = (
        getattr(lr_scheduler, name)(optimizer, **options),
        getattr(torch.optim.lr_scheduler, name)(other, **options),
    )
    for _ in range(7):
        assert math.isclose(float(mine.get_last_lr()[0]), theirs.get_last_lr()[0], rel_tol=1e-5, abs_tol=1e-7)
        mine.step()
        theirs.step()


def test_layers_with_pytorchs_arguments() -> None:
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).normal(size=(2, 4, 6, 6)).astype(np.float32)
    pairs: list[tuple[Any, Any]] = [
        (mint.nn.Conv2d(4, 2, 3, 2, 1, groups=2), torch.nn.Conv2d(4, 2, 3, 2, 1, groups=2)),
        (mint.nn.Conv2d(4, 2, 3, padding="same"), torch.nn.Conv2d(4, 2, 3, padding="same")),
        (mint.nn.BatchNorm2d(4), torch.nn.BatchNorm2d(4)),
        (mint.nn.MaxPool2d(2), torch.nn.MaxPool2d(2)),
        (mint.nn.AvgPool2d(3, 2, 1), torch.nn.AvgPool2d(3, 2, 1)),
        (mint.nn.LeakyReLU(), torch.nn.LeakyReLU()),
        (mint.nn.Unfold(2, stride=2), torch.nn.Unfold(2, stride=2)),
    ]
    for mine, other in pairs:
        for p, q in zip(mine.trainable_params(), other.parameters(), strict=True):
            p.set_data(Tensor(q.detach().numpy()))
        mine.set_train()
        mine(Tensor(x))
        other(torch.tensor(x))
        found, wanted = mine(Tensor(x)), other(torch.tensor(x)).detach().numpy()
        np.testing.assert_allclose(found.asnumpy(), wanted, 1e-4, 1e-5)
        if isinstance(mine, nn.BatchNorm2d):
            np.testing.assert_allclose(mine.moving_variance.asnumpy(), other.running_var.numpy(), 1e-5)
    v = ops.arange(6).reshape((2, 3)).astype(msc.float32)
    assert mint.max(v, dim=1)[1].tolist() == [2, 2]
    assert mint.sum(v, dim=0, keepdim=True).shape == (1, 3)
    assert mint.split(v, 2, dim=1)[1].shape == (2, 1)
    assert mint.gather(v, 1, Tensor([[0], [2]])).tolist() == [[0], [5]]


@pytest.mark.parametrize("mode", [msc.PYNATIVE_MODE, msc.GRAPH_MODE])
def test_less_common_optimisers(mode: int) -> None:
    torch = pytest.importorskip("torch")
    start = np.array([1.0, -2.0], np.float32)
    p, q = Parameter(Tensor(start), name="p"), torch.nn.Parameter(torch.tensor(start))
    mine, other = nn.Adadelta([p], 0.5), torch.optim.Adadelta([q], 0.5, rho=0.9, eps=1e-6)
    with msc.set_context(mode=mode):
        for _ in range(3):
            mine((Tensor([0.5, 1.0]),))
            q.grad = torch.tensor([0.5, 1.0])
            other.step()
    np.testing.assert_allclose(p.asnumpy(), q.detach().numpy(), 1e-5)


def test_samples_have_the_moments_of_their_distribution() -> None:
    from msc.nn.probability import distribution as d

    msc.set_seed(1)
    for made in (
        d.Normal(1.0, 2.0),
        d.Uniform(0.0, 3.0),
        d.Exponential(2.0),
        d.Gamma(3.0, 2.0),
        d.Beta(2.0, 3.0),
        d.Gumbel(0.0, 1.0),
        d.Bernoulli(0.3),
        d.Poisson(2.0),
    ):
        found = made.sample((20000,)).astype(msc.float32)
        mean, deviation = float(made.mean()), float(made.sd())
        assert abs(float(found.mean()) - mean) < 5 * deviation / math.sqrt(20000)
    chances = d.Categorical([0.2, 0.5, 0.3]).sample((20000,))
    assert abs(float(ops.equal(chances, 1).astype(msc.float32).mean()) - 0.5) < 0.02
    with pytest.raises(msc.MscError, match="MSC0808"):
        d.Normal().log_prob(1.0)
