"""Matrix products: two-dimensional, batched, and the dense layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def

from msc.dialects.ms.accumulation import AccumulatingOp
from msc.dialects.ms.base import TensorOp
from msc.dialects.ms.properties import flag_property
from msc.dialects.ms.shapes import Shape, broadcast_shapes, same_size, shape_text, tensor_type
from msc.ir.errors import ShapeConflict
from msc.poly.compute import Statement, affine_map, broadcast_map, dims
from msc.poly.scalar import Read, apply


class MatrixProductOp(AccumulatingOp):
    """Base: the last two axes are matrices, in either order; axes before them broadcast. Both of one number type."""

    WIDENS_INTEGERS: ClassVar[bool] = True
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    transpose_a = flag_property(False)
    transpose_b = flag_property(False)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        dtype = self.expect_one_dtype("a number")
        (m, inner), (inner_b, n) = self._matrix(0, "transpose_a"), self._matrix(1, "transpose_b")
        if not same_size(inner, inner_b):
            raise ShapeConflict(
                f"{self.name}: {self._operand_text(0, 'transpose_a')} times {self._operand_text(1, 'transpose_b')}: "
                f"inner sizes {inner} and {inner_b} differ"
            )
        return (tensor_type(self.result_type_for(dtype), (*self._batch(), m, n)),)

    def _matrix(self, index: int, transposed: str) -> tuple[int, int]:
        """Rows and columns of an operand after its transposition."""
        rows, columns = self.shape(index)[-2:]
        return (columns, rows) if self.flag(transposed) else (rows, columns)

    def _operand_text(self, index: int, transposed: str) -> str:
        return shape_text(self.shape(index)) + (" (transposed)" if self.flag(transposed) else "")

    def _batch(self) -> Shape:
        return broadcast_shapes(self.name, self.shape(0)[:-2], self.shape(1)[:-2])

    def compute(self) -> Sequence[Statement]:
        batch = self.result_shape()[:-2]
        (m, inner), (_, n) = self._matrix(0, "transpose_a"), self._matrix(1, "transpose_b")
        d = dims(len(batch) + 3)
        row, column, k = d[-3:]
        body = apply(
            "mul",
            self._read(0, batch, (k, row) if self.flag("transpose_a") else (row, k)),
            self._read(1, batch, (column, k) if self.flag("transpose_b") else (k, column)),
        )
        names = (*(f"b{i}" for i in range(len(batch))), "m", "n", "k")
        return (Statement((*batch, m, n, inner), names, affine_map(len(d), d[:-1]), self.term(body), "add"),)

    def _read(self, index: int, batch: Shape, matrix: tuple[AffineExpr, AffineExpr]) -> Read:
        batch_index = broadcast_map(self.shape(index)[:-2], batch).results
        return Read(index, affine_map(len(batch) + 3, (*batch_index, *matrix)), self.dtype(index))


@irdl_op_definition
class MatmulOp(MatrixProductOp):
    """Product of two matrices, `[m, k]` times `[k, n]`; `transpose_a`, `transpose_b` take them the other way round.

    MindSpore MatMul, ONNX MatMul and Gemm of rank 2.
    """

    name = "ms.matmul"
    EXAMPLE: ClassVar[str] = "4x8xT 8x2xT"

    def infer(self) -> Sequence[TensorType[Attribute]]:
        for index in (0, 1):
            if len(self.shape(index)) > 2:
                text = f"operand {index} is {shape_text(self.shape(index))}, of rank {len(self.shape(index))}"
                advice = "ms.batch_matmul multiplies the matrices in the last two axes"
                raise ShapeConflict(f"{self.name}: {text}; the rank must be 2", help=advice)
            self.expect_rank(index, 2)
        return super().infer()


@irdl_op_definition
class BatchMatmulOp(MatrixProductOp):
    """Products of the matrices in the last two axes; the axes before broadcast as in NumPy.

    MindSpore BatchMatMul, ONNX MatMul (ranks of 2 and more).
    """

    name = "ms.batch_matmul"
    EXAMPLE: ClassVar[str] = "2x4x8xT 2x8x3xT"

    def infer(self) -> Sequence[TensorType[Attribute]]:
        for index in range(2):
            if len(self.shape(index)) < 2:
                raise ShapeConflict(
                    f"ms.batch_matmul: operand {index} is {shape_text(self.shape(index))}; it must be of rank 2 or more"
                )
        return super().infer()


@irdl_op_definition
class DenseOp(TensorOp):
    """A fully connected layer: x `[..., in]` times weight `[out, in]` transposed, plus bias `[out]` if given.

    All of one number type. Composite. MindSpore Dense, ONNX Gemm with transB=1.
    """

    name = "ms.dense"
    EXAMPLE: ClassVar[str] = "4x8xT 10x8xT 10xT"
    x = operand_def(TensorType)
    weight = operand_def(TensorType)
    bias = opt_operand_def(TensorType)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        dtype = self.expect_one_dtype("a number")
        x, (out, inputs) = self.shape(0), self.expect_rank(1, 2)
        if len(x) < 2 or not same_size(x[-1], inputs):
            raise ShapeConflict(
                f"ms.dense: x of {shape_text(x)} does not fit the weight of {shape_text(self.shape(1))}: "
                f"x must be of rank 2 or more and end with {inputs}"
            )
        if self.bias is not None:
            self._check_bias(out)
        return (tensor_type(dtype, (*x[:-1], out)),)

    def _check_bias(self, out: int) -> None:
        (size,) = self.expect_rank(2, 1)
        if not same_size(size, out):
            raise ShapeConflict(
                f"ms.dense: the bias is {shape_text(self.shape(2))}, the weight {shape_text(self.shape(1))}: "
                f"the bias must have {out} elements"
            )
