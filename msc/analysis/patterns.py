"""The area pattern of an operation, derived from its compute definition: what fusion may do with it.

MindSpore's order RESHAPE < ELEMWISE < BROADCAST < REDUCE < OPAQUE, with classes of their own for what the scheduler
treats differently: moved elements, sliding windows and contractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from xdsl.ir import Operation
from xdsl.ir.affine import AffineDimExpr, AffineMap

from msc.dialects.ms.base import BasicOp, ViewOp
from msc.dialects.ms.movement import SliceOp
from msc.dialects.ms.shapes import Shape, known
from msc.poly.compute import Statement, affine_map, broadcast_map, dims
from msc.poly.scalar import Apply, Read, Scalar, reads


class Pattern(IntEnum):
    """How results depend on operands, from the freest to the most bound."""

    RESHAPE = 0
    """A view: no computation."""
    ELEMENTWISE = 1
    """Each element depends on the elements at the same place; or, of a box cut out of an operand, at a shifted one."""
    BROADCAST = 2
    """As elementwise, but some operand is smaller and repeats."""
    MOVEMENT = 3
    """Each element is computed from elements at other places, one each: transposition, slice, gather."""
    ROWS = 4
    """A reduction over the last axes."""
    REDUCE = 5
    """A reduction over other axes."""
    WINDOW = 6
    """A reduction over a sliding window: pooling."""
    CONTRACTION = 7
    """A sum of products of two operands: matrix products, convolution."""
    OPAQUE = 8
    """Several statements, or nothing that is known: a kernel of its own, or none at all."""


@dataclass(frozen=True, slots=True)
class AreaPattern:
    """A pattern, the shape of the loop nest, and for ROWS how many last axes are reduced."""

    pattern: Pattern
    domain: Shape = ()
    reduced: int = 0


def pattern_of(op: Operation) -> AreaPattern:
    """The area pattern of an operation; OPAQUE for all that is not a basic operation of known sizes."""
    if isinstance(op, ViewOp):
        return AreaPattern(Pattern.RESHAPE)
    if not isinstance(op, BasicOp) or not op.is_basic or not _static(op):
        return AreaPattern(Pattern.OPAQUE)
    statements = op.compute()
    if len(statements) != 1 or len(op.results) != 1:
        return AreaPattern(Pattern.OPAQUE, op.result_shape())
    return _of_statement(statements[0], op)


def _static(op: BasicOp) -> bool:
    shapes = [op.shape(i) for i in range(len(op.operands))] + [op.result_shape(i) for i in range(len(op.results))]
    return all(map(known, shapes))


def _of_statement(statement: Statement, op: BasicOp) -> AreaPattern:
    if statement.combine is None:
        return AreaPattern(_pointwise(statement, op), op.result_shape())
    if is_contraction(statement):
        return AreaPattern(Pattern.CONTRACTION, op.result_shape())
    return _reduction(statement, op)


def is_contraction(statement: Statement) -> bool:
    """Whether a statement sums products of two different reads."""
    body = statement.body
    if statement.combine != "add" or not isinstance(body, Apply) or body.op != "mul":
        return False
    return all(isinstance(arg, Read) for arg in body.args) and body.args[0] != body.args[1]


def is_cut(op: Operation) -> bool:
    """Whether an operation takes a box out of its operand: neighbours stay neighbours, their places shift.

    Reading that costs what reading elements at the same place does, unless the operand is computed in the same kernel.
    """
    return isinstance(op, SliceOp) and all(places is None or places.step == 1 for places in op.ranges())


def _pointwise(statement: Statement, op: BasicOp) -> Pattern:
    shape = op.result_shape()
    if is_cut(op):
        return Pattern.ELEMENTWISE
    if statement.extents != shape or statement.write != affine_map(len(shape), dims(len(shape))):
        return Pattern.MOVEMENT
    kinds = [_read_pattern(read, op.shape(read.operand), shape) for read in _all_reads(statement.body)]
    return max(kinds, default=Pattern.ELEMENTWISE)


def _all_reads(body: Scalar) -> list[Read]:
    return list(reads(body))


def _read_pattern(read: Read, operand: Shape, shape: Shape) -> Pattern:
    if read.indirect or len(operand) > len(shape):
        return Pattern.MOVEMENT
    if read.index == broadcast_map(operand, shape):
        return Pattern.ELEMENTWISE if operand == shape else Pattern.BROADCAST
    return Pattern.BROADCAST if _leaves_axes_out(read.index) else Pattern.MOVEMENT


def _leaves_axes_out(index: AffineMap) -> bool:
    """Whether an operand is read at the places of the result less some axes, in order: the indices of a one-hot."""
    places = [r.position if isinstance(r, AffineDimExpr) else -1 for r in index.results]
    return places == sorted(set(places)) and -1 not in places


def _reduction(statement: Statement, op: BasicOp) -> AreaPattern:
    extents, shape = statement.extents, op.result_shape()
    whole = affine_map(len(extents), dims(len(extents)))
    if any(read.index != whole or read.indirect for read in _all_reads(statement.body)):
        return AreaPattern(Pattern.WINDOW, shape)
    reduced = statement.reduced
    if reduced and reduced == tuple(range(len(extents) - len(reduced), len(extents))):
        return AreaPattern(Pattern.ROWS, extents, len(reduced))
    return AreaPattern(Pattern.REDUCE, shape)
