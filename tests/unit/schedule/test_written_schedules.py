"""A schedule that a person wrote is what runs: the loops of the C are those of the text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import msc
from msc.driver.compile import compile_model, generate_c
from msc.driver.options import CompileOptions

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "matmul" / "two_levels.gk.mir"

LOOPS = """\
n < 8
 local [768][96]
 k < 768
  n < 96 by 8
 m < 16
  n < 6
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
"""Of `for n tile 96` around `for k, n vector` and `for m tile 48, n tile 16, m tile 6`, which is around three nodes."""


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
