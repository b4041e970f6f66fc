"""Metrics of numbers: errors, losses, similarity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from msc.nn.metrics.base import Array, Metric


class MAE(Metric):
    """The sum of absolute differences over the number of examples."""

    def clear(self) -> None:
        self._sum, self._examples = 0.0, 0

    def update(self, *inputs: Any) -> None:
        outputs, labels = self.arrays(inputs, 2)
        if outputs.size == labels.size:
            labels = labels.reshape(outputs.shape)
        self.same_shape(outputs, labels)
        self._sum += float(self.distances(outputs.astype(np.float64) - labels).sum())
        self._examples += len(labels) if labels.ndim else 1

    def distances(self, differences: Array) -> Array:
        """What differences count."""
        return np.abs(differences)

    def eval(self) -> float:
        self.measured(self._examples)
        return self._sum / self._examples


class MSE(MAE):
    """The sum of squares of differences over the number of examples."""

    def distances(self, differences: Array) -> Array:
        return np.square(differences)


class Loss(Metric):
    """The mean of the losses of batches."""

    def clear(self) -> None:
        self._sum, self._batches = 0.0, 0

    def update(self, *inputs: Any) -> None:
        (loss,) = self.arrays(inputs, 1)
        if loss.ndim > 1:
            raise self.wrong(f"a loss is one number or a list of them, not of shape {list(loss.shape)}")
        self._sum += float(loss.mean())
        self._batches += 1

    def eval(self) -> float:
        self.measured(self._batches)
        return self._sum / self._batches


class Perplexity(Metric):
    """e to the mean of -log of the probability of the class; labels that are `ignore_label` do not count."""

    def __init__(self, ignore_label: int | None = None) -> None:
        self._ignored = ignore_label
        super().__init__()

    def clear(self) -> None:
        self._sum, self._count = 0.0, 0

    def update(self, *inputs: Any) -> None:
        outputs, labels = self.arrays(inputs, 2)
        rows, found = outputs.reshape(-1, outputs.shape[-1]), labels.reshape(-1)
        if len(rows) != len(found):
            raise self.wrong(f"predictions have shape {list(outputs.shape)}, labels {list(labels.shape)}")
        kept = np.ones(len(found), bool) if self._ignored is None else found != self._ignored
        classes, _ = self.classes(rows[kept], found[kept])
        chances = rows[kept].astype(np.float64)[np.arange(len(classes)), classes]
        self._sum -= float(np.log(np.maximum(chances, 1e-10)).sum())
        self._count += len(classes)

    def eval(self) -> float:
        self.measured(self._count)
        return math.exp(self._sum / self._count)


class CosineSimilarity(Metric):
    """The cosines, or scalar products, between all rows of the last batch."""

    def __init__(self, similarity: str = "cosine", reduction: str = "none", zero_diagonal: bool = True) -> None:
        self._similarity, self._reduction, self._zero = similarity, reduction, zero_diagonal
        super().__init__()
        if similarity not in ("cosine", "dot") or reduction not in ("none", "sum", "mean"):
            raise self.wrong("similarity is 'cosine' or 'dot', reduction 'none', 'sum' or 'mean'")

    def clear(self) -> None:
        self._matrix: Array | None = None

    def update(self, *inputs: Any) -> None:
        (rows,) = self.arrays(inputs, 1)
        rows = rows.astype(np.float64)
        if self._similarity == "cosine":
            rows = rows / np.linalg.norm(rows, ord=2, axis=1, keepdims=True)
        matrix: Array = rows @ rows.T
        if self._zero:
            np.fill_diagonal(matrix, 0)
        self._matrix = matrix

    def eval(self) -> Array:
        if self._matrix is None:
            raise self.wrong("there was no batch yet")
        if self._reduction == "none":
            return self._matrix.copy()
        return self._matrix.mean(-1) if self._reduction == "mean" else self._matrix.sum(-1)
