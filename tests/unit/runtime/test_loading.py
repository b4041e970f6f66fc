"""Artifacts are loaded whole, independent of their file, and go with the last reference."""

from __future__ import annotations

import copy
import copyreg
import gc
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msc.runtime import artifact as artifact_module
from msc.runtime.artifact import CompiledModel, load, load_unchanging
from msc.runtime.build import build
from msc.runtime.program import FORMAT, CProgram
from msc.support.diagnostics import MscError
from tests.unit.runtime.conftest import SOURCE

Weights = dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]]
X, N = np.ones((2, 3), np.float32), np.zeros(1, np.int32)


def scaled(model: CompiledModel) -> list[float]:
    return model(X, N)[0][0].tolist()


def test_what_a_path_holds_now_is_loaded(program: CProgram, weights: Weights, tmp_path: Path) -> None:
    path = tmp_path / "a.so"
    models = list[CompiledModel]()
    for factor in (1, 10, 100):
        build(program, {"w": weights["w"] * factor}, "so", path)
        models.append(load(path))
        assert scaled(models[-1]) == [factor, 2 * factor, 3 * factor]
    assert [scaled(m)[0] for m in models] == [1, 10, 100]


def test_the_same_after_the_first_is_gone(program: CProgram, weights: Weights, tmp_path: Path) -> None:
    path = tmp_path / "a.so"
    for factor in (1, 10):
        build(program, {"w": weights["w"] * factor}, "so", path)
        for loader in (load, load_unchanging):
            model = loader(path)
            assert scaled(model)[0] == factor
            del model
            gc.collect()


def test_what_becomes_of_the_file_does_not_touch_the_model(model_path: Path, tmp_path: Path) -> None:
    path, saved = tmp_path / "a.so", tmp_path / "b.so"
    path.write_bytes(model_path.read_bytes())
    model = load(path)
    path.write_bytes(b"short")
    assert scaled(model) == [1, 2, 3]
    path.unlink()
    model.save(saved)
    assert saved.read_bytes() == model_path.read_bytes()


def test_truncations_are_refused(model_path: Path, tmp_path: Path) -> None:
    data, path = model_path.read_bytes(), tmp_path / "a.so"
    for length in [*range(0, len(data), len(data) // 40), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(MscError, match="MSC0504"):
            load(path)
        with pytest.raises(MscError, match="MSC0504"):
            load(data[:length])
    path.write_bytes(data[:10_000])
    with pytest.raises(MscError, match="cut short: it has 10000 bytes"):
        load(path)


def test_flipped_bits_are_refused(model_path: Path) -> None:
    data = model_path.read_bytes()
    start = struct.unpack_from("<Q", data, 40)[0]
    places = [*range(64 + 56 * 9), *range(start, len(data)), *range(0, len(data), 401)]
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(MscError, match="MSC0504"):
            load(bytes(damaged))


def test_a_model_is_no_artifact(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"a model")
    with pytest.raises(MscError, match=r"MSC0504(.|\n)*msc.compile makes an artifact"):
        load(tmp_path / "net.onnx")


def test_foreign_libraries_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text("int x;")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "x.so", "x.c"], cwd=tmp_path, check=True)
    with pytest.raises(MscError, match=r"MSC0504(.|\n)*without the seal of msc"):
        load(tmp_path / "x.so")
    with pytest.raises(MscError, match=r"MSC0001.*it is a folder"):
        load(tmp_path)
    os.mkfifo(tmp_path / "fifo.so")
    with pytest.raises(MscError, match=r"MSC0001.*no regular file"):
        load(tmp_path / "fifo.so")


def test_an_artifact_of_another_format(program: CProgram, weights: Weights, tmp_path: Path) -> None:
    class Older(type(program.signature)):
        def to_json(self) -> str:
            return (
                super().to_json().replace(f'"format":{FORMAT}', '"format":3').replace('"msc":"0.1.0"', '"msc":"0.0.9"')
            )

    older = replace(program, signature=Older(**vars(program.signature)))
    with pytest.raises(MscError, match=r"MSC0504(.|\n)*msc 0.0.9 wrote it, in format 3"):
        load(build(older, weights, "so", tmp_path / "a.so"))


