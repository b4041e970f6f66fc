"""Mistakes in a `construct`: the same error in both modes, at the line that made it, with the calls that led there."""

# Values of the programs under test are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc import MscError, Tensor, nn, ops

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Construct(nn.Cell):
    """A Cell whose construct is a function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.dense = nn.Dense(5, 2)
        self.conv = nn.Conv2d(3, 2, 3)

    def construct(self, x: Any) -> Any:
        return self.function(self, x)


class Outer(nn.Cell):
    """Calls another Cell."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def construct(self, x: Any) -> Any:
        return self.inner(x) + 1


def wrong_product(self: Any, x: Any) -> Any:
    return ops.matmul(x, x)  # HERE


def wrong_dense(self: Any, x: Any) -> Any:
    return self.dense(x)  # HERE


def wrong_convolution(self: Any, x: Any) -> Any:
    return self.conv(x)  # HERE


def wrong_sum(self: Any, x: Any) -> Any:
    y = x.reshape(3, 2)
    return x + y  # HERE


def wrong_reshape(self: Any, x: Any) -> Any:
    return x.reshape(4, 4)  # HERE


def wrong_concatenation(self: Any, x: Any) -> Any:
    return ops.concat((x, x.reshape(3, 2)), 1)  # HERE


def wrong_type(self: Any, x: Any) -> Any:
    return x + "text"  # HERE


def wrong_index(self: Any, x: Any) -> Any:
    return x[5]  # HERE


def wrong_method(self: Any, x: Any) -> Any:
    return x.reshap(3, 2)  # HERE


def wrong_attribute(self: Any, x: Any) -> Any:
    return self.dence(x)  # HERE


def wrong_function(self: Any, x: Any) -> Any:
    return ops.rellu(x)  # pyright: ignore[reportAttributeAccessIssue]  # HERE


def wrong_count(self: Any, x: Any) -> Any:
    return ops.relu(x, x, x)  # pyright: ignore[reportCallIssue]  # HERE


def wrong_call(self: Any, x: Any) -> Any:
    def inner(a: Any, b: Any) -> Any:
        return a + b

    return inner(x)  # pyright: ignore[reportCallIssue]  # HERE


def wrong_truth(self: Any, x: Any) -> Any:
    if x > 0:  # HERE
        return x
    return -x


def wrong_unpacking(self: Any, x: Any) -> Any:
    a, b, c = x.shape  # HERE
    return x * a * b * c


def wrong_key(self: Any, x: Any) -> Any:
    return {"a": x}["b"]  # HERE


def wrong_none(self: Any, x: Any) -> Any:
    y: Any = None
    return y.sum() + x  # HERE


def wrong_division(self: Any, x: Any) -> Any:
    return x * (1 / (x.ndim - 2))  # HERE


def unbound(self: Any, x: Any) -> Any:
    if x.ndim == 3:
        y = x
    return y  # HERE  # pyright: ignore[reportPossiblyUnboundVariable]


def raised(self: Any, x: Any) -> Any:
    if x.ndim == 2:
        raise ValueError("a matrix")  # HERE
    return x


def asserted(self: Any, x: Any) -> Any:
    assert x.shape[0] == 9, f"{x.shape[0]} rows"  # HERE
    return x


def raised_by_tensor(self: Any, x: Any) -> Any:
    if x.sum() > 0:
        raise KeyError("positive")  # HERE
    return x


def raised_in_loop(self: Any, x: Any) -> Any:
    for i in range(3):
        if x.sum() > 0 and i == 2:
            raise RuntimeError("third")  # HERE
    return x


MISTAKES = {
    wrong_product: "MSC0201",
    wrong_dense: "MSC0201",
    wrong_convolution: "MSC0201",
    wrong_sum: "MSC0201",
    wrong_reshape: "MSC0201",
    wrong_concatenation: "MSC0201",
    wrong_type: "MSC0811",
    wrong_index: "MSC0815",
    wrong_method: "did you mean 'reshape'",
    wrong_attribute: "did you mean 'dense'",
    wrong_function: "did you mean 'relu'",
    wrong_count: "relu",
    wrong_call: "missing 1 required positional argument: 'b'",
    wrong_truth: "MSC0804",
    wrong_unpacking: "not enough values to unpack",
    wrong_key: "'b'",
    wrong_none: "'NoneType' object has no attribute 'sum'",
    wrong_division: "division by zero",
    unbound: "'y'",
    raised: "a matrix",
    asserted: "2 rows",
    raised_by_tensor: "positive",
    raised_in_loop: "third",
}


ERRORS = (ValueError, TypeError, LookupError, AttributeError, NameError, ArithmeticError, RuntimeError, AssertionError)


def marked_line(function: Any) -> int:
    """The line of a function that is marked."""
    lines = Path(__file__).read_text("utf-8").split("\n")
    start = function.__code__.co_firstlineno
    return next(n for n in range(start, len(lines)) if "# HERE" in lines[n - 1])


def error_of(net: Any) -> Exception:
    """The error of a call."""
    with pytest.raises(ERRORS) as found:
        net(Tensor(X))
    return found.value


def user_lines(error: BaseException) -> list[int]:
    """The lines of this file in a traceback."""
    return [entry.lineno or 0 for entry in traceback.extract_tb(error.__traceback__) if entry.filename == __file__]


@pytest.mark.parametrize("function", MISTAKES, ids=lambda f: f.__name__)
def test_both_modes_show_the_same_mistake(function: Any) -> None:
    net = Outer(Construct(function))
    eager = error_of(net)
    with msc.set_context(mode=msc.GRAPH_MODE):
        graph = error_of(net)
    assert type(eager) is type(graph)
    for error in (eager, graph):
        assert MISTAKES[function] in str(error)
        assert user_lines(error)[-1] == marked_line(function)
        if isinstance(error, MscError):
            check_place(error, marked_line(function))


def check_place(error: MscError, line: int) -> None:
    """Check where an error is shown, and that the calls of both Cells are named."""
    found = error.diagnostics[0]
    assert found.location is not None
    assert (found.location.file, found.location.line) == (__file__, line)
    assert found.source_line is not None
    assert any("in Construct.construct" in note for note in found.notes)
    assert any("in Outer.construct" in note for note in found.notes)
    assert "^" in str(error)


class Unready(nn.Cell):
    """Forgets `super().__init__()`."""

    def __init__(self) -> None:
        self.dense = nn.Dense(3, 3)


def test_a_forgotten_super() -> None:
    with pytest.raises(MscError, match="super"):
        Unready()


def test_wrong_arguments_of_construct() -> None:
    net: Any = Outer(Construct(raised))
    for mode in (msc.PYNATIVE_MODE, msc.GRAPH_MODE):
        with msc.set_context(mode=mode), pytest.raises(TypeError, match="construct"):
            net(Tensor(X), Tensor(X))
