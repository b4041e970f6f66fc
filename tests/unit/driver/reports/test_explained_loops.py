"""What is told of loops of kernels that became one function: whether threads share them."""

from __future__ import annotations

from pathlib import Path

import pytest

from msc.driver.compile import compile_model, generate_c
from msc.driver.options import CompileOptions
from msc.driver.reports.explanations import explain_model, explanation_text

ROWS = """func.func @main(%x: tensor<{count}x{size}xf32>) -> tensor<{count}x{size}xf32> {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant {count} : index
  %y = scf.for %i = %zero to %end step %one iter_args(%done = %x) -> (tensor<{count}x{size}xf32>) {{
    %n = arith.index_cast %i : index to i64
    %at = tensor.from_elements %n : tensor<i64>
    %row = ms.extract_slice %x, %at
    %e = ms.exp %row
    %next = ms.insert_slice %done, %at, %e
    scf.yield %next : tensor<{count}x{size}xf32>
  }}
  func.return %y : tensor<{count}x{size}xf32>
}}
"""


@pytest.mark.parametrize(("count", "size", "shared"), [(64, 4096, True), (4, 64, False)])
def test_loops_that_threads_may_share_say_whether_they_do(count: int, size: int, shared: bool, tmp_path: Path) -> None:
    model = tmp_path / "rows.mir"
    model.write_text(ROWS.format(count=count, size=size), "utf-8")
    options = CompileOptions(march="x86-64-v3", threads=2)
    (loop,) = [each for each in explain_model(str(model), options) if each.pattern == "loop"]
    (reason,) = loop.schedule_reasons
    assert reason.startswith("threads share" if shared else f"{count} iterations of")
    assert f"  because   {reason}" in explanation_text((loop,))
    assert reason in generate_c(compile_model(str(model), options)).source
    alone = explain_model(str(model), CompileOptions(march="x86-64-v3", threads=1))
    assert not [each for each in alone if each.pattern == "loop"]
