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
    monkeypatch.setattr("msc.codegen.c.merged_kernels._SAVED_OPERATIONS", 0)


def calls_of(source: str) -> list[str]:
    """The arguments of the calls of merged functions."""
    return re.findall(r"^    \w+_merged\((.*)\);$", source, re.MULTILINE)


@pytest.mark.parametrize("threads", [1, 2])
def test_they_compute_what_the_interpreter_computes(
    compiled: Compile, module_of: Parse, rng: np.random.Generator, threads: int
) -> None:
    module = module_of(rows_text(SIZES))
    source = emit_c(module, COptions(threads=threads)).source
    assert calls_of(source) == [f"x[0], w, y[0], {rows}, {n}" for rows, n in SIZES]
    assert source.count("static MSC_MERGED") == 1
    assert "/* Computes 4 kernels, which differ in n, n_2. */" in source
    arrays = [rng.standard_normal(shape).astype(np.float32) for rows, n in SIZES for shape in ((rows, n), (n,))]
    expected = evaluate_loops(module, arrays, {})
    for got, wanted in zip(compiled(module, threads=threads).results(*arrays), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


BODIES = (
    """
    loop.for %i = 0 to {d0} parallel "i" {{
      loop.for %j = 0 to {d1} "j" {{
        loop.for %k = 0 to {d2} "k" {{
          %a = loop.load %x[%i, %j, {d2} - 1 - %k] : {type}
          loop.store %a, %y[%i, {d1} - 1 - %j, %k] : f32, {type}
        }}
      }}
    }}""",
    """
    loop.for %j = 0 to {d1} "j" {{
      loop.for %i = 1 to {d0} parallel "i" {{
        loop.for %k = 0 to 16 step 8 unroll "k" {{
          %a = loop.load %x[%i, %j, %k] : {type}, vector<8xf32>
          %b = loop.load %x[%i - 1, %j, %k] : {type}, vector<8xf32>
          %c = arith.addf %a, %b : vector<8xf32>
          loop.prefetch %x[%i, %j, %k] ahead 64 : {type}
          loop.store %c, %y[%i, %j, %k] : vector<8xf32>, {type}
        }}
      }}
    }}""",
    """
    loop.for %i = 0 to {d0} parallel "i" {{
      loop.for %k = 0 to {d2} "k" {{
        loop.for %j = 0 to 4 unroll "j" {{
          %a = loop.load %x[%i, %j, %k] : {type}
          %b = loop.load %x[%i, %j + {d1} - 4, %k] : {type}
          %c = arith.mulf %a, %b : f32
          loop.store %c, %y[%i, %j, %k] : f32, {type}
        }}
      }}
    }}""",
    """
    loop.for %i = 0 to {d0} step 4 "i" {{
      loop.for %l = %i to min(%i + 4, {d0}) "l" {{
        loop.for %k = 0 to {d2} - 8 "k" {{
          %a = loop.load %x[%l, {d1} - 1, (%k floordiv 2) * 2] part 1 : {type}, vector<8xf32>
          %b = loop.load %x[%l, 0, %k] part 3 : {type}, vector<8xf32>
          %c = arith.subf %a, %b : vector<8xf32>
          loop.store %c, %y[%l, 0, %k] part 3 : vector<8xf32>, {type}
        }}
      }}
    }}""",
)
"""Kernels that read `x` and write some of `y`: from the end, vectors in unrolled loops, rows of a tile, parts."""

WRITTEN = (np.s_[:], np.s_[1:, :, :16], np.s_[:, :4], np.s_[:, :1, :-6])
"""Which elements each of them writes."""


def drawn_text(rng: np.random.Generator) -> tuple[str, list[tuple[int, ...]]]:
    """Repeated layers: a module of kernels of some bodies, each with several shapes, and the shapes."""
    kernels, arguments, calls, shapes = "", list[str](), "", list[tuple[int, ...]]()
    for body in BODIES:
        same = int(rng.integers(20, 40))
        for _ in range(FEWEST):
            size = int(rng.integers(18, 60))
            shape = [int(rng.integers(18, 40)), size, 8 * int(rng.integers(4, 9))]
            shape[int(rng.integers(2))] = same
            k, (d0, d1, d2) = len(shapes), shape
            type_ = f"memref<{d0}x{d1}x{d2}xf32>"
            kernels += f"\n  func.func @k{k}(%x: {type_}, %y: {type_}) attributes {{loop.outputs = 1 : i64}} {{"
            kernels += body.format(d0=d0, d1=d1, d2=d2, type=type_) + "\n    func.return\n  }"
            arguments += [f'%{v}{k}: {type_} {{ms.role = "{r}"}}' for v, r in (("x", "input"), ("y", "output"))]
            calls += f"\n    func.call @k{k}(%x{k}, %y{k}) : ({type_}, {type_}) -> ()"
            shapes.append(tuple(shape))
    main = f"\n  func.func @main({', '.join(arguments)}) {{{calls}\n    func.return\n  }}\n"
    return f"builtin.module @test {{{kernels}{main}}}", shapes


@pytest.mark.parametrize(("seed", "threads"), [(0, 1), (1, 2)])
def test_drawn_layers_share_a_function_and_keep_their_results(
    compiled: Compile, module_of: Parse, seed: int, threads: int
) -> None:
    """What is written has the bits of the kernels apart."""
    rng = np.random.default_rng(seed)
    text, shapes = drawn_text(rng)
    source = emit_c(module_of(text), COptions(threads=threads)).source
    assert source.count("static MSC_MERGED void") == len(BODIES)
    assert len(calls_of(source)) == len(shapes)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    merged = compiled(module_of(text), threads=threads).results(*arrays)
    expected = evaluate_loops(module_of(text), arrays, {})
    for k, (got, wanted) in enumerate(zip(merged, expected, strict=True)):
        written = WRITTEN[k // FEWEST]
        np.testing.assert_array_equal(got[written], wanted[written])


def test_few_kernels_stay_apart(module_of: Parse) -> None:
    assert "MSC_MERGED" not in emit_c(module_of(rows_text(SIZES[: FEWEST - 1]))).source


def test_little_c_stays_apart(monkeypatch: pytest.MonkeyPatch, module_of: Parse) -> None:
    monkeypatch.setattr("msc.codegen.c.merged_kernels._SAVED_OPERATIONS", 90)
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
    assert calls_of(emit_c(module_of(rows_text([*short, *SIZES]))).source) == [
        f"x[0], w, y[0], {r}, {n}" for r, n in SIZES
    ]


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
        assert source.count("= x[i * n + j] * w[j];") == 1
