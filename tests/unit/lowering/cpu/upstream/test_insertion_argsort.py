"""The loops that `convert-loop-to-scf` makes of `loop.call` order what the operation orders."""

import numpy as np
import pytest

from msc.driver.passes.registry import new_context
from msc.interp.loops import LoopProgram
from msc.ir.reading import parse_module
from msc.lowering.cpu.upstream.convert_loop_to_scf import ConvertLoopToScf

TEXT = """
func.func @k(%keys: memref<2x{size}xi32>, %places: memref<2x{count}xi64>, %scratch: memref<{scratch}xi32>, %n: index) {{
  loop.for %i = 0 to 2 {{
    loop.call "argsort" %keys, %places, %scratch[%i] of %n
      : memref<2x{size}xi32>, memref<2x{count}xi64>, memref<{scratch}xi32>
  }}
  func.return
}}
"""


@pytest.mark.parametrize(("size", "count", "valid"), [(40, 7, 40), (40, 40, 40), (40, 7, 3), (9, 1, 9), (9, 5, 6)])
def test_they_order_as_the_operation_does(size: int, count: int, valid: int) -> None:
    context = new_context()
    module = parse_module(context, TEXT.format(size=size, count=count, scratch=2 * count), "test.mir")
    keys = np.random.default_rng(size).integers(-4, 4, (2, size), np.int32)
    expected, found = np.full((2, 2, count), -1)
    LoopProgram(module).run("k", keys, expected, np.zeros(2 * count, np.int32), valid)
    ConvertLoopToScf().apply(context, module)
    LoopProgram(module).run("k", keys, found, np.zeros(2 * count, np.int32), valid)
    np.testing.assert_array_equal(found, expected)
    assert (expected >= 0).sum() == 2 * min(count, valid)
