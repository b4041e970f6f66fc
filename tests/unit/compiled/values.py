"""Inputs for cases, and how close a compiled result must be to the interpreter's.

Integers, booleans and whatever is only moved agree exactly. Floats that one IEEE operation gives agree exactly, the
sign of zero and NaN included. The other bounds, relative to the result unless said otherwise:

| f64 | f32 | bf16, f16 | of |
|---|---|---|---|
| 2e-14 | 3e-6 | one unit of the type | one elementary function |
| 1e-12 | 3e-5 | ten units | sums, and expressions of several functions; absolute too, as sums cancel |

Of products of matrices with long rows the absolute bound is two units of all that a sum adds up and that may cancel:
adding n products in some order may be off by some sqrt(n) roundings of it (Higham and Mary, 2019). Of 2049 products the
bound is 1.1e-3 in f32, where sums are some hundreds.

Expanded operations of 16-bit floats round after every step, where the interpreter rounds once: their absolute bound is
relative to the largest element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from msc.dialects.arrays import numpy_dtype
from msc.dialects.element_types import ELEMENT_TYPES
from tests.unit.compiled.programs import Array

EXACT = frozenset(
    f"ms.{name}"
    for name in (
        "neg abs sign identity logical_not bitwise_not is_nan is_inf floor ceil round trunc relu add sub mul div rem "
        "mod floor_div maximum minimum select clip relu6 sqrt square reciprocal gather gather_elements entry set_entry "
        "one_hot iota tril triu reshape flatten squeeze expand_dims transpose broadcast_to concat stack split slice "
        "tile reverse pad dilate windows resize_nearest depth_to_space space_to_depth reduce_max reduce_min "
        "max_pool1d max_pool2d max_pool3d global_max_pool argmax argmin cast bit_cast"
    ).split()
)
ELEMENTARY = frozenset(
    f"ms.{name}"
    for name in (
        "exp expm1 log log1p rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf sigmoid softplus "
        "pow atan2"
    ).split()
)
SPECIAL = (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-3, 0.5, -2.5, 3.5, -0.4)
"""Floats where functions are special; the rest of an input is random."""

UNITS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The distance of neighbours at 1."""


def inputs(operation: str, types: str, seed: int) -> list[Array]:
    """An array for each operand type of a case."""
    rng = np.random.default_rng(seed)
    name = operation.split()[0]
    arrays = [_array(name, operation, number, type_, rng) for number, type_ in enumerate(types.split())]
    if name.startswith("ms.gather") or name.endswith("entry"):
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
    relative, absolute = bound(name, expected.dtype)
    if expected.dtype.name not in UNITS:
        absolute = max(absolute, 2 * np.finfo(expected.dtype).eps * _added_up(operation, types))
    if expected.dtype.name in UNITS and name not in ELEMENTARY:
        absolute *= max(1.0, float(np.max(np.abs(b), where=np.isfinite(b), initial=0)))
    np.testing.assert_allclose(a, b, rtol=relative, atol=absolute)


def _added_up(operation: str, types: str) -> float:
    """The magnitudes that an element of a matrix product adds up, of inputs uniform in -3 to 3; 0 of anything else."""
    if operation.split()[0] not in ("ms.matmul", "ms.batch_matmul"):
        return 0
    *sizes, _ = types.split()[0].split("x")
    terms = int(sizes[-2 if "transpose_a" in operation else -1])
    return terms * 1.5**2


def _assert_same_signs(name: str, actual: Array, expected: Array) -> None:
    """Maxima may take either zero where both meet."""
    if not name.endswith(
        ("max", "min", "maximum", "minimum", "pool1d", "pool2d", "pool3d", "pool", "clip", "relu", "relu6")
    ):
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual)[number], np.signbit(expected)[number], "signs of zero")


def bound(name: str, dtype: np.dtype[Any]) -> tuple[float, float]:
    """Relative and absolute error."""
    if dtype.name in UNITS:
        unit = UNITS[dtype.name] * (1 if name in ELEMENTARY else 10)
        return unit, unit / 64 if name in ELEMENTARY else unit
    if name in ELEMENTARY:
        return (2e-14, 1e-300) if dtype.name == "float64" else (3e-6, 1e-38)
    return (1e-12, 1e-12) if dtype.name == "float64" else (3e-5, 3e-5)
