"""What calls change beside giving a result: attributes, lists, parameters, arguments."""

# Values of the programs under test are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import msc
from msc import Parameter, Tensor, nn
from tests.unit.frontend.test_constructs import agree

X = np.array([1.0, -2.0, 3.0], np.float32)
CALLS: list[Any] = []
total = 0


class Counting(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.history: list[Any] = []

    def construct(self, x: Any) -> Any:
        self.count += 1
        self.history.append(x * self.count)
        return x + self.count, len(self.history)

    def state(self) -> Any:
        return self.count, self.history


class Accumulating(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.total = Parameter(np.zeros(3, np.float32), name="total")
        self.steps = Parameter(np.array(0, np.int32), name="steps")

    def construct(self, x: Any) -> Any:
        self.total = self.total + x
        if x.sum() > 0:
            self.steps = self.steps + 1
            self.total = self.total * 2
        for _ in range(2):
            self.steps += 1
        return self.total * self.steps

    def state(self) -> Any:
        return self.total.asnumpy(), self.steps.asnumpy()


class InLoop(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.total = Parameter(np.ones(3, np.float32), name="total")

    def construct(self, x: Any) -> Any:
        i = 0
        while self.total.sum() < 60:
            self.total = self.total * 2 + i
            i += 1
        return x + self.total, i

    def state(self) -> Any:
        return self.total.asnumpy()


class Remembering(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.last = Tensor(np.zeros(3, np.float32))
        self.seen: dict[str, Any] = {}

    def construct(self, x: Any) -> Any:
        result = x + self.last
        self.last = x * 2
        self.seen["last"] = x
        return result

    def state(self) -> Any:
        return self.last, self.seen


class AttributeInBranch(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.mode = 0
        self.value = Tensor(np.zeros(3, np.float32))

    def construct(self, x: Any) -> Any:
        if x.sum() > 0:
            self.mode = 1
            self.value = x
        else:
            self.mode = 2
            self.value = -x
        return self.value * self.mode

    def state(self) -> Any:
        return self.mode, self.value


@pytest.mark.parametrize("kind", [Counting, Accumulating, InLoop, Remembering, AttributeInBranch])
def test_state_of_a_cell(kind: Callable[[], Any]) -> None:
    eager, graph = kind(), kind()
    compiled = msc.jit(graph, backend="interpreter")
    for factor in (1, -1, 1, 2, 3, -1, 1, 1, 1, 2, 1, 1):
        agree(eager(Tensor(X * factor)), compiled(Tensor(X * factor)))
        agree(eager.state(), graph.state())


@dataclass
class Box:
    value: Any
    count: int = 0


def changes_arguments(x: Any, items: list[Any], table: dict[str, Any], box: Box) -> Any:
    items.append(x * 2)
    items[0] = x
    table["sum"] = x.sum()
    box.value = box.value + x
    box.count += 1
    return len(items)


def changes_two_names_of_one(x: Any, y: Any) -> Any:
    x[0] = 7
    return x + y


def changes_argument_in_branch(x: Any) -> Any:
    if x.sum() > 0:
        x[0] = -100
    return x * 2


def appends_outside(x: Any) -> Any:
    CALLS.append(x + len(CALLS))
    return CALLS[-1]


def counts_outside(x: Any) -> Any:
    global total
    total = total + 1
    return x * total


def returns_its_argument(x: Any) -> Any:
    return x, [x, x]


def outcomes(function: Any) -> list[Any]:
    """Results and arguments of calls, one after the other."""
    global total
    CALLS.clear()
    total = 0
    found: list[Any] = []
    for factor in (1, -1, 1, 2):
        x = Tensor(X * factor)
        match function.__name__:
            case "changes_arguments":
                arguments: Any = (x, [x + 1], {"k": x}, Box(x))
            case "changes_two_names_of_one":
                arguments = (x, x)
            case _:
                arguments = (x,)
        result = function(*arguments)
        found.append((result, [a if not isinstance(a, Box) else vars(a) for a in arguments], list(CALLS), total))
    return found


FUNCTIONS = (
    changes_arguments,
    changes_two_names_of_one,
    changes_argument_in_branch,
    appends_outside,
    counts_outside,
    returns_its_argument,
)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_functions_change(function: Any) -> None:
    agree(outcomes(function), outcomes(msc.jit(function, backend="interpreter")))


def test_an_argument_is_given_back() -> None:
    x = Tensor(X)
    f = msc.jit(returns_its_argument, backend="interpreter")
    for _ in range(2):
        assert f(x)[0] is x


def test_printing_in_every_call(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any, k: int) -> Any:
        print("k is", k, [x.sum()], sep="|")
        y = x + k
        print(y)
        return y

    for function in (f, msc.jit(f, backend="interpreter"), msc.jit(f)):
        for factor in (1, 2):
            function(Tensor(X * factor), 3)
    printed = capsys.readouterr().out
    third = len(printed) // 3
    assert printed[:third] == printed[third : 2 * third] == printed[2 * third :]


def test_a_generator_that_is_consumed_outside() -> None:
    numbers = itertools.count()

    def f(x: Any) -> Any:
        return x + next(numbers)

    compiled = msc.jit(f, backend="interpreter")
    for expected in range(3):
        np.testing.assert_array_equal(compiled(Tensor(X)).asnumpy(), X + expected)
