"""Losses of counts, of several classes and of margins against their formulas in NumPy."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3)).astype(np.float32)
COUNTS = RNG.integers(0, 5, (4, 3)).astype(np.float32)
SPREAD = (RNG.random((4, 3)) + 0.1).astype(np.float32)
TRUTH = (RNG.random((4, 3)) > 0.5).astype(np.float32)
CLASSES = np.array([0, 2, 1, 1], np.int32)
ONE_HOT = np.eye(3, dtype=np.int32)[CLASSES]


def softmax(x: Any) -> Any:
    return np.exp(x) / np.exp(x).sum(1, keepdims=True)


def distance(x: Any, y: Any) -> Any:
    return np.sqrt(np.square(x - y + 1e-6).sum(-1))


MARGINS = np.maximum(0, 1 - X[np.arange(4), CLASSES][:, None] + X) * (1 - ONE_HOT)
CHANCES = (softmax(X) * ONE_HOT).sum(1)
STIRLING = COUNTS * np.log(COUNTS + 1e-30) - COUNTS + 0.5 * np.log(2 * np.pi * COUNTS + 1e-30)
CASES: list[tuple[Any, tuple[Any, ...], Any]] = [
    (nn.PoissonNLLLoss, (X, COUNTS), np.exp(X) - COUNTS * X),
    (
        lambda reduction: nn.PoissonNLLLoss(False, True, reduction=reduction),
        (SPREAD, COUNTS),
        SPREAD - COUNTS * np.log(SPREAD + 1e-8) + np.where(COUNTS > 1, STIRLING, 0),
    ),
    (nn.GaussianNLLLoss, (X, COUNTS, SPREAD), 0.5 * (np.log(SPREAD) + (X - COUNTS) ** 2 / SPREAD)),
    (nn.MultiLabelSoftMarginLoss, (X, TRUTH), (np.log1p(np.exp(X)) - TRUTH * X).mean(1)),
    (nn.MultiMarginLoss, (X, CLASSES), MARGINS.sum(1) / 3),
    (lambda reduction: nn.MultiMarginLoss(2, reduction=reduction), (X, CLASSES), (MARGINS**2).sum(1) / 3),
    (nn.FocalLoss, (X, CLASSES), -((1 - CHANCES) ** 2) * np.log(CHANCES)),
    (nn.FocalLoss, (X, ONE_HOT), -((1 - CHANCES) ** 2) * np.log(CHANCES)),
    (
        lambda reduction: nn.TripletMarginWithDistanceLoss(swap=True, reduction=reduction),
        (X, COUNTS, SPREAD),
        np.maximum(0, distance(X, COUNTS) - np.minimum(distance(X, SPREAD), distance(COUNTS, SPREAD)) + 1),
    ),
]


@pytest.mark.parametrize(("loss", "inputs", "expected"), CASES)
def test_losses_are_their_formulas(loss: Any, inputs: tuple[Any, ...], expected: Any) -> None:
    for reduction, reduce in (("none", lambda e: e), ("mean", np.mean), ("sum", np.sum)):
        found = loss(reduction=reduction)(*map(Tensor, inputs)).asnumpy()
        np.testing.assert_allclose(found, reduce(expected), rtol=2e-5, atol=1e-6)


def test_they_have_gradients() -> None:
    for loss, inputs, _ in CASES:
        gradient = msc.grad(loss(reduction="sum"))(*map(Tensor, inputs)).asnumpy()
        step = np.float32(1e-2) * np.sign(gradient)
        moved = [float(loss(reduction="sum")(Tensor(inputs[0] + s * step), *map(Tensor, inputs[1:]))) for s in (1, -1)]
        assert (moved[0] - moved[1]) / 2e-2 == pytest.approx(np.abs(gradient).sum(), rel=0.05)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (lambda: nn.PoissonNLLLoss()(Tensor(X), Tensor(COUNTS[:, :1])), "MSC0201"),
        (lambda: nn.MultiMarginLoss()(Tensor(X), Tensor(CLASSES[:2])), "MSC0201"),
        (lambda: nn.MultiMarginLoss(3)(Tensor(X), Tensor(CLASSES)), "MSC0203"),
    ],
)
def test_mistakes(wrong: Any, code: str) -> None:
    with pytest.raises(msc.MscError) as error:
        wrong()
    assert error.value.diagnostics[0].code == code
