"""Metrics keep their own copies of what they are given, and give what is the caller's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from msc import nn


def test_metrics_of_arrays_that_are_used_again() -> None:
    draws = np.random.default_rng(0)
    outputs, labels = np.zeros((4, 3), np.float32), np.zeros(4, np.int64)
    made: dict[str, Any] = {
        "accuracy": (nn.Accuracy(), nn.Accuracy()),
        "confusion": (nn.ConfusionMatrix(3), nn.ConfusionMatrix(3)),
        "roc": (nn.ROC(3), nn.ROC(3)),
    }
    for _ in range(3):
        outputs[:], labels[:] = draws.random((4, 3)), draws.permutation([0, 1, 2, 1])
        for reused, apart in made.values():
            reused.update(outputs, labels)
            apart.update(outputs.copy(), labels.copy())
    for reused, apart in made.values():
        first, second = reused.eval(), apart.eval()
        assert np.array_equal(np.hstack(_flat(first)), np.hstack(_flat(second)))
    confusion = made["confusion"][0]
    before = confusion.eval().copy()
    confusion.eval()[...] = 7
    assert np.array_equal(confusion.eval(), before)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        items: list[Any] = [*value]
        return [part for item in items for part in _flat(item)]
    return [np.asarray(value).reshape(-1)]
