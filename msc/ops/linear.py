"""Matrix products and the dense layer."""

from __future__ import annotations

from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor, tensor_method
from msc.ops.arithmetic import reflected
from msc.ops.operands import only_tensor, pair


@tensor_method("matmul", "__matmul__")
def matmul(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of matrices in the last two axes; the axes before broadcast, a vector is a row or a column."""
    a, b = pair("matmul", only_tensor(input, "matmul"), only_tensor(mat2, "matmul", "mat2"))
    if a.ndim == 0 or b.ndim == 0:
        raise ApiValueError("MSC0201", f"matmul: operands of shapes {a.shape} and {b.shape}: neither may have rank 0")
    left = apply("expand_dims", a, axis=(0,)) if a.ndim == 1 else a
    right = apply("expand_dims", b, axis=(1,)) if b.ndim == 1 else b
    product = apply("matmul" if left.ndim == right.ndim == 2 else "batch_matmul", left, right)
    axes = tuple(axis for axis, vector in ((-2, a.ndim == 1), (-1, b.ndim == 1)) if vector)
    return apply("squeeze", product, axis=axes) if axes else product


tensor_method("__rmatmul__")(reflected(matmul))


def dense(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Input `[..., in]` times weight `[out, in]` transposed, plus bias `[out]`."""
    if input.ndim == 1:
        return apply("squeeze", apply("dense", apply("expand_dims", input, axis=(0,)), weight, bias), axis=(0,))
    return apply("dense", input, weight, bias)
