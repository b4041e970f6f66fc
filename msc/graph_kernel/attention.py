"""Attention in a graph: two products of matrices and, between them, work on rows of scores with a softmax in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import Operation, OpResult, SSAValue

from msc.dialects.element_types import BYTES
from msc.dialects.ms.activations import SoftmaxOp
from msc.dialects.ms.elementwise import ElementwiseOp, SelectOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.shapes import Shape, known, shape_of
from msc.ir.typed import tensor_type


@dataclass(frozen=True)
class Attention:
    """`scores` of queries and keys, operations `between` in order, and the `product` with the values.

    Each row of the scores goes through all of them without a look at another row.
    """

    scores: MatrixProductOp
    between: tuple[Operation, ...]
    product: MatrixProductOp

    @property
    def shape(self) -> Shape:
        """The shape of the scores: batch axes, queries, keys."""
        return self.scores.result_shape()

    @property
    def row_bytes(self) -> int:
        """The bytes of one row of scores."""
        return self.shape[-1] * BYTES[self.product.dtype(0)]

    @property
    def score_bytes(self) -> int:
        """The bytes of all scores."""
        return prod(self.shape[:-1]) * self.row_bytes

    def inputs(self) -> Iterator[tuple[Operation, int]]:
        """The operands that come from outside."""
        inside = {op.results[0] for op in (self.scores, *self.between)}
        for op in (self.scores, *self.between, self.product):
            yield from ((op, i) for i, value in enumerate(op.operands) if value not in inside)


def attention(product: MatrixProductOp) -> Attention | None:
    """The attention whose last product this is, recognised by structure: scales, masks and their order are free."""
    if product.flag("transpose_a") or not all(known(product.shape(i)) for i in range(2)):
        return None
    spine = _spine(product.operands[0], product.shape(0), product)
    if spine is None or not any(isinstance(op, SoftmaxOp) for op in spine):
        return None
    scores = spine[0]
    assert isinstance(scores, MatrixProductOp)
    if scores.flag("transpose_a") or product.result_shape()[:-2] != scores.result_shape()[:-2]:
        return None
    return Attention(scores, tuple(spine[1:]), product)


def _spine(value: SSAValue, shape: Shape, user: Operation) -> Sequence[Operation] | None:
    """The operations from a product to a value of a shape that nothing else uses, or None."""
    if not isinstance(value, OpResult) or not value.has_one_use() or value.op.parent is not user.parent:
        return None
    if shape_of(tensor_type(value)) != shape:
        return None
    if isinstance(value.op, MatrixProductOp):
        return [value.op]
    if not _keeps_rows_apart(value.op, len(shape)):
        return None
    before = (_spine(operand, shape, value.op) for operand in value.op.operands)
    found = next((spine for spine in before if spine is not None), None)
    return None if found is None else [*found, value.op]


def _keeps_rows_apart(op: Operation, rank: int) -> bool:
    if isinstance(op, SoftmaxOp):
        return op.int_("axis") in (-1, rank - 1)
    return isinstance(op, ElementwiseOp | SelectOp)
