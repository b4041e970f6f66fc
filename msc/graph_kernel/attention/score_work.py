"""The operations of a graph on scores, for each query, from products with keys to the products that end them.

An attention and its gradient are two parts of such operations. Both need the weights of all queries and keys, and the
operations that follow the attention are between the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Block, Operation, OpResult, SSAValue

from msc.dialects.element_types import is_float
from msc.dialects.ms.activations import SoftmaxOp
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.elementwise import ElementwiseOp, SelectOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.reductions import ReductionOp
from msc.dialects.ms.shapes import Shape, known, shape_of
from msc.ir.typed import tensor_type

Places: TypeAlias = Mapping[Operation, float]
"""Where the operations of a block stand."""


@dataclass(frozen=True)
class ScoreWork:
    """`ops`, whose results are scores `[batch..., queries, keys]` or have one number a query, and the `ends`.

    `ops` stand in the order of the graph; products among them make scores. The ends are products, too: each reads one
    of the results, and sums over its keys or its queries.
    """

    shape: Shape
    ops: tuple[MsOp, ...]
    ends: tuple[MatrixProductOp, ...]

    def outside(self) -> Iterator[tuple[MsOp, int]]:
        """The operands that are not results of the work."""
        inside = {op.results[0] for op in self.ops}
        for op in (*self.ops, *self.ends):
            yield from ((op, i) for i, value in enumerate(op.operands) if value not in inside)

    def place(self, end: MatrixProductOp) -> int:
        """Which operand of an end is scores."""
        inside = {op.results[0] for op in self.ops}
        return next(i for i, value in enumerate(end.operands) if value in inside)

    def sums_over_queries(self, end: MatrixProductOp) -> bool:
        """Whether an end sums over queries, else over keys."""
        return end.flag("transpose_a") if self.place(end) == 0 else not end.flag("transpose_b")

    def is_of_queries(self, op: MsOp, number: int) -> bool:
        """Whether an operand has, or may have, something for each query: all but keys, and what ends sum with them."""
        if not isinstance(op, MatrixProductOp):
            return True
        return self.sums_over_queries(op) if op in self.ends else number == 0

    def has_columns(self, product: MatrixProductOp, number: int) -> bool:
        """Whether an operand of a product that is no scores has its queries or keys along columns."""
        flag = product.flag("transpose_a" if number == 0 else "transpose_b")
        return flag ^ (number == 1) ^ (product in self.ends)

    def part(self, ends: Sequence[MatrixProductOp]) -> ScoreWork:
        """What some of the ends need."""
        needed: set[SSAValue] = {value for end in ends for value in end.operands}
        for op in reversed(self.ops):
            if op.results[0] in needed:
                needed.update(op.operands)
        return ScoreWork(self.shape, tuple(op for op in self.ops if op.results[0] in needed), tuple(ends))

    def parts(self, places: Places) -> Iterator[ScoreWork]:
        """The work in parts, each with all ends whose operands are there before the first of its ends."""
        left = sorted(self.ends, key=lambda end: places[end])
        while left:
            chosen = [end for end in left if self.part([end]).is_ready(places[left[0]], places)]
            yield self.part(chosen)
            left = [end for end in left if end not in chosen]

    def is_ready(self, place: float, places: Places) -> bool:
        """Whether all that it reads is there at a place."""
        owners = (op.operands[i].owner for op, i in self.outside())
        return all(isinstance(owner, Block) or places.get(owner, -1) < place for owner in owners)


def score_work(softmax: SoftmaxOp, places: Places) -> ScoreWork | None:
    """The work on the scores that a softmax normalises; None where something else reads what it computes.

    Something else is a reduction over queries or a result of the function, say.
    """
    shape = softmax.result_shape()
    if not known(shape) or len(shape) < 2 or not is_float(softmax.dtype(0)):
        return None
    scores = _product_behind(softmax.operands[0], shape)
    found = None if scores is None else _with_readers(frozenset({scores}), shape)
    while found is not None and (more := _with_another_product(found, shape)) is not None:
        found = more
    if found is None:
        return None
    ends = {use.operation for op in found for use in op.results[0].uses} - found
    products = [op for op in ends if isinstance(op, MatrixProductOp)]
    ops = [op for op in found if isinstance(op, MsOp)]
    return ScoreWork(shape, tuple(sorted(ops, key=lambda op: places[op])), tuple(products))


def _with_another_product(found: frozenset[Operation], shape: Shape) -> frozenset[Operation] | None:
    """The work with another product of scores, which one of the operations needs, and all that reads it."""
    inside = {op.results[0] for op in found}
    for op in found:
        if isinstance(op, MatrixProductOp):
            continue
        for value in op.operands:
            product = None if value in inside else _product_behind(value, shape)
            more = None if product is None else _with_readers(found | {product}, shape)
            if more is not None:
                return more
    return None


def _with_readers(found: frozenset[Operation], shape: Shape) -> frozenset[Operation] | None:
    """The work with all that reads its results, up to products; None where an operation does not keep rows apart."""
    inside, left = set(found), list(found)
    while left:
        value = left.pop().results[0]
        for use in value.uses:
            user = use.operation
            if user in inside or _is_end(user, inside, shape):
                continue
            if user.parent is not value.owner.parent or not _keeps_rows_apart(user, shape):
                return None
            inside.add(user)
            left.append(user)
    return frozenset(inside)


def _is_end(op: Operation, inside: set[Operation], shape: Shape) -> bool:
    """Whether an operation is a product of scores with something else, a matrix for each matrix of scores."""
    if not isinstance(op, MatrixProductOp) or op.result_shape()[:-2] != shape[:-2]:
        return False
    scores = [i for i, value in enumerate(op.operands) if value.owner in inside]
    return len(scores) == 1 and op.shape(scores[0]) == shape


def _product_behind(value: SSAValue, shape: Shape) -> MatrixProductOp | None:
    """The product that makes a value of the shape of the scores, with any work on its elements behind."""
    seen, left = {value}, [value]
    while left:
        value = left.pop()
        if not isinstance(value, OpResult) or shape_of(tensor_type(value)) != shape:
            continue
        if isinstance(value.op, MatrixProductOp):
            return value.op
        if isinstance(value.op, ElementwiseOp | SelectOp | SoftmaxOp):
            left.extend(set(value.op.operands) - seen)
            seen.update(value.op.operands)
    return None


def _keeps_rows_apart(op: Operation, shape: Shape) -> bool:
    if not isinstance(op, MsOp) or len(op.results) != 1 or op.result_shape() not in (shape, (*shape[:-1], 1)):
        return False
    match op:
        case SoftmaxOp():
            return op.int_("axis") in (-1, len(shape) - 1)
        case ReductionOp():
            return op.shape(0) == shape and op.ints("axis") in ((-1,), (len(shape) - 1,)) and op.flag("keep_dims")
        case _:
            return isinstance(op, ElementwiseOp | SelectOp)
