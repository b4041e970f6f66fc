"""Every operation has a meaning; what all meanings have in common."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from msc.dialects.arrays import Array, dtype_text, numpy_dtype
from msc.dialects.element_types import element_type
from msc.dialects.ms import OPERATIONS
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.structure import GetParameterOp
from msc.interp import meaning
from msc.support.diagnostics import MscError

Run: TypeAlias = Callable[..., npt.NDArray[Any]]


def test_every_operation_has_a_meaning_and_every_meaning_an_operation() -> None:
    operations = {op.name for op in OPERATIONS if issubclass(op, MsOp)} - {GetParameterOp.name}
    assert operations == {f"ms.{name}" for name in meaning.all()}


def test_an_operation_has_one_meaning_only() -> None:
    with pytest.raises(ValueError, match="two meanings"):

        @meaning("add")
        def _(op: MsOp, a: Array, b: Array) -> Array:
            return a - b


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_sixteen_bit_floats_compute_in_f32_and_round_once(run: Run, dtype: Any) -> None:
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(dtype)
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(run("matmul", x, x), (wide @ wide).astype(dtype))
    np.testing.assert_array_equal(run("gelu", x), run("gelu", wide).astype(dtype))


def test_no_warning_leaks(run: Run) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        extremes = np.array([0, -0.0, np.inf, -np.inf, np.nan, 3e38, -1], np.float32)
        for name in ("log", "sqrt", "exp", "reciprocal", "softmax", "gelu", "acosh", "square", "sigmoid", "softplus"):
            run(name, extremes)
        run("add", np.array(127, np.int8), np.array(1, np.int8))
        run("div", np.array([1], np.int32), np.array([0], np.int32))
        run("cast", extremes, dtype=element_type("i8"))


EMPTY: list[tuple[str, tuple[int, ...], dict[str, Any], tuple[int, ...]]] = [
    ("reduce_mean", (2, 0), {"axis": [1]}, (2,)),
    ("softmax", (2, 0), {}, (2, 0)),
    ("log_softmax", (0, 3), {}, (0, 3)),
    ("flatten", (0, 3, 2), {"axis": 1}, (0, 6)),
    ("flatten", (3, 0, 2), {"axis": -1}, (0, 2)),
    ("cumsum", (2, 0), {}, (2, 0)),
    ("argsort", (2, 0), {}, (2, 0)),
    ("l2_normalize", (0, 3), {}, (0, 3)),
    ("max_pool1d", (0, 2, 4), {"kernel_size": [2]}, (0, 2, 3)),
    ("slice", (4,), {"begin": [3], "end": [1]}, (0,)),
    ("tile", (4,), {"multiples": [0]}, (0,)),
]


@pytest.mark.parametrize(("name", "shape", "properties", "expected"), EMPTY)
def test_empty_tensors(
    run: Run, name: str, shape: tuple[int, ...], properties: dict[str, Any], expected: tuple[int, ...]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(name, np.zeros(shape, np.float32), **properties).shape == expected


@pytest.mark.parametrize("name", "f16 bf16 f32 f64 i1 i8 i16 i32 i64 ui8 ui16 ui32 ui64".split())
def test_names_of_element_types_go_both_ways(name: str) -> None:
    assert dtype_text(numpy_dtype(name)) == name


def test_a_meaning_that_was_forgotten_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(cast("dict[str, Any]", meaning.all()), "softsign")
    with pytest.raises(MscError, match=r"MSC0906.*ms\.softsign has no meaning(.|\n)*adding-an-operator"):
        run("softsign", np.ones(3, np.float32))
