"""Element-wise operations: IEEE edge values, integers as in C, broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msc.dialects.element_types import element_type

Run: TypeAlias = Callable[..., npt.NDArray[Any]]


def test_the_sign_of_nan_is_nan(run: Run) -> None:
    np.testing.assert_array_equal(run("sign", np.array([2, -3, 0, np.nan], np.float32)), [1, -1, 0, np.nan])


def test_floats_floor_the_rounded_quotient(run: Run) -> None:
    a, b = np.array([7, -7, 1, np.inf], np.float32), np.array([2, 2, 0.1, 1], np.float32)
    np.testing.assert_array_equal(run("floor_div", a, b), np.floor(a / b))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_integers_divide_as_in_c(run: Run, dtype: Any) -> None:
    a, b = np.meshgrid(np.array([7, -7, 6, -6, 0], dtype), np.array([2, -2, 3, -3], dtype))
    exact = np.array([[int(x / y) for x, y in zip(p, q, strict=True)] for p, q in zip(a, b, strict=True)])
    np.testing.assert_array_equal(run("div", a, b), exact)
    np.testing.assert_array_equal(run("rem", a, b), a - exact * b)
    np.testing.assert_array_equal(run("floor_div", a, b), a // b)
    np.testing.assert_array_equal(run("mod", a, b), a % b)


def test_integers_wrap(run: Run) -> None:
    sums = run("add", np.array([127, -128], np.int8), np.array([1, -1], np.int8))
    np.testing.assert_array_equal(sums, [-128, 127])
    products = run("mul", np.array([200], np.uint8), np.array([2], np.uint8))
    np.testing.assert_array_equal(products, [144])


def test_integer_powers_of_negative_exponents_truncate(run: Run) -> None:
    a, b = np.array([2, 1, -1, -1, 3, 0], np.int32), np.array([-1, -5, -3, -2, 4, 0], np.int32)
    np.testing.assert_array_equal(run("pow", a, b), np.array([0, 1, -1, 1, 81, 1], np.int32))


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (np.array([1.9, -1.9, 0.5], np.float32), "i32", [1, -1, 0]),
        (np.array([1 + 2**-11, 1 + 3 * 2**-11], np.float32), "f16", [1, 1 + 2**-9]),
        (np.array([0, 2, -1], np.int32), "i1", [False, True, True]),
        (np.array([np.nan, 0, -0.0], np.float32), "i1", [True, False, False]),
        (np.array([True, False]), "f32", [1, 0]),
        (np.array([300, -1], np.int32), "ui8", [44, 255]),
        (np.array([3.140625], np.float32), "bf16", [3.140625]),
    ],
)
def test_cast(run: Run, source: Any, target: str, expected: Any) -> None:
    np.testing.assert_array_equal(run("cast", source, dtype=element_type(target)).astype(np.float64), expected)


def test_select_broadcasts_all_three(run: Run) -> None:
    condition = np.array([[True], [False]])
    result = run("select", condition, np.array([1, 2, 3], np.float32), np.float32(0))
    np.testing.assert_array_equal(result, [[1, 2, 3], [0, 0, 0]])


@st.composite
def two_arrays(draw: st.DrawFn) -> list[npt.NDArray[Any]]:
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4))
    dtype = draw(st.sampled_from([np.float32, np.float64, np.int8, np.int32, np.uint16]))
    return [draw(hnp.arrays(dtype, shape)) for shape in shapes.input_shapes]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arrays=two_arrays())
def test_broadcasting_and_element_types_are_numpys(run: Run, arrays: list[npt.NDArray[Any]]) -> None:
    a, b = arrays
    with np.errstate(all="ignore"):
        expected = np.asarray(a + b)
    np.testing.assert_array_equal(run("add", a, b), expected)
