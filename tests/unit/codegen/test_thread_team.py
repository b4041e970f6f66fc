"""The thread team: every iteration once, whoever runs it; and how kernels hand their loops to it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from msc.codegen.c import COptions, emit_c
from msc.codegen.c.prelude import Prelude
from msc.interp import evaluate_loops
from msc.runtime.artifact import CompiledModel
from msc.runtime.flags import BUILD_FLAGS, SANITIZER_FLAGS, THREAD_FLAGS, WARNING_FLAGS
from tests.unit.compilers import COMPILERS

Compile = Callable[..., CompiledModel]
Parse = Callable[[str], ModuleOp]

MAIN = Path(__file__).parent / "team_main.c"

FIVE_PROCESSORS = """#define _GNU_SOURCE
#include <sched.h>
#undef CPU_COUNT
#define CPU_COUNT(set) 5
"""
TWO_REFUSED = f"""{FIVE_PROCESSORS}
#include <errno.h>
#include <pthread.h>
static inline int some(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *self)
{{
    static int count;
    return ++count % 3 ? pthread_create(t, a, f, self) : EAGAIN;
}}
#define pthread_create some
"""


def team_program(folder: Path, threads: int, *flags: str, before: str = "") -> Path:
    prelude = Prelude(threads, plain={"subnormals"}, team=True)
    (folder / "team.h").write_text(prelude.text() + prelude.team_text("static "))
    (folder / "before.h").write_text(before)
    include = ("-include", str(folder / "before.h"), "-I", str(folder))
    command = ["cc", *BUILD_FLAGS, *WARNING_FLAGS, *THREAD_FLAGS, *flags, *include, str(MAIN), "-o", str(folder / "t")]
    subprocess.run(command, check=True)
    return folder / "t"


def helped(program: Path, *arguments: str) -> int:
    """How many ranges the workers ran, if all went well."""
    command = [str(program), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return int(result.stdout.split()[0])


@pytest.mark.parametrize("threads", [0, 2, 5])
@pytest.mark.parametrize("before", ["", FIVE_PROCESSORS, TWO_REFUSED], ids=["here", "five", "refused"])
def test_every_iteration_runs_once(tmp_path: Path, threads: int, before: str) -> None:
    """From several host threads at once, in the mode of each, and in child processes that begin meanwhile."""
    shared = (5 if before else len(os.sched_getaffinity(0))) > 1
    count = helped(team_program(tmp_path, threads, before=before), "fork", *(["workers"] if shared else []))
    assert (count > 0) is shared


@pytest.mark.parametrize("before", ["", FIVE_PROCESSORS], ids=["here", "five"])
def test_no_race_is_found(tmp_path: Path, before: str) -> None:
    helped(team_program(tmp_path, 5, "-g", "-O1", "-fsanitize=thread", before=before))


def test_no_undefined_behaviour_is_found(tmp_path: Path) -> None:
    """Without child processes: in one, AddressSanitizer waits for a lock that a thread of its parent held."""
    helped(team_program(tmp_path, 2, *SANITIZER_FLAGS))


def test_without_threads_the_caller_does_all(tmp_path: Path) -> None:
    assert helped(team_program(tmp_path, 2, "-DMSC_NO_THREADS"), "fork") == 0


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_compiler_builds_it_without_warnings(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "cc").symlink_to(str(shutil.which(compiler)))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    helped(team_program(tmp_path, 2))


# --- kernels ---------------------------------------------------------------------------------------------------------

AROUND = """builtin.module {
  func.func @rows(%x: memref<64x4096xf32>, %s: memref<f32>, %y: memref<64x4096xf32>)
      attributes {loop.outputs = 1 : i64} {
    %scale = loop.load %s[] : memref<f32>
    %twice = arith.addf %scale, %scale : f32
    %table = memref.alloca() : memref<1x8xf32>
    loop.for %k = 0 to 8 "k" {
      loop.store %twice, %table[0, %k] : f32, memref<1x8xf32>
    }
    loop.for %i = 3 to 62 step 2 parallel "rows" {
      loop.for %j = 0 to 4096 "first" {
        %v = loop.load %x[%i, %j] : memref<64x4096xf32>
        %t = loop.load %table[0, %j mod 8] : memref<1x8xf32>
        %p = arith.mulf %v, %t : f32
        %q = arith.addf %p, %twice : f32
        loop.store %q, %y[%i, %j] : f32, memref<64x4096xf32>
      }
    }
    loop.for %i = 0 to 64 parallel "rows" {
      loop.for %j = 0 to 4096 "j" {
        %v = loop.load %y[%i, %j] : memref<64x4096xf32>
        %q = arith.addf %v, %scale : f32
        loop.store %q, %y[%i, %j] : f32, memref<64x4096xf32>
      }
    }
    func.return
  }
  func.func @main(%x: memref<64x4096xf32> {ms.role = "input"}, %s: memref<f32> {ms.role = "input"},
                  %y: memref<64x4096xf32> {ms.role = "output"}) {
    func.call @rows(%x, %s, %y) : (memref<64x4096xf32>, memref<f32>, memref<64x4096xf32>) -> ()
    func.return
  }
}"""
"""Two shared loops, which take a scalar, a local array and buffers from around them."""


def test_what_a_shared_loop_takes_from_around_it(compiled: Compile, module_of: Parse) -> None:
    module = module_of(AROUND.replace("3 to 62 step 2", "0 to 64 step 2"))
    source = emit_c(module, COptions(threads=2)).source
    assert "for (int64_t rows = first * 2; rows < last * 2; rows += 2)" in source
    assert "msc_share(rows_part_of, arguments, 32);" in source
    assert "msc_share(rows_part_2_of, arguments_2, 64);" in source
    assert "*(const float *)arguments[" in source


@pytest.mark.parametrize(("start", "step"), [(0, 1), (3, 2)])
def test_shared_loops_give_the_bits_of_the_interpreter(
    compiled: Compile, module_of: Parse, rng: np.random.Generator, start: int, step: int
) -> None:
    module = module_of(AROUND.replace("3 to 62 step 2", f"{start} to 62 step {step}"))
    x, s = rng.standard_normal((64, 4096)).astype(np.float32), np.array(0.5, np.float32)
    model = compiled(module, threads=2)
    results = [model(x, s)[start:62:step] for _ in range(3)]
    (expected,) = evaluate_loops(module, [x, s], {})
    assert all(np.array_equal(y, expected[start:62:step]) for y in results)


def test_a_bound_that_is_computed_just_before_a_shared_loop(compiled: Compile, module_of: Parse) -> None:
    computed = """%c = arith.constant 8 : index
    %n = arith.muli %c, %c : index
    loop.for %i = 0 to %n parallel "rows" {
      loop.for %j = 0 to 4096 step 1 "again" {
        loop.for %k = 0 to 32 {
          %u = loop.load %x[%i, %j] : memref<64x4096xf32>
          %w = arith.mulf %u, %u : f32
          loop.store %w, %y[%i, %j] : f32, memref<64x4096xf32>
        }
      }"""
    module = module_of(AROUND.replace('loop.for %i = 0 to 64 parallel "rows" {', computed))
    assert "msc_share(rows_part_2_of, arguments_2, n);" in emit_c(module, COptions(threads=2)).source
    x, s = np.full((64, 4096), 2, np.float32), np.array(0.5, np.float32)
    assert np.array_equal(compiled(module, threads=2)(x, s), np.full((64, 4096), 4.5, np.float32))


def test_programs_of_one_thread_have_no_team(module_of: Parse) -> None:
    alone = emit_c(module_of(AROUND), COptions(threads=1)).source
    assert "msc_share" not in alone
    assert "pthread" not in alone


def tasks() -> int:
    return len(os.listdir("/proc/self/task"))


def test_unloading_ends_the_workers(compiled: Compile, module_of: Parse) -> None:
    before = tasks()
    model: Any = compiled(module_of(AROUND), threads=2)
    model(np.zeros((64, 4096), np.float32), np.array(0.5, np.float32))
    assert tasks() == before + (len(os.sched_getaffinity(0)) > 1)
    del model
    assert tasks() == before


def test_kernels_with_names_of_the_system_build(compiled: Compile, module_of: Parse) -> None:
    text = AROUND.replace("@rows", "@read")
    assert compiled(module_of(text), threads=2, profile=True).calls == ("read_2",)
