"""How often loops run what stands in them, and what that does to the work of a model."""

from msc.analysis.flops import flops
from msc.analysis.repetition import times_run
from msc.driver.passes.registry import new_context
from msc.ir.reading import parse_module

TEXT = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i64>, %f: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c9 = arith.constant 9 : index
  %k = tensor.extract %n[] : tensor<i64>
  %end = arith.index_cast %k : i64 to index
  %go = tensor.extract %f[] : tensor<i1>
  %a = ms.neg %x
  %y = scf.for %i = %c0 to %c9 step %c2 iter_args(%h = %a) -> (tensor<4xf32>) {
    %b = ms.exp %h
    %z = scf.for %j = %c3 to %c9 step %c3 iter_args(%g = %b) -> (tensor<4xf32>) {
      %c = ms.sin %g
      scf.yield %c : tensor<4xf32>
    }
    %s = scf.if %go -> (tensor<4xf32>) {
      %d = ms.cos %z
      scf.yield %d : tensor<4xf32>
    } else {
      scf.yield %z : tensor<4xf32>
    }
    scf.yield %s : tensor<4xf32>
  }
  %w = scf.for %i = %c0 to %end step %c2 iter_args(%h = %a) -> (tensor<4xf32>) {
    %e = ms.tanh %h
    scf.yield %e : tensor<4xf32>
  }
  func.return %y, %w : tensor<4xf32>, tensor<4xf32>
}
"""


def test_runs_and_work_of_nested_loops() -> None:
    module = parse_module(new_context(), TEXT, "test.mir")
    runs = {op.name: times_run(op) for op in module.walk() if op.name.startswith("ms.")}
    assert runs == {"ms.neg": 1, "ms.exp": 5, "ms.sin": 10, "ms.cos": 5, "ms.tanh": None}
    assert flops(module) == 4 * (1 + 5 + 10 + 5 + 1)
