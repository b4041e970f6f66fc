"""Columns of memory as vectors, read by whole rows: every function beside the interpreter; what may not be moved."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from msc.codegen.c import emit_c
from msc.interp import evaluate_loops
from msc.runtime.artifact import CompiledModel
from msc.runtime.build import BuildOptions, build

Parse = Callable[[str], ModuleOp]
Compile = Callable[..., CompiledModel]

TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i16": np.int16, "i8": np.int8}


def columns_text(element: str, lanes: int, count: int, step: int) -> str:
    """A module that copies columns of `x`, which ends with the last of them."""
    width = (count - 1) * step + 1
    x, y, vector = (
        f"memref<{lanes}x{width}x{element}>",
        f"memref<{count}x{lanes}x{element}>",
        f"vector<{lanes}x{element}>",
    )
    return f"""builtin.module @test {{
      func.func @k(%x: {x}, %y: {y}) attributes {{loop.outputs = 1 : i64}} {{
        loop.for %i = 0 to {count} unroll "i" {{
          %a = loop.load %x[0, %i * {step}] lanes [1, 0] : {x}, {vector}
          loop.store %a, %y[%i, 0] : {vector}, {y}
        }}
        func.return
      }}
      func.func @main(%x: {x}, %y: {y} {{ms.role = "output"}}) {{
        func.call @k(%x, %y) : ({x}, {y}) -> ()
        func.return
      }}
    }}"""


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize(
    ("element", "lanes", "count"),
    [
        ("f32", 16, 16), ("f32", 16, 15), ("f32", 8, 31), ("f32", 4, 7), ("f64", 8, 15), ("f64", 2, 3), ("i32", 16, 4),
        ("i16", 32, 24), ("i16", 8, 9), ("i8", 64, 17), ("i8", 16, 16),
    ],
)  # fmt: skip
def test_columns_are_what_the_interpreter_reads(
    compiled: Compile, module_of: Parse, rng: np.random.Generator, element: str, lanes: int, count: int, step: int
) -> None:
    module = module_of(columns_text(element, lanes, count, step))
    assert f"load_transposed_{'' if step == 1 else 'even_'}" in emit_c(module).source
    x = rng.integers(-100, 100, (lanes, (count - 1) * step + 1)).astype(TYPES[element])
    (expected,) = evaluate_loops(module, [x], {})
    np.testing.assert_array_equal(compiled(module)(x), expected)


@pytest.mark.parametrize(
    ("element", "lanes", "count", "step"), [("f32", 16, 15, 1), ("f32", 8, 31, 2), ("i16", 8, 9, 2)]
)
def test_nothing_is_read_outside_the_buffer(
    module_of: Parse, tmp_path: Path, element: str, lanes: int, count: int, step: int
) -> None:
    program = emit_c(module_of(columns_text(element, lanes, count, step)))
    path = build(program, {}, "exe", tmp_path / "columns", BuildOptions(sanitize=True))
    result = subprocess.run([str(path)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_booleans_are_columns_too(compiled: Compile, module_of: Parse, rng: np.random.Generator) -> None:
    module = module_of(columns_text("i1", 16, 16, 1))
    x = rng.integers(0, 2, (16, 16)).astype(np.bool_)
    assert "load_transposed_16_u8x16" in emit_c(module).source
    np.testing.assert_array_equal(compiled(module)(x), x.T)


@pytest.mark.parametrize("count", [1, 3])
def test_few_columns_are_read_one_by_one(module_of: Parse, count: int) -> None:
    assert "load_transposed" not in emit_c(module_of(columns_text("f32", 8, count, 1))).source


def test_columns_of_a_buffer_that_is_written_through_another_name_stay_in_their_loop(
    compiled: Compile, module_of: Parse
) -> None:
    """Each iteration writes what the next one reads, as the caller gives one buffer twice."""
    buffer = "memref<8x9xf32>"
    module = module_of(f"""builtin.module @test {{
      func.func @k(%x: {buffer}, %y: {buffer}) attributes {{loop.outputs = 1 : i64}} {{
        loop.for %i = 0 to 8 unroll "i" {{
          %a = loop.load %x[0, %i] lanes [1, 0] : {buffer}, vector<8xf32>
          loop.store %a, %y[0, %i + 1] lanes [1, 0] : vector<8xf32>, {buffer}
        }}
        func.return
      }}
      func.func @main(%x: {buffer}, %y: {buffer} {{ms.role = "output"}}) {{
        loop.for %r = 0 to 8 "r" {{
          loop.for %c = 0 to 9 "c" {{
            %a = loop.load %x[%r, %c] : {buffer}
            loop.store %a, %y[%r, %c] : f32, {buffer}
          }}
        }}
        func.call @k(%y, %y) : ({buffer}, {buffer}) -> ()
        func.return
      }}
    }}""")
    assert "load_transposed" not in emit_c(module).source
    x = np.arange(72, dtype=np.float32).reshape(8, 9)
    np.testing.assert_array_equal(compiled(module)(x), np.repeat(x[:, :1], 9, axis=1))
