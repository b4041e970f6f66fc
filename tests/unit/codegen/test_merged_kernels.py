"""Kernels that differ in extents alone call one function; all others are functions of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from msc.codegen.c import COptions, emit_c
from msc.codegen.c.merged_kernels import FEWEST
from msc.interp import evaluate_loops
from msc.runtime.artifact import CompiledModel

Parse = Callable[[str], ModuleOp]
Compile = Callable[..., CompiledModel]

ROWS = """
  func.func @k{k}(%x: memref<{rows}x{n}xf32>, %w: memref<{n}xf32>, %y: memref<{rows}x{m}xf32>)
      attributes {{loop.outputs = 1 : i64}} {{
    loop.for %i = 0 to {rows} parallel "i" {{
      loop.for %j = 0 to {n} "j" {{
        %a = loop.load %x[%i, %j] : memref<{rows}x{n}xf32>
        %b = loop.load %w[%j] : memref<{n}xf32>
        %c = arith.mulf %a, %b : f32
        loop.store %c, %y[%i, %j + 8] : f32, memref<{rows}x{m}xf32>
      }}
      loop.for %j = 0 to 8 unroll "head" {{
        %a = loop.load %x[%i, %j] : memref<{rows}x{n}xf32>
        loop.store %a, %y[%i, %j] : f32, memref<{rows}x{m}xf32>
      }}
    }}
    func.return
  }}"""
"""Rows of n columns, weighted, behind their first eight."""


def rows_text(sizes: Sequence[tuple[int, int]], kernel: str = ROWS) -> str:
    """A module with a kernel, an input, a weight and an output for each number of rows and columns."""
    kernels, arguments, calls = "", list[str](), ""
    for k, (rows, n) in enumerate(sizes):
        kernels += kernel.format(k=k, rows=rows, n=n, m=n + 8)
        types = f"memref<{rows}x{n}xf32>", f"memref<{n}xf32>", f"memref<{rows}x{n + 8}xf32>"
        roles = (f"%{name}{k}" for name in "xwy")
        pairs = zip(roles, types, ("input", "input", "output"), strict=True)
        arguments += [f'{name}: {type_} {{ms.role = "{role}"}}' for name, type_, role in pairs]
        calls += f"\n    func.call @k{k}(%x{k}, %w{k}, %y{k}) : ({', '.join(types)}) -> ()"
    main = f"\n  func.func @main({', '.join(arguments)}) {{{calls}\n    func.return\n  }}\n"
    return f"builtin.module @test {{{kernels}{main}}}"


SIZES = [(32, 24), (32, 40), (48, 64), (32, 100)]


@pytest.fixture(autouse=True)
def _small_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msc.codegen.c.merged_kernels._SAVED_BYTES", 0)


def calls_of(source: str) -> list[str]:
    """The arguments of the calls of merged functions."""
    return re.findall(r"^    \w+_merged\((.*)\);$", source, re.MULTILINE)


@pytest.mark.parametrize("threads", [1, 2])
def test_they_compute_what_the_interpreter_computes(
    compiled: Compile, module_of: Parse, rng: np.random.Generator, threads: int
) -> None:
    module = module_of(rows_text(SIZES))
    source = emit_c(module, COptions(threads=threads)).source
    assert calls_of(source) == [f"{rows}, {n}, x, w, y" for rows, n in SIZES]
    assert source.count("static MSC_MERGED") == 1
    assert "/* Computes 4 kernels, which differ in n, n_2. */" in source
    assert "float y[restrict n][n_2 + 8]" in source
    arrays = [rng.standard_normal(shape).astype(np.float32) for rows, n in SIZES for shape in ((rows, n), (n,))]
    expected = evaluate_loops(module, arrays, {})
    for got, wanted in zip(compiled(module, threads=threads).results(*arrays), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_few_kernels_stay_apart(module_of: Parse) -> None:
    assert "MSC_MERGED" not in emit_c(module_of(rows_text(SIZES[: FEWEST - 1]))).source


def test_little_c_stays_apart(monkeypatch: pytest.MonkeyPatch, module_of: Parse) -> None:
    monkeypatch.setattr("msc.codegen.c.merged_kernels._SAVED_BYTES", 4000)
    assert "MSC_MERGED" not in emit_c(module_of(rows_text(SIZES))).source


def test_kernels_that_differ_in_many_extents_stay_apart(monkeypatch: pytest.MonkeyPatch, module_of: Parse) -> None:
    monkeypatch.setattr("msc.codegen.c.merged_kernels.MOST_EXTENTS", 1)
    assert "MSC_MERGED" not in emit_c(module_of(rows_text(SIZES))).source
    assert "MSC_MERGED" in emit_c(module_of(rows_text([(32, n) for _, n in SIZES]))).source


def test_kernels_whose_tiles_differ_stay_apart(module_of: Parse) -> None:
    """The compiler unrolls the loop over a tile, so it has to know the tile."""
    module = module_of(rows_text(SIZES, ROWS.replace("0 to 8 unroll", "0 to {n} unroll")))
    assert "MSC_MERGED" not in emit_c(module).source


def test_kernels_with_short_innermost_loops_stay_apart(module_of: Parse) -> None:
    """The compiler unrolls these too, though nobody asks it to."""
    short = [(32, 9), (32, 12), (32, 15), (32, 16)]
    assert "MSC_MERGED" not in emit_c(module_of(rows_text(short))).source
    assert calls_of(emit_c(module_of(rows_text([*short, *SIZES]))).source) == [f"{r}, {n}, x, w, y" for r, n in SIZES]


def test_kernels_that_read_other_arguments_stay_apart(module_of: Parse) -> None:
    """Their texts are the same but for numbers, which are in the names of the arguments."""
    kernels = ROWS.replace("%x", "%a1").replace("%w", "%a2").replace("mulf", "subf")
    text = rows_text(SIZES, kernels)
    first, last = text.split("func.func @k3")
    assert "MSC_MERGED" in emit_c(module_of(text)).source
    other = f"{first}func.func @k3{last.replace('%a, %b : f32', '%b, %a : f32')}"
    assert "MSC_MERGED" not in emit_c(module_of(other)).source


def test_exported_kernels_keep_their_names(module_of: Parse) -> None:
    source = emit_c(module_of(rows_text(SIZES)), COptions(export_kernels=True)).source
    assert all(f"\nvoid k{k}(const float x" in source for k in range(len(SIZES)))


def test_a_stack_of_layers_takes_one_function(module_of: Parse) -> None:
    """The C compiler's work does not grow with the depth."""
    for count in (8, 16):
        source = emit_c(module_of(rows_text([(32, 24 + 8 * k) for k in range(count)]))).source
        assert len(calls_of(source)) == count
        assert source.count("= x[i][j] * w[j];") == 1
