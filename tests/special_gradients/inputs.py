"""The arguments at which gradients are compared: zeros, ties, kinks, margins, saturation, infinities, nothing."""

# ruff: noqa: E501
# A row of the table stands on one line.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

_INF = np.inf

LINE = [-100.0, -20, -6, -3, -2, -1, -0.5, -1e-30, -0.0, 0.0, 1e-30, 0.25, 0.5, 1, 2, 3, 6, 20, 21, 100]
"""The kinks of all activations, and what is smooth or saturated between and beyond."""

_X = np.array([0.0, 0, 1, 1, -1, -0.5, 2, 0.5, 0, 3, 1e-30, 200])
_Y = np.array([0.0, 1, 0, 1, -1, 0.5, 2, -0.5, -2, 3, 0, -200])

INPUTS: Mapping[str, Array] = {
    "line": np.array(LINE),
    "ends": np.array([-1000.0, 1000.0, -_INF, _INF]),
    "unit": np.array([-1.0, -0.5, -0.0, 0.0, 0.25, 1.0]),
    "positive": np.array([0.0, 1e-30, 0.5, 1.0, 2.0, 1e30, _INF]),
    "above one": np.array([1.0, 1.5, 2.0, 1e30]),
    "chances": np.array([0.0, 1e-30, 0.25, 0.5, 1 - 2**-20, 1.0]),
    "chances of x": np.array([0.0, 0, 1, 0.5, 0, 1, 1e-30, 0.25, 1, 0.75, 0, 1]),
    "half": np.array([1.0, 0.0, 0.5, 0.25, 1.0, 0.0]),
    "x": _X,
    "y": _Y,
    "labels": np.array([1.0, 0, 1, 0, 1, 0, 0.5, 0.5, 1, 0, 0, 1]),
    "signs": np.array([1.0, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1]),
    "bases": np.array([0.0, 0, 0, 1, 2, 2, 0.5, 0.5, -2, -2, 1e-30]),
    "exponents": np.array([0.0, 1, 2, 0, 0, -1, 0.5, 3, 2, 3, 2]),
    "divisors": np.array([1.0, 2, -1, 3, -2, 0.5, 4, 1, 2, 7, 5, -3]),
    "rows": np.array([[0.0, 0, 0, 0], [2, 2, 2, 2], [1, -1, 1, -1], [3, 0, 0, 0], [1, 2, 2, 0.5], [-1, 2, -3, 0]]),
    "other rows": np.array([[1.0, 0, 2, 0], [2, 2, 2, 2], [0, 0, 0, 0], [3, 0, 0, 0], [1, 2, 2, 0.5], [1, -2, 3, 0]]),
    "third rows": np.array([[1.0, 0, 2, 0], [2, 2, 2, 2], [0, 0, 0, 1], [3, 1, 0, 0], [1, 2, 2, 1.5], [1, -2, 3, 1]]),
    "infinite rows": np.array([[0.0, -_INF, 1, 2], [1, 2, -_INF, -_INF], [-_INF, 0, -_INF, -_INF]]),
    "hidden rows": np.array([[-_INF, -_INF, -_INF], [0.0, 1, 2]]),
    "wide rows": np.array([[1000.0, 0, -1000, 1000], [0, 0, 0, 200], [-100, -100, -100, -100]]),
    "classes": np.array([0, 3, 1, 0, 2, 3]),
    "ignored": np.array([-100, 3, -100, 0, 2, -100]),
    "all ignored": np.array([-100] * 6),
    "three classes": np.array([0, 1, 2]),
    "row signs": np.array([1.0, -1, 1, -1, 1, -1]),
    "row chances": np.array([[1.0, 0, 0, 0], [0.25, 0.25, 0.25, 0.25], [0, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 1], [0.1, 0.2, 0.3, 0.4]]),
    "row labels": np.array([[1.0, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]),
    "label sets": np.array([[0, 2, -1, 1], [-1, 0, 1, 2], [3, 2, 1, 0], [1, -1, -1, -1], [2, 0, -1, -1], [0, -1, 1, -1]]),
    "weights": np.array([0.5, 2.0, 0.0, 1.0]),
    "image": np.array([1.0, 1, 0, 0, 2, 2, 2, 1, 0, 0, 0, 0, 3, 1, 3, 1, 1, 1, 1, 1, -1, 0, -1, 0, 5, 5]).repeat(2)[:50].reshape(1, 2, 5, 5),
    "volume": np.array([1.0, 1, 0, 0, 2, 2, 2, 1] * 8).reshape(1, 1, 4, 4, 4),
    "signal": np.array([[[1.0, 1, 0, 0, 2, 2], [0, 0, 0, 0, 0, 0]]]),
    "channel": np.array([0.25, -0.5]),
    "even image": np.array([0.0, 0, 1, -1] * 8).reshape(1, 2, 4, 4),
    "places": np.array([[0, 0, 3, 1], [1, 1, 1, 1], [3, 2, 1, 0], [0, 1, 2, 3], [2, 2, 0, 0], [0, 0, 0, 3]]),
    "few": np.array([[0.0, 0, 1], [2, -1, 2]]),
    "square": np.array([[0.0, 1, 0], [2, 0, -1], [0, 0, 3]]),
    "scalar": np.array(0.0),
    "variances": np.array([0.0, 1e-7, 1e-6, 0.5, 1, 2, 1, 4, 1, 1, 1, 1]),
    "logs": np.log(np.array([[[0.5, 0.25, 0.25]], [[0.25, 0.5, 0.25]], [[0.2, 0.3, 0.5]], [[0.5, 0.25, 0.25]]])),
    "steps": np.array([0.0, 0, 0, 1, -1, 0, 200, 0, 0, 0, -200, 1, 0, 0, 2, 0, 1, 1, 0, 0, 0, -1, -1, 3]).reshape(4, 2, 3),
    "line places": np.array([[0], [3], [3], [5], [11]]),
    "updates": np.array([0.0, 1, 1, -3, -1]),
    "batch": np.array([[0.0, 1, 2], [0, 1, -1], [0, 1, 3], [0, 1, 0]]),
}  # fmt: skip
