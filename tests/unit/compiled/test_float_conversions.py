"""Floats as integers: NaN, infinities and what does not fit have one result in C, in the interpreter, in constants."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest

from msc.interp.meanings.elementwise import converted
from tests.unit.compiled.programs import compiled, interpreted, program_text

INTEGERS = "i8 i16 i32 i64 ui8 ui16 ui32 ui64".split()
POWERS = [2.0**k for k in (7, 8, 15, 16, 31, 32, 63, 64, 70)]
NUMBERS = [0.0, 0.9, 1.5, 200.7, np.nan, np.inf, *POWERS, *(p * 1.5 for p in POWERS), 3e9, 1e19]
SPECIAL = np.array([*NUMBERS, *(-x for x in NUMBERS)])


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the conversions of x86")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("march", ["native", "x86-64-v3", "generic"])
def test_conversions_have_one_result(tmp_path: Path, dtype: str, march: str) -> None:
    wide = SPECIAL.astype(dtype)
    name = {"float32": "f32", "float64": "f64"}[dtype]
    cases = [(f"ms.cast %0 {{dtype = {t}}}", f"{n}x{name}") for t in INTEGERS for n in (wide.size, 1)]
    arrays = [wide if operand != f"1x{name}" else wide[4:5] for _, operand in cases]
    text = program_text(cases)
    right = interpreted(text, arrays)
    for case, found, wanted in zip(cases, compiled(text, tmp_path, march=march).results(*arrays), right, strict=True):
        np.testing.assert_array_equal(found, wanted, err_msg=str(case))


def test_what_fits_is_truncated_and_nan_is_the_least_number() -> None:
    for name in ("int8", "int32", "int64", "uint8", "uint32", "uint64"):
        limits = np.iinfo(name)
        fitting = np.array([0.0, 1.9, float(limits.max // 4), float(limits.min // 4)])
        np.testing.assert_array_equal(converted(fitting, np.dtype(name)), fitting.astype(name))
    assert converted(np.array([np.nan]), np.dtype(np.int32))[0] == np.iinfo(np.int32).min
    assert converted(np.array([np.nan]), np.dtype(np.uint64))[0] == np.uint64(2**63)
