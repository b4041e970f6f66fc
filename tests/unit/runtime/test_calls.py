"""Calls of compiled models: what they take, what they say of what they do not take, threads, cost."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from msc.runtime.artifact import CompiledModel, load
from msc.runtime.build import build
from msc.runtime.compiled_model import BEHIND, PAGE, array_beside
from msc.runtime.program import CProgram, Signature
from msc.support.diagnostics import MscError

X = np.arange(6, dtype=np.float32).reshape(2, 3)
N = np.array([10], np.int32)


def expected(x: NDArray[np.float32], n: int) -> NDArray[np.float32]:
    return (x * np.array([1, 2, 3], np.float32) + np.float32(n)).astype(np.float32)


def test_several_outputs_are_a_tuple(model: CompiledModel) -> None:
    y, total = model(X, N)
    np.testing.assert_array_equal(y, expected(X, 10))
    assert total.shape == ()
    assert float(total) == expected(X, 10).sum()


def test_inputs_by_name_and_in_order(model: CompiledModel) -> None:
    np.testing.assert_array_equal(model(n=N, x=X)[0], expected(X, 10))
    np.testing.assert_array_equal(model(X, n=N)[0], expected(X, 10))


def test_any_memory_layout_and_read_only_inputs(model: CompiledModel) -> None:
    wide = np.zeros((2, 6), np.float32)
    wide[:, ::2] = X
    np.testing.assert_array_equal(model(wide[:, ::2], N)[0], expected(X, 10))
    np.testing.assert_array_equal(model(np.asfortranarray(X), N)[0], expected(X, 10))
    fixed = X.copy()
    fixed.flags.writeable = False
    np.testing.assert_array_equal(model(fixed, N)[0], expected(X, 10))


def test_lists_of_the_right_kind(model: CompiledModel) -> None:
    np.testing.assert_array_equal(model(X.tolist(), [10])[0], expected(X, 10))
    np.testing.assert_array_equal(model(np.asfortranarray(X), cast(Any, [10]))[0], expected(X, 10))


@pytest.mark.parametrize(
    ("arrays", "named", "message"),
    [
        ((X,), {}, r"MSC0601.*missing input: n"),
        ((), {}, r"MSC0601.*missing inputs: x, n"),
        ((X, N, N), {}, r"MSC0602.*takes 2 inputs"),
        ((X,), {"m": N}, r"MSC0602.*no input 'm'"),
        ((X, N), {"x": X}, r"MSC0602.*'x' is given twice"),
        ((X.T, N), {}, r"MSC0603.*'x' has shape \[3, 2\], expected \[2, 3\]: dimension 0 is 3 instead of 2"),
        ((X[0], N), {}, r"MSC0603.*rank 1 instead of 2"),
        ((X.astype(np.float64), N), {}, r"MSC0604.*'x' has dtype float64, expected float32"),
        ((X, np.array([1.5])), {}, r"MSC0604.*'n' has dtype float64, expected int32"),
    ],
)
def test_wrong_inputs(model: CompiledModel, arrays: Any, named: Any, message: str) -> None:
    with pytest.raises(MscError, match=message):
        model(*arrays, **named)


def test_all_wrong_inputs_are_named_at_once(model: CompiledModel) -> None:
    with pytest.raises(MscError) as caught:
        model(X.T, np.array([1.5]))
    assert [d.code for d in caught.value.diagnostics] == ["MSC0603", "MSC0604"]


@pytest.mark.parametrize("beside", [0, 16, 4096 + 48, 12345 * 16])
def test_large_results_start_at_a_line_before_their_input(beside: int) -> None:
    array = array_beside(beside, (300, 100), np.dtype(np.float32), 120_000)
    assert array.shape == (300, 100)
    assert array.flags.writeable
    assert array.ctypes.data % 64 == 0
    assert BEHIND <= (beside - array.ctypes.data) % PAGE < BEHIND + 64


def test_threads_do_not_meet(model: CompiledModel) -> None:
    wrong = list[int]()

    def work(seed: int) -> None:
        x = np.full((2, 3), seed, np.float32)
        n = np.array([seed], np.int32)
        for _ in range(500):
            y, total = model(x, n)
            if not (y == expected(x, seed)).all() or float(total) != expected(x, seed).sum():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_call_costs_microseconds(model: CompiledModel) -> None:
    """About 3 on an idle machine; the bound leaves room for a busy one."""
    best = 1.0
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(200):
            model(X, N)
        best = min(best, (time.perf_counter() - start) / 200)
    assert best < 50e-6


@pytest.mark.parametrize("content", [b"", b"not a library", b"\x7fELF" + bytes(100)])
def test_what_is_no_artifact(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.so"
    path.write_bytes(content)
    with pytest.raises(MscError, match="MSC0504"):
        load(path)
    with pytest.raises(MscError, match="MSC0001"):
        load(tmp_path / "none.so")


def test_an_artifact_for_another_machine(model: CompiledModel, tmp_path: Path) -> None:
    path = tmp_path / "x.so"
    model.save(path)
    data = bytearray(path.read_bytes())
    data[18:20] = b"\xff\xfe"
    path.write_bytes(data)
    with pytest.raises(MscError, match=r"MSC0504(.|\n)*it was built for another machine"):
        load(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format":2}', '{"format":1,"name":3}'])
def test_what_is_no_signature(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        Signature.from_json(text)


@pytest.mark.parametrize(
    "odd", ["null", "-1", "1.5", "1e999", '"x"', "[]", "{}", "[[]]", "[{}]", "[" * 3000 + "]" * 3000]
)
def test_no_value_of_a_signature_breaks_its_reader(model: CompiledModel, odd: str) -> None:
    text = model.signature.to_json()
    data = cast("dict[str, Any]", json.loads(text))
    inner = ('"bounds":[[]],"shape":[2,3]', f'"bounds":[{odd}],"shape":[2,3]', f'"codes":{odd},"shape":[2,3]')
    variants = [
        text.replace(f'"{key}":{json.dumps(data[key], separators=(",", ":"))}', f'"{key}":{odd}') for key in data
    ]
    for variant in (*variants, *(text.replace('"shape":[2,3]', part) for part in inner)):
        with suppress(ValueError):
            Signature.from_json(variant)


def test_signatures_survive_json(model: CompiledModel) -> None:
    assert Signature.from_json(model.signature.to_json()) == model.signature


def test_an_error_of_the_model_is_explained(
    program_of: Callable[[str], CProgram], weights: dict[str, NDArray[np.float32]], tmp_path: Path
) -> None:
    source = (
        '#include "scale.h"\nint scale_run(const float *x, const int32_t *n, float *y, double *sum, void *w)\n'
        "{ (void)x; (void)n; (void)y; (void)sum; return w == 0; }"
    )
    path = build(program_of(source.replace("w == 0", "2")), weights, "so", tmp_path / "x.so")
    with pytest.raises(MscError, match=r"MSC0606.*a pointer was misaligned"):
        load(path)(X, N)
    aligned = build(program_of(source.replace("w == 0", "(uintptr_t)w % 64 != 0")), weights, "so", tmp_path / "y.so")
    load(aligned)(X, N)


def test_no_memory_for_the_results(model: CompiledModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("msc.runtime.compiled_model.array_beside", none_left)
    with pytest.raises(MscError, match="MSC0020"):
        model(X, N)
