"""Functions under further names, which MindSpore's early releases have, or NumPy."""

from __future__ import annotations

from msc.ops import arithmetic, comparison, joining, reductions, unary
from msc.ops.operators import shapes

__all__ = [
    "divide", "floor_div", "multiply", "pack", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod",
    "reduce_sum", "remainder", "slice", "subtract", "tensor_add", "tensor_div", "tensor_exp", "tensor_floordiv",
    "tensor_ge", "tensor_gt", "tensor_le", "tensor_lt", "tensor_mod", "tensor_mul", "tensor_pow", "tensor_sub",
    "true_divide",
]  # fmt: skip

tensor_add = arithmetic.add
tensor_sub = arithmetic.sub
tensor_mul = arithmetic.mul
tensor_div = arithmetic.div
tensor_pow = arithmetic.pow
tensor_mod = arithmetic.floor_mod
tensor_floordiv = arithmetic.floor_divide
tensor_lt = comparison.less
tensor_le = comparison.less_equal
tensor_gt = comparison.greater
tensor_ge = comparison.greater_equal
tensor_exp = unary.exp
floor_div = arithmetic.floor_divide
subtract = arithmetic.sub
multiply = arithmetic.mul
divide = true_divide = arithmetic.div
remainder = arithmetic.floor_mod
reduce_sum = reductions.sum
reduce_mean = reductions.mean
reduce_max = reductions.amax
reduce_min = reductions.amin
reduce_prod = reductions.prod
pack = joining.stack
slice = shapes.slice_
