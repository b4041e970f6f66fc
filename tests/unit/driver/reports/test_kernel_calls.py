"""Which kernels a call of the entry function runs."""

from __future__ import annotations

from pathlib import Path

import onnx

from msc.driver.options import CompileOptions
from msc.driver.reports.benchmark import kernel_work, kernels_by_call
from msc.driver.reports.kernel_rates import KernelWork

LOOP = """
func.func @main(%x: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %empty = tensor.empty() : tensor<8x16xf32>
  %all = scf.for %i = %c0 to %c8 step %c1 iter_args(%y = %empty) -> (tensor<8x16xf32>) {
    %n = arith.index_cast %i : index to i64
    %t = tensor.from_elements %n : tensor<i64>
    %v = ms.extract_slice %x, %t
    %s = ms.softmax %v {axis = 0}
    %w = ms.reduce_sum %s {axis = [0]}
    %u = ms.add %s, %w
    %z = ms.insert_slice %y, %t, %u
    scf.yield %z : tensor<8x16xf32>
  }
  %r = ms.relu %x
  func.return %all, %r : tensor<8x16xf32>, tensor<8x16xf32>
}
"""


def options() -> CompileOptions:
    return CompileOptions(march="x86-64-v3", without=("fusion",))


def test_a_loop_that_is_a_function_does_the_work_of_its_kernels(tmp_path: Path) -> None:
    path = tmp_path / "loop.mir"
    path.write_text(LOOP)
    loop, alone = kernels_by_call(str(path), options())
    assert [k.runs for k in loop] == [8] * len(loop)
    assert len(loop) > 3
    assert len(alone) == 1
    first, second = kernel_work(str(path), options())
    assert first.flops == 8 * sum(k.flops for k in loop)
    assert first.runs == 1
    assert (second,) == tuple(alone)


def test_the_work_of_an_onnx_model(tmp_path: Path) -> None:
    path = tmp_path / "abs.onnx"
    text = '<ir_version: 8, opset_import: ["": 17]> m (float[3,4] x) => (float[3,4] y) { y = Abs(x) }'
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    assert kernel_work(str(path), options()) == (KernelWork(12, 96, 1),)
