"""Derivatives with respect to integers: those of the numbers that they are, rounded towards zero to their type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, ops

MODES = {"pynative": msc.PYNATIVE_MODE, "graph": msc.GRAPH_MODE}
INTEGERS = (msc.int8, msc.int16, msc.int32, msc.int64, msc.uint8)

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "polynomial": (lambda x: x * x * 3 + x, lambda x: 6 * x + 1),
    "power": (lambda x: x**3, lambda x: 3 * x**2),
    "sum": (lambda x: (x * x).sum(), lambda x: 2 * x),
    "remainder": (lambda x: x % 3, lambda x: 0 * x + 1),
    "quotient": (lambda x: x // 2, lambda x: 0 * x),
    "larger": (lambda x: ops.maximum(x, 3), lambda x: 1 * (x > 3)),
    "chosen": (lambda x: ops.where(x > 3, x * 5, x * 2), lambda x: np.where(x > 3, 5, 2)),
    "moved": (lambda x: x.reshape((2, 2)).T * 2, lambda x: 0 * x + 2),
    "gathered": (lambda x: x[1:3] * 4, lambda x: np.array([0, 4, 4, 0])),
    "of floats": (lambda x: x.astype(msc.float32) * 2.75, lambda x: 0 * x + 2),
    "index": (lambda x: Tensor(np.arange(9, dtype=np.float32))[x], lambda x: 0 * x),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_integers(mode: str, name: str) -> None:
    function, expected = FUNCTIONS[name]
    x = np.array([1, 2, 4, 5])
    with msc.set_context(mode=MODES[mode]):
        gradient = msc.grad(function)(Tensor(x, msc.int32))
    assert gradient.dtype is msc.int32
    assert gradient.asnumpy().tolist() == expected(x).tolist()


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_every_integer_type_has_gradients(dtype: Any) -> None:
    def product(x: Tensor, y: Tensor) -> Tensor:
        return x * x * y

    value, (gradient, other) = msc.value_and_grad(product, (0, 1))(Tensor(4, dtype), Tensor(2, dtype))
    assert (value.dtype, gradient.dtype, other.dtype) == (dtype, dtype, dtype)
    assert (int(value), int(gradient), int(other)) == (32, 16, 16)


def test_second_derivatives_directions_and_jacobians() -> None:
    def cube(x: Tensor) -> Tensor:
        return x * x * x

    x = Tensor([4, 5], msc.int32)
    assert msc.grad(msc.grad(cube))(x).asnumpy().tolist() == [24, 30]
    assert msc.jvp(cube, x, Tensor([1, 2], msc.int32))[1].asnumpy().tolist() == [48, 150]
    assert msc.jacrev(cube)(x).asnumpy().tolist() == msc.jacfwd(cube)(x).asnumpy().tolist() == [[48, 0], [0, 75]]


@pytest.mark.parametrize("mode", MODES)
def test_floats_beside_integers_keep_their_gradients(mode: str) -> None:
    def weighted(x: Tensor, table: Tensor) -> Tensor:
        return table[x] * x

    x, table = Tensor([1, 0], msc.int32), Tensor([1.5, 2.5])
    with msc.set_context(mode=MODES[mode]):
        by_x, by_table = msc.grad(weighted, (0, 1))(x, table)
    assert by_x.asnumpy().tolist() == [2, 1]
    assert by_table.asnumpy().tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [msc.float32, msc.int32], ids=str)
def test_what_a_function_changes_in_place_is_its_own(dtype: Any) -> None:
    """The argument that is differentiated is a value of its own, of whatever type it is."""

    def changing(x: Tensor, y: Tensor) -> Tensor:
        x.add_(y)
        return x * 2

    x, y = Tensor(2, dtype), Tensor(3, dtype)
    assert float(msc.grad(changing)(x, y)) == 2
    assert float(x) == 2
