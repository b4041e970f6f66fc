"""Orders in loops of the graph, which stay calls of the functions that sort."""

from pathlib import Path

import numpy as np
import pytest

import msc
from msc.driver.compile import compile_model, stage_text
from msc.driver.options import CompileOptions

LOOP = """
func.func @main(%x: tensor<5x40xf32> {ms.name = "x"}) -> tensor<5x7xi64> {
  %first = arith.constant 0 : index
  %end = arith.constant 5 : index
  %step = arith.constant 1 : index
  %empty = tensor.empty() : tensor<5x7xi64>
  %y = scf.for %i = %first to %end step %step iter_args(%t = %empty) -> (tensor<5x7xi64>) {
    %n = arith.index_cast %i : index to i64
    %k = tensor.from_elements %n : tensor<i64>
    %row = ms.extract_slice %x, %k
    %scaled = ms.add %row, %row
    %places = ms.argsort %scaled {count = 7, descending = true}
    %u = ms.insert_slice %t, %k, %places
    scf.yield %u : tensor<5x7xi64>
  }
  func.return %y : tensor<5x7xi64>
}
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_in_a_loop(tmp_path: Path, threads: int) -> None:
    path = tmp_path / "model.mir"
    path.write_text(LOOP)
    x = np.random.default_rng(0).integers(0, 9, (5, 40)).astype(np.float32)
    expected = np.argsort(-x, axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(msc.compile(path, threads=threads)(x), expected)


ORDER = """
func.func @main(%x: tensor<5x40xi32>) -> tensor<5x40xi64> {
  %y = ms.argsort %x
  func.return %y : tensor<5x40xi64>
}
"""


def test_results_are_written_where_they_are_wanted(tmp_path: Path) -> None:
    path = tmp_path / "model.mir"
    path.write_text(ORDER)
    assert "memref.copy" not in stage_text(compile_model(str(path), CompileOptions()))
