"""Attention in a graph: two matrix products, and between them operations on rows of scores that include a softmax."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import Operation, OpResult, SSAValue

from msc.dialects.element_types import BYTES, is_float
from msc.dialects.ms.activations import SoftmaxOp
from msc.dialects.ms.arithmetic import DivOp, MulOp
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.constants import splat_of
from msc.dialects.ms.elementwise import CastOp, ElementwiseOp, SelectOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.shapes import Shape, known, shape_of
from msc.dialects.ms.unary import IsNanOp
from msc.ir.typed import tensor_type


@dataclass(frozen=True)
class Attention:
    """`scores` of queries and keys, work on them `before` the `softmax`, and the `product` with the values.

    Behind the softmax stands what may change places with its division by a sum: `weighing` of keys, and `after`, what
    is the same for all keys of a query and may change places with the product too. In front of these may be a `guard`:
    `is_nan` and a choice by it, which make the weights of a query that sees no key zeros.
    """

    scores: MatrixProductOp
    before: tuple[Operation, ...]
    softmax: SoftmaxOp
    guard: tuple[Operation, ...]
    weighing: tuple[Operation, ...]
    after: tuple[Operation, ...]
    product: MatrixProductOp

    @property
    def shape(self) -> Shape:
        """The shape of the scores: batch axes, queries, keys."""
        return self.scores.result_shape()

    @property
    def size(self) -> int:
        """The elements of a value."""
        return self.product.result_shape()[-1]

    @property
    def score_bytes(self) -> int:
        """The bytes of all scores."""
        return prod(self.shape) * BYTES[self.product.dtype(0)]

    @property
    def ops(self) -> tuple[Operation, ...]:
        """All operations but the product: what nothing else uses; users stand behind what they use."""
        return (self.scores, *self.before, self.softmax, *self.guard, *self.weighing, *self.after)

    def inputs(self) -> Iterator[tuple[Operation, int]]:
        """The operands that come from outside."""
        inside = {op.results[0] for op in self.ops}
        for op in (self.scores, *self.before, *self.weighing, *self.after, self.product):
            yield from ((op, i) for i, value in enumerate(op.operands) if value not in inside)


def attention(product: MatrixProductOp) -> Attention | None:
    """The attention whose last product this is, recognised by structure: scales, masks and their order are free."""
    if product.flag("transpose_a") or not all(known(product.shape(i)) for i in range(2)):
        return None
    spine = _spine(product.operands[0], product.shape(0), product)
    softmax = next((i for i, op in enumerate(spine or ()) if isinstance(op, SoftmaxOp)), None)
    if spine is None or softmax is None or not all(is_float(op.dtype(0)) for op in (product, spine[softmax])):
        return None
    scores, normal, behind = spine[0], spine[softmax], spine[softmax + 1 :]
    assert isinstance(scores, MatrixProductOp)
    assert isinstance(normal, SoftmaxOp)
    if scores.flag("transpose_a") or product.result_shape()[:-2] != scores.result_shape()[:-2]:
        return None
    inner: set[SSAValue] = {op.results[0] for op in spine}
    guard = _guard(behind[0]) if behind else None
    behind = behind[1:] if guard else behind
    if not all(_is_linear(op, inner) for op in behind):
        return None
    after = tuple(op for op in behind if not isinstance(op, CastOp) and _is_of_queries(op, inner))
    weighing = tuple(op for op in behind if op not in after)
    if any(isinstance(op, SelectOp) for op in weighing):
        return None
    return Attention(scores, tuple(spine[1:softmax]), normal, guard or (), weighing, after, product)


def _spine(value: SSAValue, shape: Shape, user: Operation) -> list[MsOp] | None:
    """The operations from a product to a value of a shape that nothing else uses, or None."""
    if not isinstance(value, OpResult) or not _is_for(value, user) or value.op.parent is not user.parent:
        return None
    if shape_of(tensor_type(value)) != shape:
        return None
    if isinstance(value.op, MatrixProductOp):
        return [value.op]
    if not isinstance(value.op, MsOp) or not _keeps_rows_apart(value.op, len(shape)):
        return None
    before = (_spine(operand, shape, value.op) for operand in value.op.operands)
    found = next((spine for spine in before if spine is not None), None)
    return None if found is None else [*found, value.op]


def _is_for(value: SSAValue, user: Operation) -> bool:
    """Whether nothing but an operation, or the guard that it is, uses a value."""
    guard = _guard(user)
    if guard is not None and value is user.operands[2]:
        return {use.operation for use in value.uses} == {*guard} and len(list(value.uses)) == 2
    return value.has_one_use()


def _guard(op: Operation) -> tuple[Operation, ...] | None:
    """The operations of `is_nan(x) ? 0 : x` that end with this one, if they are that."""
    test = op.operands[0].owner if isinstance(op, SelectOp) else None
    if not isinstance(test, IsNanOp) or not test.result.has_one_use() or test.operands[0] is not op.operands[2]:
        return None
    return (test, op) if splat_of(op.operands[1]) == 0 else None


def _keeps_rows_apart(op: Operation, rank: int) -> bool:
    if isinstance(op, SoftmaxOp):
        return op.int_("axis") in (-1, rank - 1)
    return isinstance(op, ElementwiseOp | SelectOp)


def _is_linear(op: MsOp, inner: set[SSAValue]) -> bool:
    """Whether multiples of the weights give multiples: products, quotients, a choice between them and zero."""
    match op:
        case MulOp():
            return True
        case DivOp():
            return op.operands[0] in inner
        case CastOp():
            return is_float(op.dtype(0)) and is_float(op.result_dtype())
        case SelectOp():
            return any(splat_of(choice) == 0 for choice in op.operands[1:]) and op.operands[0] not in inner
        case _:
            return False


def _is_of_queries(op: Operation, inner: set[SSAValue]) -> bool:
    """Whether the other operands are the same for all keys."""
    shapes: Sequence[Shape] = [shape_of(tensor_type(v)) for v in op.operands if v not in inner]
    return all(not shape or shape[-1] == 1 for shape in shapes)
