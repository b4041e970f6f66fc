"""Metrics against their definitions, written with scikit-learn's words in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn
from msc.train import metrics

SCORES = np.array([[0.2, 0.5, 0.3], [0.3, 0.1, 0.6], [0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.4, 0.3, 0.3]], np.float32)
LABELS = np.array([1, 0, 0, 1, 2])


def measured(metric: Any, *batches: Any) -> Any:
    metric.clear()
    for batch in batches:
        metric.update(*map(Tensor, batch))
    return metric.eval()


def test_rates_of_classes() -> None:
    halves = ((SCORES[:2], LABELS[:2]), (SCORES[2:], np.eye(3, dtype=np.int32)[LABELS[2:]]))
    assert measured(nn.Accuracy(), *halves) == pytest.approx(3 / 5)
    assert measured(nn.Precision(), *halves) == pytest.approx([1 / 2, 1, 0])
    assert measured(nn.Recall(), *halves) == pytest.approx([1 / 2, 1, 0])
    assert measured(nn.F1(), *halves) == pytest.approx([1 / 2, 1, 0])
    precision = nn.Precision()
    precision.update(SCORES, LABELS)
    assert precision.eval(True) == pytest.approx(1 / 2)
    assert measured(nn.Fbeta(2.0), *halves)[1] == pytest.approx(1)
    assert measured(metrics.Top1CategoricalAccuracy(), *halves) == pytest.approx(3 / 5)
    assert measured(metrics.TopKCategoricalAccuracy(2), (SCORES[:4], np.array([2, 1, 0, 1]))) == pytest.approx(3 / 4)


def test_several_classes_an_example() -> None:
    outputs, labels = np.array([[0, 1, 1], [1, 0, 0]]), np.array([[0, 1, 0], [1, 0, 0]])
    assert measured(nn.Accuracy("multilabel"), (outputs, labels)) == 1 / 2
    assert measured(nn.Precision("multilabel"), (outputs, labels)) == pytest.approx(3 / 4)
    assert measured(nn.Recall("multilabel"), (outputs, labels)) == pytest.approx(1)


def test_errors_and_losses() -> None:
    first, second = (np.array([[1.0], [3.0]]), np.array([[2.0], [1.0]])), (np.array([[0.0]]), np.array([[1.0]]))
    assert measured(nn.MAE(), first, second) == pytest.approx(4 / 3)
    assert measured(nn.MSE(), first, second) == pytest.approx(6 / 3)
    assert measured(nn.Loss(), (1.0,), (2.0,)) == 1.5
    assert measured(nn.Perplexity(), (np.array([[0.5, 0.5]]), np.array([1]))) == pytest.approx(2)
    assert measured(nn.Perplexity(0), (np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([1, 0]))) == pytest.approx(2)
    cosines = measured(nn.CosineSimilarity(), (np.array([[1.0, 0.0], [1.0, 1.0]]),))
    assert cosines[0, 1] == pytest.approx(0.5**0.5)


def test_confusion() -> None:
    batch = (SCORES, LABELS)
    expected = np.zeros((3, 3))
    np.add.at(expected, (LABELS, SCORES.argmax(1)), 1)
    assert (measured(nn.ConfusionMatrix(3), batch) == expected).all()
    np.testing.assert_allclose(measured(nn.ConfusionMatrix(3, "target"), batch).sum(1), 1)
    np.testing.assert_allclose(measured(nn.ConfusionMatrix(3, "all"), batch).sum(), 1)
    binary = measured(nn.ConfusionMatrix(2), (np.array([0.2, 0.7, 0.5]), np.array([0, 1, 0])))
    assert binary.tolist() == [[1, 1], [0, 1]]


def test_the_area_under_the_curve_is_the_chance_of_the_right_order() -> None:
    rng = np.random.default_rng(0)
    scores, facts = np.round(rng.random(60), 1), rng.integers(0, 2, 60)
    rates = measured(nn.ROC(), (scores[:30], facts[:30]), (scores[30:], facts[30:]))
    good, bad = scores[facts == 1][:, None], scores[facts == 0][None]
    chance = ((good > bad) + (good == bad) / 2).mean()
    assert nn.auc(rates[0], rates[1]) == pytest.approx(chance)
    curves = measured(nn.ROC(class_num=3), (SCORES, LABELS))
    assert len(curves[0]) == 3
    assert curves[0][0][0] == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: nn.Accuracy("binary"), "eval_type is 'binary'"),
        (lambda: nn.Accuracy().eval(), "no batch yet"),
        (lambda: nn.Accuracy().update(SCORES), "update takes 2 arrays, not 1"),
        (lambda: nn.Accuracy().update(SCORES, LABELS[:2]), r"\[5, 3\], labels \[2\]"),
        (lambda: nn.Accuracy().update(SCORES, LABELS + 1), "there are 3 classes"),
        (lambda: nn.Accuracy("multilabel").update(SCORES, SCORES), "zeros and ones"),
        (lambda: nn.MSE().update(SCORES, LABELS), "predictions have shape"),
        (lambda: metrics.get_metric_fn("acuracy"), "'acuracy'"),
        (lambda: metrics.TopKCategoricalAccuracy(0), "k is 0"),
        (lambda: nn.ConfusionMatrix(2).update(np.array([0, 2]), np.array([0, 1])), "classes are 0 to 1"),
        (lambda: nn.Fbeta(0), "beta is 0"),
        (lambda: nn.Loss().update("x"), "not a str"),
    ],
)
def test_mistakes(wrong: Any, words: str) -> None:
    with pytest.raises(msc.MscError, match=words) as error:
        wrong()
    assert error.value.diagnostics[0].code == "MSC0877"
