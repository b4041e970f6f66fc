"""Functions whose results have another form than NumPy's: extremes with their places, and the elements that differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, ops

MODES = {"pynative": msc.PYNATIVE_MODE, "graph": msc.GRAPH_MODE}
X = np.array([[1.0, 5, 2], [7, 0, 3]], np.float32)

ONE: dict[str, Callable[[Tensor], Any]] = {
    "max()": lambda x: x.max(),
    "max(axis=1)": lambda x: x.max(axis=1),
    "max(1, keepdims=True)": lambda x: x.max(1, keepdims=True),
    "min(axis=0, keepdims=True)": lambda x: x.min(axis=0, keepdims=True),
    "max((0, 1))": lambda x: x.max((0, 1)),
}
PAIRS: dict[str, Callable[[Tensor], Any]] = {
    "max(1)": lambda x: x.max(1),
    "min(-1)": lambda x: x.min(-1),
    "max(dim=0)": lambda x: x.max(dim=0),
    "min(1, keepdim=True)": lambda x: x.min(1, keepdim=True),
    "max(axis=1, return_indices=True)": lambda x: x.max(axis=1, return_indices=True),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ONE)
def test_methods_that_give_the_elements(mode: str, name: str) -> None:
    with msc.set_context(mode=MODES[mode]):
        found = msc.jit(ONE[name])(Tensor(X)) if mode == "graph" else ONE[name](Tensor(X))
    expected = eval(f"x.{name}", {"x": X})
    np.testing.assert_array_equal(found.asnumpy(), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PAIRS)
def test_methods_that_give_pairs(mode: str, name: str) -> None:
    call = msc.jit(PAIRS[name]) if mode == "graph" else PAIRS[name]
    values, places = call(Tensor(X))
    axis = 0 if "0" in name else 1
    keep = "keepdim=" in name
    which = "max" if name.startswith("max") else "min"
    np.testing.assert_array_equal(values.asnumpy(), getattr(X, which)(axis, keepdims=keep))
    np.testing.assert_array_equal(places.asnumpy(), getattr(X, f"arg{which}")(axis, keepdims=keep))
    assert places.dtype is msc.int64


def test_functions_without_an_axis_give_the_value_and_zero() -> None:
    for function, expected in ((ops.max, 7), (ops.min, 0)):
        value, place = function(Tensor(X))
        assert (float(value), int(place), place.dtype) == (expected, 0, msc.int64)


@pytest.mark.parametrize("dtype", [msc.int64, msc.int32, msc.float32], ids=str)
@pytest.mark.parametrize("form", [ops.unique, ops.Unique()], ids=["function", "primitive"])
@pytest.mark.parametrize("shape", [(6,), (2, 3)], ids=str)
def test_unique_elements_stand_in_the_order_of_their_first_occurrence(dtype: Any, form: Any, shape: Any) -> None:
    array = np.array([7, 2, 7, 5, 2, 9]).reshape(shape)
    values, places = form(Tensor(array, dtype))
    assert values.asnumpy().tolist() == [7, 2, 5, 9]
    np.testing.assert_array_equal(values.asnumpy()[places.asnumpy()], array)
    assert places.dtype is (msc.int64 if dtype is msc.int64 else msc.int32)


def test_the_method_unique_sorts() -> None:
    values, places, counts = Tensor([7, 2, 7, 5]).unique(return_inverse=True, return_counts=True)
    assert (values.asnumpy().tolist(), places.asnumpy().tolist()) == ([2, 5, 7], [2, 0, 2, 1])
    assert counts.asnumpy().tolist() == [1, 1, 2]
    assert Tensor([7, 2, 7, 5]).unique(sorted=False).asnumpy().tolist() == [7, 2, 5]
