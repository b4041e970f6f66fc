"""Ranges of integers that are computed of one another in several ways."""

from __future__ import annotations

from xdsl.dialects import scf

from msc.analysis.index_ranges import index_range
from msc.driver.passes.registry import new_context
from msc.ir.reading import parse_module

TEXT = """func.func @main(%n: tensor<i64>) {
  %m = tensor.extract %n[] : tensor<i64>
  %k = arith.index_cast %m : i64 to index
  %most = arith.constant 9 : index
  %step = arith.constant 2 : index
  %start = arith.maxsi %k, %step : index
  %least = arith.minsi %k, %most : index
  %end = arith.minsi %start, %least : index
  scf.for %i = %start to %end step %step {
    scf.yield
  }
  func.return
}
"""


def test_what_is_read_twice_on_the_way_is_computed_once() -> None:
    module = parse_module(new_context(), TEXT, "model.mir")
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    assert index_range(loop.body.block.args[0]) == (2, 8)
