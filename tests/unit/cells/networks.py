"""Cells that the tests of this folder compile, also as a file on the command line."""

from __future__ import annotations

from typing import Any

import numpy as np

import msc
from msc import Parameter, Tensor, nn


class Perceptron(nn.Cell):
    """Two layers; `width` and the number of `classes` are the constructor's."""

    def __init__(self, width: int = 5, classes: int = 3) -> None:
        super().__init__()
        self.first = nn.Dense(4, width)
        self.relu = nn.ReLU()
        self.last = nn.Dense(width, classes)

    def construct(self, x: Tensor) -> Tensor:
        return self.last(self.relu(self.first(x)))


class Nested(nn.Cell):
    """Takes a pair and gives a dict."""

    def construct(self, x: Tensor, pair: tuple[Tensor, Tensor]) -> dict[str, Any]:
        a, b = pair
        return {"sum": x + a, "rest": [x, (a - b, "difference", 2)]}


class Counter(nn.Cell):
    """Adds up what it is called with."""

    def __init__(self) -> None:
        super().__init__()
        self.total = Parameter(Tensor(np.zeros(3, np.float32)), name="total")

    def construct(self, x: Tensor) -> Tensor:
        before = self.total + 0
        self.total = self.total + x
        return before


class Outside(nn.Cell):
    """Changes what a compiled model cannot."""

    def construct(self, x: Tensor) -> Tensor:
        self.last = x * 2
        return x


def doubled(x: Tensor) -> Tensor:
    """A function."""
    return x * 2


MODE = msc.PYNATIVE_MODE
