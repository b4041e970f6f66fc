"""What cannot become one graph: an error at the user's line with fullgraph, and a split or PyNative mode without."""

# Values of the programs under test are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc import MscError, Tensor

X = np.array([1.0, 2.0, 3.0], np.float32)


def needs_value(x: Any) -> Any:
    return x + float(np.sin(x.asnumpy()).sum())  # HERE


def needs_value_in_branch(x: Any) -> Any:
    if x.sum() > 0:
        x = x + Tensor(np.sin(x.asnumpy()))  # HERE
    return x


def bound_on_one_path(x: Any) -> Any:
    if x.sum() > 0:  # HERE
        y = x * 2
    return y  # pyright: ignore[reportPossiblyUnboundVariable]


def two_types(x: Any) -> Any:
    y: Any = 0
    if x.sum() > 0:  # HERE
        y = x
    return y


def two_shapes(x: Any) -> Any:
    return x if x.sum() > 0 else x.sum()  # HERE


def grows_in_loop(x: Any) -> Any:
    y = x
    while y.sum() < 20:  # HERE
        y = y.reshape(1, *y.shape) + 1
    return y


def raises_in_branch(x: Any) -> Any:
    if x.sum() < 0:
        raise ValueError("negative")  # HERE
    return x


def prints_in_branch(x: Any) -> Any:
    if x.sum() > 0:
        print("positive")  # HERE
    return x


def iterator_in_branch(x: Any) -> Any:
    numbers = iter([1, 2])
    if x.sum() > 0:
        x = x + next(numbers)  # HERE
    return x + next(numbers)


def recursion(x: Any) -> Any:
    if x.sum() < 1:
        return x
    return recursion(x - 1) + 1  # HERE


def random_number(x: Any) -> Any:
    return x + 0 * random.random()  # HERE


CASES = {
    needs_value: "MSC0840",
    needs_value_in_branch: "MSC0840",
    bound_on_one_path: "MSC0841",
    two_types: "MSC0842",
    two_shapes: "MSC0842",
    grows_in_loop: "MSC0843",
    raises_in_branch: "MSC0844",
    prints_in_branch: "MSC0844",
    iterator_in_branch: "MSC0845",
    recursion: "MSC0846",
    random_number: "MSC0848",
}


def marked_line(function: Any) -> int:
    """The line of a function that is marked."""
    lines = Path(__file__).read_text("utf-8").split("\n")
    start = function.__code__.co_firstlineno
    return next(n for n in range(start, len(lines)) if lines[n - 1].endswith("# HERE"))


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_fullgraph_refuses_at_the_line(function: Any) -> None:
    with pytest.raises(MscError) as raised:
        msc.jit(function, fullgraph=True, backend="interpreter")(Tensor(X))
    found = raised.value.diagnostics[0]
    assert found.code == CASES[function]
    assert found.location is not None
    assert (found.location.file, found.location.line) == (__file__, marked_line(function))
    assert "|" in str(raised.value)


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_without_fullgraph_it_gives_what_python_gives(function: Any) -> None:
    compiled = msc.jit(function, backend="interpreter")
    for _ in range(2):
        result = compiled(Tensor(X))
        np.testing.assert_allclose(result.asnumpy(), function(Tensor(X)).asnumpy(), rtol=1e-5)
    if function is not raises_in_branch:
        assert "split" in msc.jit.explain(compiled)


def test_an_exception_in_a_branch_is_the_users() -> None:
    compiled = msc.jit(raises_in_branch, backend="interpreter")
    with pytest.raises(ValueError, match="negative") as raised:
        compiled(Tensor(-X))
    lines = [(Path(entry.path).name, entry.lineno + 1) for entry in raised.traceback]
    assert lines[-1] == ("test_fullgraph.py", marked_line(raises_in_branch))


def test_explaining_what_was_not_compiled() -> None:
    with pytest.raises(MscError, match="MSC0849"):
        msc.jit.explain(needs_value)


def test_code_without_a_source_says_so() -> None:
    names: dict[str, Any] = {}
    exec("def f(x):\n    return x * 2 if x.sum() > 0 else x\n", names)
    with pytest.raises(MscError, match=r"the source of 'f' in <string> cannot be read"):
        msc.jit(names["f"], fullgraph=True, backend="interpreter")(Tensor(X))
    compiled = msc.jit(names["f"], backend="interpreter")
    np.testing.assert_array_equal(compiled(Tensor(X)).asnumpy(), X * 2)
    assert "the source of 'f' in <string> cannot be read" in msc.jit.explain(compiled)
