"""Small graphs whose loops access memory in every way: the seeds of edits."""

from __future__ import annotations

GRAPHS = (
    """builtin.module @dense {
  func.func @main(%x: tensor<3x6xf32>, %w: tensor<6x5xf32>) -> tensor<3x5xf32> {
    %0 = ms.matmul %x, %w
    %1 = ms.relu %0
    func.return %1 : tensor<3x5xf32>
  }
}
""",
    """builtin.module @conv {
  func.func @main(%x: tensor<1x2x6x6xf32>, %w: tensor<3x2x3x3xf32>) -> tensor<1x3x6x6xf32> {
    %0 = ms.conv2d %x, %w {pad_mode = "same"}
    %1 = ms.softmax %0
    func.return %1 : tensor<1x3x6x6xf32>
  }
}
""",
    """builtin.module @gather {
  func.func @main(%x: tensor<7x4xf32>, %i: tensor<3xi64>) -> tensor<3x4xf32> {
    %0 = ms.gather %x, %i {axis = 0}
    %1 = ms.neg %0
    func.return %1 : tensor<3x4xf32>
  }
}
""",
    """builtin.module @scan {
  func.func @main(%x: tensor<5x4xf32>, %h: tensor<4xf32>) -> (tensor<4xf32>, tensor<5x4xf32>) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %five = arith.constant 5 : index
    %empty = tensor.empty() : tensor<5x4xf32>
    %r, %s = scf.for %i = %zero to %five step %one iter_args(%a = %h, %c = %empty) -> (tensor<4xf32>, tensor<5x4xf32>) {
      %n = arith.index_cast %i : index to i64
      %t = tensor.from_elements %n : tensor<i64>
      %e = ms.extract_slice %x, %t
      %b = ms.add %a, %e
      %d = ms.tanh %b
      %f = ms.insert_slice %c, %t, %d
      scf.yield %d, %f : tensor<4xf32>, tensor<5x4xf32>
    }
    func.return %r, %s : tensor<4xf32>, tensor<5x4xf32>
  }
}
""",
    """builtin.module @branch {
  func.func @main(%x: tensor<4xf32>, %c: tensor<i1>, %n: tensor<i64>, %t: tensor<6x4xf32>) -> tensor<4xf32> {
    %b = tensor.extract %c[] : tensor<i1>
    %m = tensor.extract %n[] : tensor<i64>
    %k = arith.index_cast %m : i64 to index
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %six = arith.constant 6 : index
    %least = arith.maxsi %k, %zero : index
    %end = arith.minsi %least, %six : index
    %r = scf.if %b -> (tensor<4xf32>) {
      %a = ms.exp %x
      scf.yield %a : tensor<4xf32>
    } else {
      %l = scf.for %i = %zero to %end step %one iter_args(%a = %x) -> (tensor<4xf32>) {
        %j = arith.index_cast %i : index to i64
        %u = tensor.from_elements %j : tensor<i64>
        %e = ms.extract_slice %t, %u
        %s = ms.add %a, %e
        scf.yield %s : tensor<4xf32>
      }
      scf.yield %l : tensor<4xf32>
    }
    func.return %r : tensor<4xf32>
  }
}
""",
    """builtin.module @until {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %limit = arith.constant 5.0 : f32
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %most = arith.constant 9 : i64
    %r, %n = scf.while (%a = %x, %k = %zero) : (tensor<4xf32>, i64) -> (tensor<4xf32>, i64) {
      %s = ms.reduce_max %a
      %t = tensor.extract %s[] : tensor<f32>
      %c = arith.cmpf olt, %t, %limit : f32
      %d = arith.cmpi slt, %k, %most : i64
      %e = arith.andi %c, %d : i1
      scf.condition(%e) %a, %k : tensor<4xf32>, i64
    } do {
    ^bb0(%v: tensor<4xf32>, %m: i64):
      %e = ms.exp %v
      %p = arith.addi %m, %one : i64
      scf.yield %e, %p : tensor<4xf32>, i64
    }
    func.return %r : tensor<4xf32>
  }
}
""",
)
"""Without weights, so that a text is all there is."""