def test_features_of_the_cpu_that_are_missing(
    program: CProgram, weights: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demanding = replace(program, signature=replace(program.signature, features=("avx2", "avx9000")))
    path = build(demanding, weights, "so", tmp_path / "a.so")
    with pytest.raises(MscError, match=r"MSC0510.*avx9000(.|\n)*--march"):
        load(path)
    monkeypatch.setattr(artifact_module, "detect_flags", frozenset)
    load(path)


def test_models_are_pickled_and_copied(model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.so"
    path.write_bytes(model_path.read_bytes())
    model = load(path)
    path.unlink()
    reduced: Any = copyreg.dispatch_table[type(model)](model)
    function, arguments = reduced
    for again in (function(*arguments), copy.copy(model), copy.deepcopy(model)):
        assert scaled(again) == [1, 2, 3]
        assert again.signature == model.signature
    with get_context("spawn").Pool(1) as pool:
        assert pool.apply(scaled, (model,)) == [1, 2, 3]


def test_bytes_and_open_files(model_path: Path) -> None:
    with model_path.open("rb") as file:
        assert scaled(load(file)) == [1, 2, 3]
    assert scaled(load(model_path.read_bytes())) == [1, 2, 3]
    with model_path.open("r", encoding="latin-1") as file, pytest.raises(MscError, match=r"MSC0008(.|\n)*'rb'"):
        load(file)  # pyright: ignore[reportArgumentType]
    for wrong in (None, 3, "", "a\0b", ["a.so"]):
        with pytest.raises(MscError, match="MSC0008"):
            load(wrong)  # pyright: ignore[reportArgumentType]


def test_models_that_are_gone_leave_nothing(model_path: Path) -> None:
    def one() -> tuple[int, int]:
        for _ in range(100):
            assert scaled(load(model_path)) == [1, 2, 3]
        return len(os.listdir("/proc/self/fd")), Path("/proc/self/maps").read_text("utf-8").count("memfd")

    assert one() == one()


def test_a_model_in_use_stays(model_path: Path) -> None:
    """The thread has the last reference."""
    results = list[list[float]]()

    def work(model: CompiledModel) -> None:
        for _ in range(300):
            results.append(scaled(model))

    threads = [threading.Thread(target=work, args=(load(model_path),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 1200
    assert all(r == [1, 2, 3] for r in results)


LOOP = "    for (volatile int64_t i = 0; i >= 0; ++i) { }\n    double *const scratch"


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


def test_calls_that_do_not_end_are_interrupted(
    program_of: Callable[[str], CProgram], weights: Weights, tmp_path: Path
) -> None:
    program = program_of(SOURCE.replace("    double *const scratch", LOOP))
    endless = replace(program, signature=replace(program.signature, operations=None))
    path = build(endless, weights, "so", tmp_path / "a.so")
    code = """
import os, signal, sys, threading, time
import numpy as np
import msc
model = msc.load(sys.argv[1])
before = len(os.listdir("/proc/self/task"))
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    model(np.ones((2, 3), np.float32), np.zeros(1, np.int32))
except KeyboardInterrupt:
    time.sleep(0.1)
    print(time.monotonic() - start < 1.3, len(os.listdir("/proc/self/task")) == before)
"""
    result = run_python(code, str(path))
    assert (result.stdout, result.stderr) == ("True True\n", "")


def test_daemon_threads_may_be_in_calls_at_the_end(
    program_of: Callable[[str], CProgram], weights: Weights, tmp_path: Path
) -> None:
    busy = "for (volatile int k = 0; k < 100000; ++k) *scratch += x[k % 6];\n    *sum"
    path = build(program_of(SOURCE.replace("    *sum", f"    {busy}")), weights, "so", tmp_path / "a.so")
    code = """
import sys, threading, time
import numpy as np
import msc
def work(model):
    while True:
        model(np.ones((2, 3), np.float32), np.zeros(1, np.int32))
for _ in range(4):
    threading.Thread(target=work, args=(msc.load(sys.argv[1]),), daemon=True).start()
time.sleep(0.1)
"""
    for _ in range(5):
        result = run_python(code, str(path))
        assert (result.returncode, result.stderr) == (0, "")


def test_calls_get_the_stack_that_they_need(
    program_of: Callable[[str], CProgram], weights: Weights, tmp_path: Path
) -> None:
    deep = "volatile char big[400000]; for (int k = 0; k < 400000; k += 512) big[k] = 1;\n    *sum"
    program = program_of(SOURCE.replace("    *sum", f"    {deep}"))
    path = build(
        replace(program, signature=replace(program.signature, stack_bytes=400_000)), weights, "so", tmp_path / "a.so"
    )
    code = """
import sys, threading
import numpy as np
import msc
model = msc.load(sys.argv[1])
call = lambda: print(model(np.ones((2, 3), np.float32), np.zeros(1, np.int32))[1])
call()
for size in (64, 128, 256, 8192):
    threading.stack_size(size * 1024)
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
"""
    result = run_python(code, str(path))
    assert (result.stdout, result.stderr) == ("12.0\n" * 5, "")


def test_long_calls_have_a_thread_of_their_own(
    program: CProgram, weights: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = replace(program, signature=replace(program.signature, operations=1 << 40))
    model = load(build(program, weights, "so", tmp_path / "a.so"))
    assert scaled(model) == [1, 2, 3]

    def refused(*_: object) -> None:
        return None

    monkeypatch.setattr(vars(model)["_calls"], "_start", refused)
    with pytest.raises(MscError, match="MSC0612"):
        scaled(model)
