"""Affine expressions divide by 1 or more, however they are written."""

from __future__ import annotations

import pytest

from msc.driver.passes.registry import new_context
from msc.ir.reading import parse_module
from msc.ir.verification import verify_module
from msc.support.diagnostics import MscError

TEXT = """func.func @k(%x: memref<4xf32>) {
  loop.for %i = 0 to 4 {
    %j = loop.apply %i OPERATION DIVISOR
    %0 = loop.load %x[%i] : memref<4xf32>
    loop.store %0, %x[%i] : f32, memref<4xf32>
  }
  func.return
}
"""
GENERIC = """func.func @k(%x: memref<4xf32>, %i: index) {
  %0 = "loop.load"(%x, %i) <{index = affine_map<(d0) -> (d0 OPERATION DIVISOR)>}> : (memref<4xf32>, index) -> f32
  func.return
}
"""


@pytest.mark.parametrize("operation", ["mod", "floordiv", "ceildiv"])
@pytest.mark.parametrize(("text", "code"), [(TEXT, "MSC0100"), (GENERIC, "MSC0200")])
def test_divisors_are_positive(text: str, code: str, operation: str) -> None:
    written = text.replace("OPERATION", operation)
    verify_module(parse_module(new_context(), written.replace("DIVISOR", "2"), "a.loop.mir"))
    for divisor in ("0", "-2"):
        with pytest.raises(MscError, match=f"{code}.*a divisor is 1 or more, not {divisor}"):
            verify_module(parse_module(new_context(), written.replace("DIVISOR", divisor), "a.loop.mir"))
