"""Metrics of classes: accuracy, precision, recall, F1, confusion, the ROC curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from msc.nn.metrics.base import Array, Metric

_TINY = np.finfo(np.float64).tiny
_KINDS = ("classification", "multilabel")


class _Classified(Metric):
    """Base: `eval_type` is "classification", of one class an example, or "multilabel", of any number of them."""

    def __init__(self, eval_type: str = "classification") -> None:
        self._kind = eval_type
        super().__init__()
        if eval_type not in _KINDS:
            raise self.wrong(f"eval_type is {eval_type!r}, not 'classification' or 'multilabel'")

    def both(self, inputs: tuple[Any, ...]) -> tuple[Array, Array]:
        """Predictions and labels as zeros and ones [examples, classes]."""
        outputs, labels = self.arrays(inputs, 2)
        if self._kind == "classification":
            found, count = self.classes(outputs, labels)
            return np.eye(count, dtype=np.int64)[outputs.argmax(1)], np.eye(count, dtype=np.int64)[found]
        self.same_shape(outputs, labels)
        if outputs.ndim < 2 or not all(np.isin(part, (0, 1)).all() for part in (outputs, labels)):
            raise self.wrong("predictions and labels of several classes are zeros and ones [examples, classes]")
        rows = (np.moveaxis(part, 1, -1).reshape(-1, part.shape[1]) for part in (outputs, labels))
        first, second = (part.astype(np.int64) for part in rows)
        return first, second


class Accuracy(_Classified):
    """The share of examples whose class, or all of whose classes, are right."""

    def clear(self) -> None:
        self._right, self._total = 0, 0

    def update(self, *inputs: Any) -> None:
        outputs, labels = self.both(inputs)
        self._right += int((outputs == labels).all(1).sum())
        self._total += len(labels)

    def eval(self) -> float:
        self.measured(self._total)
        return self._right / self._total


class _Rates(_Classified):
    """Base of what is counted for each class, or, of several classes, for each example."""

    def clear(self) -> None:
        self._hits: Array = np.zeros(0)
        self._claims: Array = np.zeros(0)
        self._facts: Array = np.zeros(0)
        self._seen = 0

    def update(self, *inputs: Any) -> None:
        outputs, labels = self.both(inputs)
        axis = 0 if self._kind == "classification" else 1
        counts = [part.sum(axis).astype(np.float64) for part in (outputs * labels, outputs, labels)]
        if self._seen and axis == 0 and counts[0].shape != self._hits.shape:
            raise self.wrong(f"there were {len(self._hits)} classes before, now {len(counts[0])}")
        before = [self._hits, self._claims, self._facts]
        if self._seen and axis == 0:
            joined = [a + b for a, b in zip(before, counts, strict=True)]
        else:
            joined = [np.concatenate(pair) for pair in zip(before, counts, strict=True)]
        self._hits, self._claims, self._facts = joined
        self._seen += len(labels)

    def rate(self) -> Array:
        """The rate of each class, or of each example."""
        raise NotImplementedError

    def eval(self, average: bool = False) -> Any:
        """The rate of each class; with `average`, and of several classes an example, the mean of the rates."""
        self.measured(self._seen)
        return float(self.rate().mean()) if average or self._kind == "multilabel" else self.rate()


class Precision(_Rates):
    """Of what was called a class, the share that is of it."""

    def rate(self) -> Array:
        return self._hits / (self._claims + _TINY)


class Recall(_Rates):
    """Of what is of a class, the share that was called it."""

    def rate(self) -> Array:
        return self._hits / (self._facts + _TINY)


class Fbeta(_Rates):
    """The harmonic mean of precision and of recall, which counts beta^2 times as much."""

    def __init__(self, beta: float) -> None:
        self._beta = beta
        super().__init__("classification")
        if not beta > 0:
            raise self.wrong(f"beta is {beta}; it must be above 0")

    def rate(self) -> Array:
        square = self._beta**2
        return (square + 1) * self._hits / (square * self._facts + self._claims + _TINY)


class F1(Fbeta):
    """The harmonic mean of precision and recall."""

    def __init__(self) -> None:
        super().__init__(1.0)


class TopKCategoricalAccuracy(Metric):
    """The share of examples whose class is among the k best predictions."""

    def __init__(self, k: int) -> None:
        self.k = k
        super().__init__()
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise self.wrong(f"k is {k!r}; it must be an integer of 1 or more")

    def clear(self) -> None:
        self._right, self._total = 0, 0

    def update(self, *inputs: Any) -> None:
        outputs, labels = self.arrays(inputs, 2)
        found, _ = self.classes(outputs, labels)
        best = outputs.argsort(1, kind="stable")[:, -self.k :]
        self._right += int((best == found[:, None]).any(1).sum())
        self._total += len(found)

    def eval(self) -> float:
        self.measured(self._total)
        return self._right / self._total


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """The share of examples whose class is the best prediction."""

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """The share of examples whose class is among the five best predictions."""

    def __init__(self) -> None:
        super().__init__(5)


class ConfusionMatrix(Metric):
    """How many examples of each class (rows) were called each class (columns).

    Predictions are [examples, classes], classes, or chances of class 1, which count from `threshold` on. `normalize`
    divides by the sums of rows ("target"), of columns ("prediction") or by all ("all").
    """

    def __init__(self, num_classes: int, normalize: str = "no_norm", threshold: float = 0.5) -> None:
        self._classes, self._normalize, self._threshold = num_classes, normalize, threshold
        super().__init__()
        if normalize not in ("no_norm", "target", "prediction", "all"):
            raise self.wrong(f"normalize is {normalize!r}, not 'no_norm', 'target', 'prediction' or 'all'")

    def clear(self) -> None:
        self._matrix = np.zeros((self._classes, self._classes))

    def update(self, *inputs: Any) -> None:
        outputs, labels = self.arrays(inputs, 2)
        if outputs.ndim == labels.ndim + 1:
            outputs = outputs.argmax(1)
        elif outputs.dtype.kind == "f":
            outputs = outputs >= self._threshold
        self.same_shape(outputs, labels)
        pairs = [part.reshape(-1).astype(np.int64) for part in (labels, outputs)]
        if any(part.size and not (part.min() >= 0 and part.max() < self._classes) for part in pairs):
            raise self.wrong(f"classes are 0 to {self._classes - 1}")
        np.add.at(self._matrix, tuple(pairs), 1)

    def eval(self) -> Array:
        self.measured(self._matrix.sum())
        matrix = self._matrix
        sums: dict[str, Any] = {
            "target": matrix.sum(1, keepdims=True),
            "prediction": matrix.sum(0, keepdims=True),
            "all": matrix.sum(),
        }
        if self._normalize == "no_norm":
            return matrix.copy()
        return np.nan_to_num(np.divide(matrix, sums[self._normalize], where=sums[self._normalize] != 0, out=0 * matrix))


class ROC(Metric):
    """The curve of false and true positive rates over thresholds: `(fpr, tpr, thresholds)`.

    Of two classes predictions are chances of `pos_label` (1); of `class_num` classes they are [examples, classes], and
    the result has a list of curves.
    """

    def __init__(self, class_num: int | None = None, pos_label: int | None = None) -> None:
        self._class_num, self._positive = class_num or 1, 1 if pos_label is None else pos_label
        super().__init__()

    def clear(self) -> None:
        self._parts: list[tuple[Array, Array]] = []

    def update(self, *inputs: Any) -> None:
        outputs, labels = self.arrays(inputs, 2)
        if self._class_num > 1:
            labels, count = self.classes(outputs, labels)
            if count != self._class_num:
                raise self.wrong(f"predictions are of {count} classes, class_num is {self._class_num}")
        else:
            self.same_shape(outputs, labels)
        self._parts.append((np.array(outputs), np.array(labels)))

    def eval(self) -> tuple[Any, Any, Any]:
        self.measured(len(self._parts))
        outputs, labels = (np.concatenate([p[k] for p in self._parts]) for k in range(2))
        if self._class_num == 1:
            return roc_curve(outputs.reshape(-1), labels.reshape(-1) == self._positive)
        curves = [roc_curve(outputs[:, k], labels == k) for k in range(self._class_num)]
        return [c[0] for c in curves], [c[1] for c in curves], [c[2] for c in curves]


def roc_curve(scores: Array, facts: Array) -> tuple[Array, Array, Array]:
    """False and true positive rates at each score, from above all scores down: the first point is (0, 0)."""
    order = np.argsort(-scores, kind="stable")
    scores, facts = scores[order], facts[order].astype(np.float64)
    ends = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    hits, claims = np.cumsum(facts)[ends], ends + 1.0
    hits, misses = np.append(0.0, hits), np.append(0.0, claims - hits)
    rates = misses / max(misses[-1], _TINY), hits / max(hits[-1], _TINY)
    return *rates, np.append(scores[0] + 1, scores[ends])


def auc(x: Any, y: Any, reorder: bool = False) -> float:
    """The area under a curve, by trapezes: `auc(fpr, tpr)`. With `reorder` points are sorted by x first."""
    first, second = np.asarray(x, np.float64).reshape(-1), np.asarray(y, np.float64).reshape(-1)
    if reorder:
        order = np.lexsort((second, first))
        first, second = first[order], second[order]
    steps = np.diff(first)
    area = float((steps * (second[1:] + second[:-1]) / 2).sum())
    return -area if steps.size and (steps <= 0).all() else area
