"""Every operation of the ms dialect through the whole compiler, against the interpreter.

A test compiles some hundred cases as one program. A run takes a part of the shapes, another one for each element type,
and every operation in f32 and in a third of the other types; `MSC_TESTS=large` takes all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from msc.dialects.element_types import ELEMENT_TYPES
from msc.dialects.ms import OPERATIONS
from tests.unit.compiled.effort import EFFORT
from tests.unit.compiled.operations import OF_SEVERAL_RANKS, cases_of, random_cases
from tests.unit.compiled.programs import Array, Case, compiled, interpreted, program_text, results_of, run_checked
from tests.unit.compiled.values import assert_close, inputs

BATCH = 150
PART = 14
"""One of so many cases is in a small run, and the first one of every operation whose turn it is."""


def chosen(dtype: str, large: bool, part: int = PART) -> Sequence[Case]:
    """All cases in a large run; else one in `part`, and one of every operation, or of a third of them if not in f32."""
    cases = cases_of(dtype)
    if large:
        return cases
    first = {operation.split()[0]: (operation, types) for operation, types in reversed(cases)}
    turn = list(ELEMENT_TYPES).index(dtype)
    taken = [case for k, case in enumerate(first.values()) if dtype == "f32" or (k + turn) % 3 == 0]
    return list(dict.fromkeys([*cases[turn % part :: part], *taken]))


def check(cases: Sequence[Case], folder: Path, **options: Any) -> None:
    """Compile the cases as one program, run it, compare every result."""
    text, arrays = program_text(cases), arguments(cases)
    compare(cases, compiled(text, folder, **options).results(*arrays), interpreted(text, arrays))


def arguments(cases: Sequence[Case]) -> list[Array]:
    return [array for number, case in enumerate(cases) for array in inputs(*case, number)]


def compare(cases: Sequence[Case], results: Iterable[Array], right: Iterable[Array]) -> None:
    actual, expected = iter(results), iter(right)
    wrong: list[str] = []
    for operation, types in cases:
        for _ in range(results_of(operation)):
            try:
                assert_close(operation, types, next(actual), next(expected))
            except AssertionError as difference:
                wrong.append(f"{operation} on {types}: {difference}")
    assert not wrong, "\n\n".join(wrong[:10])


def check_all(cases: Sequence[Case], folder: Path, **options: Any) -> None:
    for start in range(0, len(cases), BATCH):
        check(cases[start : start + BATCH], folder, **options)


@pytest.mark.parametrize("half", range(2))
def test_f32(tmp_path: Path, large: bool, half: int) -> None:
    check_all(chosen("f32", large, 5)[half::2], tmp_path)


@pytest.mark.parametrize("dtype", [t for t in ELEMENT_TYPES if t != "f32"])
def test_other_element_types(tmp_path: Path, large: bool, dtype: str) -> None:
    check_all(chosen(dtype, large), tmp_path)


@pytest.mark.parametrize("dtype", ["f32", "i8"])
@pytest.mark.parametrize("march", ["generic", "x86-64-v3"])
def test_other_targets(tmp_path: Path, large: bool, march: str, dtype: str) -> None:
    check_all(chosen(dtype, large), tmp_path, march=march)


def test_as_users_build_it(tmp_path: Path, large: bool) -> None:
    """With the optimisation that programs are shipped with, and for several threads."""
    check_all(chosen("f32", large), tmp_path, flags=(), threads=2)


@pytest.mark.parametrize(
    ("dtype", "march"), [("f32", "native"), ("f32", "generic"), ("i8", "native"), ("f16", "native")]
)
def test_no_access_outside_a_buffer_and_nothing_undefined(tmp_path: Path, large: bool, dtype: str, march: str) -> None:
    """Under AddressSanitizer and UndefinedBehaviorSanitizer; conversions out of range are not among it."""
    cases = chosen(dtype, large) if (dtype, march) == ("f32", "native") or large else cases_of(dtype)[:: 2 * PART]
    for start in range(0, len(cases), BATCH):
        batch, folder = cases[start : start + BATCH], tmp_path / str(start)
        folder.mkdir()
        text, arrays = program_text(batch), arguments(batch)
        compare(batch, run_checked(text, folder, arrays, march), interpreted(text, arrays))


@EFFORT
@given(random_cases())
def test_random_sizes_and_properties(tmp_path_factory: pytest.TempPathFactory, cases: list[Case]) -> None:
    check_all(cases, tmp_path_factory.mktemp("random"))


def test_every_operation_is_compiled() -> None:
    structure = {"ms.constant", "ms.get_parameter", "ms.parameter", "ms.yield"}
    shapes: dict[str, set[Case]] = {op.name: set() for op in OPERATIONS if op.name not in structure | OF_SEVERAL_RANKS}
    for dtype in ("f32", "i32", "i1"):
        for case in cases_of(dtype):
            shapes[case[0].split()[0]].add(case)
    assert [name for name, cases in shapes.items() if len(cases) < 5] == []


LARGE_CASES: list[Case] = [
    ("ms.reduce_sum %0 {axis = 0}", "1000x129xf32"),
    ("ms.reduce_sum %0", "70001xf64"),
    ("ms.reduce_sum %0 {axis = [0, 2]}", "33x17x65xf16"),
    ("ms.reduce_mean %0 {axis = 0}", "5000x3xf64"),
    ("ms.reduce_max %0 {axis = 1}", "3x20011xi8"),
    ("ms.reduce_prod %0 {axis = 0}", "2003x5xui16"),
    ("ms.reduce_any %0 {axis = 0}", "511x33xi1"),
    ("ms.argmax %0", "20011xf32"),
    ("ms.argmin %0 {axis = 0}", "1031x9xi16"),
    ("ms.softmax %0", "30011xf32"),
    ("ms.softmax %0", "3x20011xf32"),
    ("ms.log_softmax %0 {axis = 0}", "701x65xf32"),
    ("ms.layer_norm %0, %1, %2", "3x20011xf32 20011xf32 20011xf32"),
    ("ms.cumsum %0", "2003xf32"),
    ("ms.argsort %0", "3x2003xf32"),
    ("ms.argsort %0 {descending = true}", "70001xi16"),
    ("ms.argsort %0 {axis = 0, count = 100, descending = true}", "5003x3xf64"),
    ("ms.argsort %0 {count = 64}", "2x4099xui32"),
    ("ms.matmul %0, %1", "67x301xf32 301x131xf32"),
    ("ms.matmul %0, %1 {transpose_b = true}", "1x2049xf32 67x2049xf32"),
    ("ms.matmul %0, %1 {transpose_a = true}", "300x35xf64 300x33xf64"),
    ("ms.matmul %0, %1", "35x67xi32 67x130xi32"),
    ("ms.batch_matmul %0, %1", "7x33x65xbf16 65x17xbf16"),
    ("ms.conv2d %0, %1, %2", "1x16x31x33xf32 24x16x3x3xf32 24xf32"),
    ('ms.conv2d %0, %1 {pad_mode = "same", group = 24}', "2x24x17x19xf32 24x1x5x5xf32"),
    ('ms.max_pool2d %0 {kernel_size = 3, stride = 2, pad_mode = "same"}', "1x19x45x47xf32"),
    ("ms.transpose %0", "257x129xf32"),
    ("ms.gather %0, %1", "70x33xf32 4001xi64"),
    ("ms.concat %0, %1 {axis = 0}", "40001xi8 30001xi8"),
    ('ms.pad %0 {pad = [300, 2, 5, 101], mode = "wrap"}', "401x129xf32"),
    ("ms.matmul %0, %1", "17x1024xf32 1024x1024xf32"),
]
"""Where tiles, accumulators of several vectors, scratch buffers beyond the stack, and threads come in."""


@pytest.mark.parametrize("march", ["native", "generic"])
@pytest.mark.parametrize("threads", [1, 2])
def test_large_tensors(tmp_path: Path, march: str, threads: int) -> None:
    check(LARGE_CASES, tmp_path, march=march, threads=threads)
