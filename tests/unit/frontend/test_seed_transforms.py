"""MindSpore's example of transformations, as far as it needs no gradients: what MindSpore 2.10.0 printed."""

from __future__ import annotations

from typing import Any

import pytest

import msc as ms
from msc import Tensor


def cf(x: Any) -> Any:
    i = Tensor(0, ms.int32)
    y = x
    while i < 3:
        y = y * x if y > 0 else y - x
        i = i + 1
    return y


def pw(x: Any, n: Any) -> Any:
    if n <= 0:
        return x
    return pw(x * 2, n - 1)


def rec(x: Any, n: Any) -> Any:
    return pw(x, n)


def hof(x: Any) -> Any:
    def ap(g: Any, n: int, y: Any) -> Any:
        for _ in range(n):
            y = g(y)
        return y

    return ap(lambda t: t + 1, 3, x)  # pyright: ignore[reportUnknownLambdaType]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("function", "arguments", "printed"),
    [
        (cf, (Tensor(2.0, ms.float32),), "16.0"),
        (cf, (Tensor(-2.0, ms.float32),), "-4.0"),
        (rec, (Tensor(1.5, ms.float32), Tensor(5, ms.int32)), "48.0"),
        (hof, (Tensor([1.0, 2.0], ms.float32),), "[4. 5.]"),
    ],
)
def test_numbers_are_those_that_mindspore_printed(
    function: Any, arguments: tuple[Tensor, ...], printed: str, *, compiled: bool
) -> None:
    run = ms.jit(function) if compiled else function
    assert str(run(*arguments)) == printed
