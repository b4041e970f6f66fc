"""Cells that look at what they have stored and store something else: every call sees what the last one left."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest

import msc
from msc import Parameter, Tensor, nn, ops
from tests.unit.frontend.test_constructs import agree, same_types


class State(nn.Cell):
    """A counter, a table and a flag."""

    def __init__(self) -> None:
        super().__init__()
        self.i = Parameter(Tensor(0, msc.int64), name="i")
        self.table = Parameter(Tensor(np.zeros((4, 3), np.float32)), name="table")
        self.flag = Parameter(Tensor(False), name="flag")


class Number(State):
    def construct(self, x: Any) -> Any:
        result = x * int(self.i)
        self.i = self.i + 1
        return result


class NumberOfWritten(State):
    def construct(self, x: Any) -> Any:
        self.i += 1
        return x * int(self.i), [1, 2, 3, 4, 5, 6, 7][self.i]


class Condition(State):
    def construct(self, x: Any) -> Any:
        if self.flag:
            return x * 2
        self.flag = self.flag | True
        return x


class ListIndex(State):
    def construct(self, x: Any) -> Any:
        result = [x * 1, x * 2, x * 3][self.i]
        self.i = (self.i + 1) % 3
        return result, f"{self.i}"


class Range(State):
    def construct(self, x: Any) -> Any:
        for k in range(self.i):
            x = x + k
        self.i = (self.i + 1) % 3
        return x, self.i.item()


class Index(State):
    def construct(self, x: Any) -> Any:
        row = self.table[self.i]
        self.table[self.i] = x[0]
        self.table[self.i, 0] += 5
        self.i = (self.i + 1) % 4
        return row * 1, self.table * 1


class Slice(State):
    def construct(self, x: Any) -> Any:
        part = x[0 : self.i + 1]
        self.i = 1 - self.i
        return part


class Elements(State):
    def construct(self, x: Any) -> Any:
        found = ops.nonzero(self.table.sum(1) > 0)
        total = np.sum(self.table) + self.i.asnumpy()
        self.table[self.i] += 1
        self.i += 1
        return found, x * float(total)


class Asserted(State):
    def construct(self, x: Any) -> Any:
        assert self.i < 100
        self.i += 1
        return -x if self.i % 2 else x


class Streak(State):
    """The attribute that one path writes is read on the other."""

    def __init__(self) -> None:
        super().__init__()
        self.best = float("-inf")
        self.misses = 0

    def construct(self, x: Any) -> Any:
        largest = x.max().item()
        if largest > self.best:
            self.best = largest
            self.misses = 0
        else:
            self.misses += 1
        return self.best, self.misses


class Queue(State):
    def __init__(self) -> None:
        super().__init__()
        self.last: deque[Any] = deque(maxlen=2)

    def construct(self, x: Any) -> Any:
        self.last.append(x.sum())
        return list(self.last)


class Replaced(State):
    def construct(self, x: Any) -> Any:
        before, copied = self.table.value(), self.table.copy()
        self.table[0] = x[0]
        return before, copied, Tensor(self.i) * 2


CELLS = (
    Streak,
    Queue,
    Replaced,
    Number,
    NumberOfWritten,
    Condition,
    ListIndex,
    Range,
    Index,
    Slice,
    Elements,
    Asserted,
)


@pytest.mark.parametrize("kind", CELLS, ids=lambda kind: kind.__name__)
def test_elements_of_the_call_before(kind: type[State]) -> None:
    eager, graph = kind(), msc.jit(kind(), backend="interpreter")
    for factor in (1, -1, 2, 1):
        x = Tensor(factor * np.arange(6, dtype=np.float32).reshape(2, 3))
        expected, result = eager(x), graph(x)
        agree(expected, result)
        same_types(expected, result)
