"""CTC against the sum over all its paths, the margin of label sets against its formula, and their gradients."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from itertools import groupby, product
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn, ops

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 4, 3)).astype(np.float32)
TARGETS = np.array([[1, 2], [2, 2], [1, 0], [2, 2]], np.int32)
STEPS = np.array([4, 3, 2, 2], np.int32)
LABELS = np.array([2, 2, 0, 2], np.int32)
IN_ONE_ROW = np.array([1, 2, 2, 2, 2, 2], np.int32)


def log_chances(x: Any) -> Any:
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def over_all_paths(blank: int = 0) -> Any:
    """The loss of each example: minus the log of the chances of all paths that are its labels."""
    found = []
    for n, (steps, many) in enumerate(zip(STEPS, LABELS, strict=True)):
        paths = product(range(3), repeat=int(steps))
        wanted = [p for p in paths if [c for c, _ in groupby(p) if c != blank] == list(TARGETS[n, :many])]
        chances = np.exp(log_chances(X[:, n]))
        total = sum(np.prod([chances[t, c] for t, c in enumerate(p)]) for p in wanted)
        found.append(-np.log(total) if wanted else np.inf)
    return np.array(found)


def ctc(x: Any, targets: Any = TARGETS, **options: Any) -> Any:
    return nn.CTCLoss(**options)(ops.log_softmax(x, 2), Tensor(targets), Tensor(STEPS), Tensor(LABELS))


@pytest.mark.parametrize("targets", [TARGETS, IN_ONE_ROW])
def test_ctc_is_the_sum_over_all_paths(targets: Any) -> None:
    expected = over_all_paths()
    assert np.isinf(expected).tolist() == [False, False, False, True]
    np.testing.assert_allclose(ctc(Tensor(X), targets, reduction="none").asnumpy(), expected, rtol=1e-5)
    finite = np.where(np.isinf(expected), 0, expected)
    total = ctc(Tensor(X), targets, reduction="sum", zero_infinity=True)
    assert float(total) == pytest.approx(finite.sum(), rel=1e-5)
    mean = ctc(Tensor(X), targets, zero_infinity=True)
    assert float(mean) == pytest.approx((finite / np.maximum(LABELS, 1)).mean(), rel=1e-5)


def test_the_forward_chances_end_in_the_loss() -> None:
    lengths = Tensor(STEPS[:1]), Tensor(LABELS[:1])
    loss, paths = ops.ctc_loss(Tensor(log_chances(X[:, :1])), Tensor(TARGETS[:1]), *lengths, reduction="none")
    assert paths.shape == (1, 4, 5)
    assert -np.logaddexp(*paths.asnumpy()[0, -1, -2:]) == pytest.approx(loss.asnumpy()[0], rel=1e-5)
    assert np.isneginf(paths.asnumpy()[0, 0]).tolist() == [False, False, True, True, True]


def test_one_example_needs_no_axis_of_examples() -> None:
    one = nn.CTCLoss(reduction="sum")(Tensor(log_chances(X[:, 0])), Tensor(TARGETS[0]), (4,), (2,))
    assert one.shape == ()
    assert float(one) == pytest.approx(over_all_paths()[0], rel=1e-5)


def test_the_gradient_of_ctc_is_that_of_small_steps() -> None:
    def loss(x: Any) -> Any:
        return ctc(x, reduction="sum", zero_infinity=True)

    gradient = msc.grad(loss)(Tensor(X)).asnumpy()
    assert np.isfinite(gradient).all()
    assert not gradient[:, 3].any()
    assert not gradient[3, 1].any()
    step = np.float32(1e-2) * np.sign(gradient)
    slope = (float(loss(Tensor(X + step))) - float(loss(Tensor(X - step)))) / 2e-2
    assert slope == pytest.approx(np.abs(gradient).sum(), rel=1e-2)


def test_ctc_in_a_compiled_function_is_a_loop() -> None:
    compiled = msc.jit(lambda x: ctc(x, reduction="none"))
    np.testing.assert_allclose(compiled(Tensor(X)).asnumpy(), over_all_paths(), rtol=1e-5)


def margins(x: Any, target: Any) -> Any:
    found = []
    for row, labels in zip(x, target, strict=True):
        own = list(labels)[: [*labels, -1].index(-1)]
        others = [c for c in range(len(row)) if c not in own]
        found.append(sum(max(0.0, 1 - row[y] + row[c]) for y in own for c in others) / len(row))
    return np.array(found)


SETS = np.array([[2, 0, -1, 1], [0, 1, 2, 3], [-1, 0, 0, 0], [3, -1, -1, -1]], np.int32)
SCORES = RNG.normal(size=(4, 4)).astype(np.float32)


def test_the_margin_of_label_sets() -> None:
    expected = margins(SCORES, SETS)
    for reduction, value in (("none", expected), ("mean", expected.mean()), ("sum", expected.sum())):
        found = nn.MultilabelMarginLoss(reduction)(Tensor(SCORES), Tensor(SETS)).asnumpy()
        np.testing.assert_allclose(found, value, rtol=1e-5)
    one = nn.MultilabelMarginLoss()(Tensor(SCORES[0]), Tensor(SETS[0]))
    assert one.shape == ()
    assert float(one) == pytest.approx(expected[0], rel=1e-5)
    gradient = msc.grad(nn.MultilabelMarginLoss("sum"))(Tensor(SCORES), Tensor(SETS)).asnumpy()
    step = np.float32(1e-3) * np.sign(gradient)
    slope = (margins(SCORES + step, SETS).sum() - margins(SCORES - step, SETS).sum()) / 2e-3
    assert slope == pytest.approx(np.abs(gradient).sum(), rel=1e-2)


LOGS = Tensor(log_chances(X))


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (lambda: ops.ctc_loss(LOGS[0, 0], Tensor(TARGETS), Tensor(STEPS), Tensor(LABELS)), "MSC0201"),
        (lambda: ops.ctc_loss(LOGS, Tensor(TARGETS[:2]), Tensor(STEPS), Tensor(LABELS)), "MSC0201"),
        (lambda: ops.ctc_loss(LOGS, Tensor(TARGETS), (4,), Tensor(LABELS)), "MSC0201"),
        (lambda: ops.ctc_loss(LOGS, Tensor(TARGETS), Tensor(STEPS), Tensor(LABELS), 3), "MSC0203"),
        (lambda: ops.multilabel_margin_loss(Tensor(SCORES), Tensor(SETS[0])), "MSC0201"),
        (lambda: ops.multilabel_margin_loss(LOGS, Tensor(TARGETS)), "MSC0201"),
    ],
)
def test_mistakes(wrong: Any, code: str) -> None:
    with pytest.raises(msc.MscError) as error:
        wrong()
    assert error.value.diagnostics[0].code == code
