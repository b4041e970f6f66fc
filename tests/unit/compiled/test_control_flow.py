"""Loops, branches and entries of buffers as C, under the sanitizers, beside what the interpreter says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msc.runtime.build import BuildOptions
from tests.unit.compiled.processes import process
from tests.unit.compiled.programs import Array, generated, interpreted, run_checked

CONSTANTS = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 5, 6))
NUMBER = "%k = arith.index_cast %i : index to i64\n%t = tensor.from_elements %k : tensor<i64>"
BACKWARDS = """
%r = arith.subi %c5, %i : index
%m = arith.index_cast %r : index to i64
%u = tensor.from_elements %m : tensor<i64>"""

SCAN = f"""
func.func @main(%x: tensor<6x2x37xf32>, %s: tensor<2x37xf32>, %w: tensor<37x37xf32>)
    -> (tensor<6x2x37xf32>, tensor<2x37xf32>) {{
  {CONSTANTS}
  %e = tensor.empty() : tensor<6x2x37xf32>
  %last, %y = scf.for %i = %c0 to %c6 step %c1 iter_args(%h = %s, %all = %e)
      -> (tensor<2x37xf32>, tensor<6x2x37xf32>) {{
    {NUMBER}
    {BACKWARDS}
    %v = ms.extract_slice %x, %u
    %p = ms.matmul %h, %w
    %q = ms.add %p, %v
    %g = ms.tanh %q
    %z = ms.insert_slice %all, %t, %g
    scf.yield %g, %z : tensor<2x37xf32>, tensor<6x2x37xf32>
  }}
  func.return %y, %last : tensor<6x2x37xf32>, tensor<2x37xf32>
}}
"""
"""Read backwards, collected forwards."""

READ_AND_WRITTEN = f"""
func.func @main(%x: tensor<6x5xf32>, %n: tensor<i64>) -> (tensor<6x5xf32>, tensor<6x5xf32>, tensor<5xf32>) {{
  {CONSTANTS}
  %a = ms.neg %x
  %y, %old = scf.for %i = %c0 to %c6 step %c1 iter_args(%all = %a, %before = %x)
      -> (tensor<6x5xf32>, tensor<6x5xf32>) {{
    {NUMBER}
    {BACKWARDS}
    %v = ms.extract_slice %all, %u
    %d = ms.insert_slice %all, %t, %v
    %q = ms.add %all, %d
    scf.yield %q, %all : tensor<6x5xf32>, tensor<6x5xf32>
  }}
  %w = ms.extract_slice %y, %n
  func.return %y, %old, %w : tensor<6x5xf32>, tensor<6x5xf32>, tensor<5xf32>
}}
"""
"""A carried tensor of which an entry goes into another one, while the old one is read, carried on and returned."""

NESTED = f"""
func.func @main(%x: tensor<4x9xf32>, %f: tensor<i1>, %n: tensor<i64>) -> (tensor<4x9xf32>, tensor<4x9xf32>) {{
  {CONSTANTS}
  %go = tensor.extract %f[] : tensor<i1>
  %l = tensor.extract %n[] : tensor<i64>
  %end = arith.index_cast %l : i64 to index
  %y, %z = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %x, %b = %x) -> (tensor<4x9xf32>, tensor<4x9xf32>) {{
    %c = scf.if %go -> (tensor<4x9xf32>) {{
      %p = ms.tanh %a
      scf.yield %p : tensor<4x9xf32>
    }} else {{
      scf.yield %b : tensor<4x9xf32>
    }}
    %d, %j = scf.while (%v = %c, %k = %c0) : (tensor<4x9xf32>, index) -> (tensor<4x9xf32>, index) {{
      %more = arith.cmpi slt, %k, %end : index
      scf.condition(%more) %v, %k : tensor<4x9xf32>, index
    }} do {{
    ^bb0(%v: tensor<4x9xf32>, %k: index):
      %next = arith.addi %k, %c1 : index
      %h = ms.mul %v, %b
      %g = ms.sin %h
      scf.yield %g, %next : tensor<4x9xf32>, index
    }}
    scf.yield %b, %d : tensor<4x9xf32>, tensor<4x9xf32>
  }}
  func.return %y, %z : tensor<4x9xf32>, tensor<4x9xf32>
}}
"""
"""A branch that passes on what is outside, a loop while a count is not reached, and values that trade places."""


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def check(text: str, folder: Path, inputs: list[Array], march: str) -> None:
    for got, wanted in zip(run_checked(text, folder, inputs, march), interpreted(text, inputs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("march", ["native", "generic"])
def test_a_scan(tmp_path: Path, march: str) -> None:
    check(SCAN, tmp_path, [numbers(6, 2, 37), numbers(2, 37), numbers(37, 37)], march)


@pytest.mark.parametrize("watched", ["address,undefined", "thread"])
def test_a_loop_that_carries_a_state_and_whose_product_threads_share(tmp_path: Path, watched: str) -> None:
    text = SCAN.replace("37", "512")
    program, parameters = generated(text, tmp_path, threads=2)
    (kernel,) = program.kernels
    assert f"msc_share({kernel}_part_of" in program.source
    inputs = [numbers(6, 2, 512), numbers(2, 512), numbers(512, 512) / 16]
    options = BuildOptions(flags=("-g", "-O1", f"-fsanitize={watched}"))
    for got, wanted in zip(
        process(program, parameters, tmp_path, options).outputs(inputs), interpreted(text, inputs), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("place", [0, 5, -6])
def test_entries_of_what_is_still_read(tmp_path: Path, place: int) -> None:
    check(READ_AND_WRITTEN, tmp_path, [numbers(6, 5), np.array(place)], "native")


@pytest.mark.parametrize(("flag", "count"), [(True, 3), (False, 0), (False, 2)])
def test_nested(tmp_path: Path, flag: bool, count: int) -> None:
    check(NESTED, tmp_path, [numbers(4, 9), np.array(flag), np.array(count)], "native")


@pytest.mark.parametrize("place", [6, 1 << 40, -7, -(1 << 62)])
def test_a_place_outside_is_cut_to_the_axis(tmp_path: Path, place: int) -> None:
    """Where the interpreter refuses."""
    head = "func.func @main(%x: tensor<6x5xf32>, %n: tensor<i64>) -> tensor<5xf32>"
    text = f"{head} {{\n%y = ms.extract_slice %x, %n\nfunc.return %y : tensor<5xf32>\n}}"
    x = numbers(6, 5)
    (got,) = run_checked(text, tmp_path, [x, np.array(place)])
    np.testing.assert_array_equal(got, x[5 if place > 0 else 0])
