"""Inputs for cases, and how close a compiled result must be to the interpreter's.

Integers, booleans and whatever is only moved agree exactly. Floats that one IEEE operation gives agree exactly, the
sign of zero and NaN included. The other bounds:

| f64 | f32, and inside of bf16 and f16 | of |
|---|---|---|
| 2e-14 | 3e-6 | the result, for one elementary function |
| 1e-12 | 3e-5 | the result, and the largest result, for sums and expressions of several functions |
| 2 units | 2 units | all that a sum adds up and that may cancel |

Adding n numbers in some order may be off by some sqrt(n) roundings of what they add up to (Higham and Mary, 2019): of
the 2049 products of a matrix product the last bound is 1.1e-3 in f32, where sums are some hundreds. The second one is
of the largest result, however small, so that a result of nothing but zeros is always wrong.

Of bf16 and f16 an operation rounds once, here as in the interpreter. The two may differ by a unit of the type more,
where f32 numbers that differ as above lie on two sides of a boundary.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from msc.dialects.arrays import numpy_dtype
from msc.dialects.element_types import ELEMENT_TYPES
from tests.unit.compiled.programs import Array

EXACT = frozenset(
    f"ms.{name}"
    for name in (
        "neg abs sign identity logical_not bitwise_not is_nan is_inf floor ceil round trunc relu add sub mul div rem "
        "barrier stop_gradient mod floor_div maximum minimum mul_no_nan select clip relu6 sqrt square reciprocal "
        "gather gather_elements extract_slice insert_slice "
        "one_hot iota tril triu reshape flatten squeeze expand_dims transpose broadcast_to concat stack split slice "
        "tile reverse pad dilate windows resize_nearest depth_to_space space_to_depth reduce_max reduce_min "
        "max_pool1d max_pool2d max_pool3d global_max_pool argmax argmin argsort cast bit_cast"
    ).split()
)
ELEMENTARY = frozenset(
    f"ms.{name}"
    for name in (
        "exp expm1 log log1p rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf sigmoid softplus "
        "pow atan2 xlogy"
    ).split()
)
SPECIAL = (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-3, 0.5, -2.5, 3.5, -0.4)
"""Floats where functions are special; the rest of an input is random."""

UNITS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The distance of neighbours at 1."""

SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133}
"""The distance of neighbours at 0."""


def inputs(operation: str, types: str, seed: int) -> list[Array]:
    """An array for each operand type of a case."""
    rng = np.random.default_rng(seed)
    name = operation.split()[0]
    arrays = [_array(name, operation, number, type_, rng) for number, type_ in enumerate(types.split())]
    if name.startswith("ms.gather") or name.endswith(("extract_slice", "insert_slice", "scatter_add")):
        places = min(arrays[0].shape) if name.startswith("ms.gather") else arrays[0].shape[0]
        arrays[1] = np.asarray(rng.integers(-places, places, arrays[1].shape), arrays[1].dtype)
    return arrays


def _array(name: str, operation: str, number: int, type_: str, rng: np.random.Generator) -> Array:
    *sizes, dtype_name = type_.split("x")
    shape, dtype = tuple(map(int, sizes)), numpy_dtype(dtype_name)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if np.issubdtype(dtype, np.integer):
        return _integers(name, number, shape, dtype, rng)
    values = np.asarray(rng.uniform(-3, 3, shape))
    if name == "ms.cast" and "dtype = ui" in operation:
        values = np.abs(values)
    elif _takes_special(name, operation):
        values = _with_special(values, number)
    return values.astype(dtype)


def _takes_special(name: str, operation: str) -> bool:
    """Element-wise operations; those that convert to integers define no value for NaN or infinity."""
    if name == "ms.cast":
        return not any(f"dtype = {i}}}" in operation for i in ELEMENT_TYPES if "i" in i and i != "i1")
    return name in EXACT | ELEMENTARY and "{" not in operation


def _with_special(values: Array, number: int) -> Array:
    """Special values first, shifted so that those of two operands meet in many ways."""
    flat = values.reshape(-1).copy()
    special = np.roll(np.resize(SPECIAL, max(len(SPECIAL), min(flat.size, 5 * len(SPECIAL)))), 5 * number)
    count = min(len(special), (flat.size + 1) // 2)
    flat[:count] = special[:count]
    return flat.reshape(values.shape)


def _integers(name: str, number: int, shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    info = np.iinfo(dtype)
    low, high = max(info.min, -9), 9
    if name == "ms.pow":
        low, high = (max(info.min, -3), 4) if number == 0 else (0, 5)
    elif name.startswith("ms.shift") and number == 1:
        low, high = 0, info.bits
    elif name in EXACT or name.startswith(("ms.bitwise", "ms.shift")):
        low, high = info.min, info.max
    return np.asarray(rng.integers(low, high, shape, dtype, endpoint=high == info.max))


def assert_close(operation: str, types: str, actual: Array, expected: Array) -> None:
    """Compare one result of an operation on some types. Raises AssertionError."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    name = operation.split()[0]
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected)
        return
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    if name in EXACT:
        np.testing.assert_array_equal(a, b)
        _assert_same_signs(name, a, b)
        return
    relative, absolute = bound(name, expected, _terms(operation, types, expected.size))
    np.testing.assert_allclose(a, b, rtol=relative, atol=absolute)


def _terms(operation: str, types: str, results: int) -> int:
    """How many numbers a result may add up: a matrix product or convolution those of a row, others shares of x."""
    name, shapes = operation.split()[0], [[int(n) for n in type_.split("x")[:-1]] for type_ in types.split()]
    if name in ("ms.matmul", "ms.batch_matmul"):
        return shapes[0][-2 if "transpose_a" in operation else -1]
    if name.startswith(("ms.conv", "ms.dense", "ms.subpixel")):
        return math.prod(shapes[1]) or 1
    if name == "ms.cumsum":
        return max(shapes[0], default=1)
    return math.prod(shapes[0]) // max(results, 1)


def _assert_same_signs(name: str, actual: Array, expected: Array) -> None:
    """Maxima may take either zero where both meet."""
    if not name.endswith(
        ("max", "min", "maximum", "minimum", "pool1d", "pool2d", "pool3d", "pool", "clip", "relu", "relu6")
    ):
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual)[number], np.signbit(expected)[number], "signs of zero")


def bound(name: str, expected: Array, terms: int) -> tuple[float, float]:
    """Relative and absolute error of a result that adds up `terms` products of inputs between -3 and 3."""
    dtype = expected.dtype
    double = dtype.name == "float64"
    unit, smallest = UNITS.get(dtype.name, 0.0), SMALLEST.get(dtype.name, 1e-300 if double else 1e-38)
    if name in ELEMENTARY:
        return (2e-14 if double else 3e-6) + unit, smallest
    relative, values = 1e-12 if double else 3e-5, np.abs(expected.astype(np.float64))
    largest = float(np.max(values, where=np.isfinite(values), initial=0))
    cancelled = 2 * (2.0**-52 if double else 2.0**-23) * terms * 1.5**2 if terms > 1 else 0.0
    return relative + unit, relative * largest + cancelled + smallest
