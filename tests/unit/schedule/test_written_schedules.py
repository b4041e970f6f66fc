"""A schedule that a person wrote is what runs: the loops of the C are those of the text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import msc
from msc.driver.compile import compile_model, generate_c
from msc.driver.options import CompileOptions
from msc.support.diagnostics import MscError

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "matmul" / "two_levels.gk.mir"

LOOPS = """\
n < 24
 local [768][32]
 k < 768
  line < 2
  n < 32 by 8
 m < 16
  n < 2
   m < 8
    acc [6][16]
    m < 6
     n < 16 by 8
    k < 768
     m < 6
      n < 16 by 8
    m < 6
     n < 16 by 8
"""
"""Of `for n tile 32` around `for k, n vector` and `for m tile 48, n tile 16, m tile 6`, which is around three nodes."""


def loops_of(source: str) -> str:
    """The loops and local arrays of the kernel in C, a space deeper for each loop around."""
    found = list[str]()
    for line in source.partition("k0_matmul(")[2].partition("\n}\n")[0].splitlines():
        depth = " " * ((len(line) - len(line.lstrip())) // 4 - 1)
        if loop := re.match(r" +for \(int64_t ([a-z]+)\w* = 0; \w+ < (\d+); (?:\+\+\w+|\w+ \+= (\d+))\)", line):
            name, end, step = loop.groups()
            found.append(f"{depth}{name} < {end}{f' by {step}' if step else ''}")
        elif array := re.match(r" +_Alignas\(64\) float (\w+?)((?:\[\d+\])+);", line):
            found.append(f"{depth}{array[1]} {array[2]}")
    return "\n".join([*found, ""])


def test_the_loops_in_c_are_those_of_the_text() -> None:
    assert loops_of(generate_c(compile_model(str(SAMPLE), CompileOptions())).source) == LOOPS


def test_it_computes_the_product() -> None:
    x, w = np.random.default_rng(0).integers(-8, 9, (2, 768, 768)).astype(np.float32)
    np.testing.assert_array_equal(msc.compile(SAMPLE, march="native", use_cache=False)(x, w), x @ w, strict=True)


BLOCKS = """builtin.module @blocks attributes {{ms.target = #ms.target<"cpu", machine = "x86-64-v3", threads = 1>}} {{
  func.func @main(%x: tensor<22x96xf32>, %w: tensor<96x40xf32>) -> tensor<22x40xf32> {{
    %y = gk.kernel "matmul" (%a = %x : tensor<22x96xf32>, %b = %w : tensor<96x40xf32>) -> tensor<22x40xf32>
        attributes {{gk.schedule = #gk.schedule<[
      "axis n 40: S0.1 S1.1 S2.1",
      "axis m 22: S0.0 S1.0 S2.0",
      "axis k 96: S1.2",
      "place t0 in {outer}",
      "for m, n vector",
      "  run S0",
      "for k tile 40, n tile 16, m tile 6",
      "  place t0 in {inner}",
      "  for k, m unroll, n vector",
      "    run S1",
      "for m, n vector",
      "  run S2"]>}} {{
      %0 = ms.matmul %a, %b : (tensor<22x96xf32>, tensor<96x40xf32>) -> tensor<22x40xf32>
      gk.yield %0 : tensor<22x40xf32>
    }}
    func.return %y : tensor<22x40xf32>
  }}
}}
"""
"""Sums live outside, and a tile of them inside; k, m and n have tails."""


@pytest.mark.parametrize("outer", ["workspace", "out0"])
@pytest.mark.parametrize("inner", ["register", "stack", "register partial", "stack partial"])
def test_a_place_in_another_is_a_copy_that_goes_back(outer: str, inner: str, tmp_path: Path) -> None:
    model = tmp_path / "blocks.gk.mir"
    model.write_text(BLOCKS.format(outer=outer, inner=inner))
    x, w = (np.random.default_rng(0).integers(-8, 9, s).astype(np.float32) for s in ((22, 96), (96, 40)))
    np.testing.assert_array_equal(msc.compile(model, use_cache=False)(x, w), x @ w, strict=True)
    source = generate_c(compile_model(str(model), CompileOptions())).source
    assert "float acc[6][16];" in source or "float acc_2[6][16];" in source
    assert ("scratch" in source) == (outer == "workspace")
    zeros = 2 if "partial" in inner else 1
    assert source.count("(f32x8){0}") >= zeros


def test_the_same_place_twice_is_none(tmp_path: Path) -> None:
    model = tmp_path / "blocks.gk.mir"
    model.write_text(BLOCKS.format(outer="stack", inner="stack"))
    with pytest.raises(MscError, match="line 8: t0 is placed in stack already"):
        compile_model(str(model), CompileOptions())


SUMS = """builtin.module @sums attributes {{ms.target = #ms.target<"cpu", machine = "x86-64-v3", threads = 1>}} {{
  func.func @main(%x: tensor<{rows}x6xf32>{dims}) -> tensor<6xf32> {{
    %y = gk.kernel "sum" (%a = %x : tensor<{rows}x6xf32>) -> tensor<6xf32> attributes {{gk.schedule = #gk.schedule<[
      "axis n 6: S0.0 S1.1 S2.0",
      "axis k 40: S1.0",
      "{place}",
      "for n vector",
      "  run S0",
      "for k tile {tile}",
      "  {partial}",
      "  for k, n vector",
      "    run S1",
      "for n vector",
      "  run S2"]>}} {{
      %0 = ms.{operation} %a {{axis = 0}} : (tensor<{rows}x6xf32>) -> tensor<6xf32>
      gk.yield %0 : tensor<6xf32>
    }}
    func.return %y : tensor<6xf32>
  }}
}}
"""
"""Sums of 40 terms, which are partial in blocks of `k`."""
PARTIAL = {"rows": 40, "dims": "", "place": "place t0 in stack", "partial": "place t0 in register partial"}


@pytest.mark.parametrize("operation", ["reduce_sum", "reduce_prod", "reduce_max"])
@pytest.mark.parametrize("tile", [8, 12, 40])
def test_partial_sums_start_from_what_changes_none(operation: str, tile: int, tmp_path: Path) -> None:
    model = tmp_path / "sums.gk.mir"
    model.write_text(SUMS.format(tile=tile, operation=operation, **PARTIAL))
    x = np.random.default_rng(0).choice([1.0, -1.0, -2.0], (40, 6), p=[0.4, 0.4, 0.2]).astype(np.float32)
    expected = {"reduce_sum": np.sum, "reduce_prod": np.prod, "reduce_max": np.max}[operation](x, axis=0)
    np.testing.assert_array_equal(msc.compile(model, use_cache=False)(x), expected, strict=True)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"place": "place in0 in stack"}, "line 7: .* that places t0"),
        ({"partial": "place t0 in workspace partial"}, "line 7: partial sums .* not in workspace"),
        ({"partial": "place in0 in stack partial"}, "line 7: .* that places in0"),
        ({"partial": "place t0 in stack partially"}, "line 7: .* is not of the form 'place ARRAY, ARRAY in SCOPE"),
    ],
)
def test_partial_sums_are_of_what_is_placed_around(changed: dict[str, str], problem: str, tmp_path: Path) -> None:
    model = tmp_path / "sums.gk.mir"
    model.write_text(SUMS.format(tile=8, operation="reduce_sum", **PARTIAL | changed))
    with pytest.raises(MscError, match=problem):
        compile_model(str(model), CompileOptions())


@pytest.mark.parametrize(
    ("around", "problem"),
    [
        ("run S0", "line 5: no statement below is a sum into t0"),
        ("run S2", "line 11: S2 reads t0, of which there are partial sums here"),
    ],
)
def test_all_that_runs_in_a_block_of_partial_sums_adds_to_them(around: str, problem: str, tmp_path: Path) -> None:
    text = SUMS.format(tile=8, operation="reduce_sum", **PARTIAL)
    partial = f'"for n tile 6",\n      "  place t0 in register partial",\n      "  for n vector",\n      "    {around}"'
    model = tmp_path / "sums.gk.mir"
    model.write_text(text.replace(f'"for n vector",\n      "  {around}"', partial))
    with pytest.raises(MscError, match=problem):
        compile_model(str(model), CompileOptions())
