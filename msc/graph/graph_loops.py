"""Loops in the graph: a number runs from a first to a last, and each iteration carries values on to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, StringAttr, i64
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from msc.dialects.gk import LOOP_LABEL
from msc.dialects.ms.shapes import tensor_type
from msc.graph.emitter import Emitter
from msc.ir.locations import set_location

Body: TypeAlias = Callable[[Emitter, SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]
"""Emits what an iteration does with its number and what is carried, and gives what is carried on."""


def index(emit: Emitter, value: int) -> SSAValue:
    """A bound of a loop."""
    emit.ops.append(arith.ConstantOp.from_int_and_width(value, IndexType()))
    return emit.ops[-1].results[0]


def number_of(emit: Emitter, place: SSAValue) -> SSAValue:
    """An index as the tensor of rank 0 that operations on slices take."""
    wide = emit.insert(arith.IndexCastOp(place, i64))
    return emit.insert(tensor.FromElementsOp(wide.result, result_type=tensor_type("i64", ()))).results[0]


def empty(emit: Emitter, shape: Sequence[int], dtype: str) -> SSAValue:
    """A tensor that a loop fills."""
    return emit.insert(tensor.EmptyOp([], tensor_type(dtype, shape))).tensor


def stacked(emit: Emitter, shape: Sequence[int], dtype: str, body: Body) -> SSAValue:
    """What a loop makes entry by entry."""
    start = empty(emit, shape, dtype)
    return loop_over(emit, (index(emit, 0), index(emit, shape[0])), [start], body)[0]


def loop_over(
    emit: Emitter, bounds: tuple[SSAValue, SSAValue], start: Sequence[SSAValue], body: Body
) -> Sequence[SSAValue]:
    """A loop whose body gives, for the number of the iteration and what is carried, what is carried on."""
    inside, block = Emitter(emit.op), Block(arg_types=[IndexType(), *(value.type for value in start)])
    carried = body(inside, number_of(inside, block.args[0]), block.args[1:])
    block.add_ops([*inside.ops, scf.YieldOp(*carried)])
    loop = scf.ForOp(*bounds, index(emit, 1), start, block)
    emit.ops.append(loop)
    return loop.results


def put_in_place(emit: Emitter, value: SSAValue, label: str) -> None:
    """Replace the emitter's operation by what was emitted, as `insert_in_front` puts it there."""
    insert_in_front(emit, label)
    value.name_hint = emit.op.results[0].name_hint
    Rewriter.replace_op(emit.op, [], [value])


def insert_in_front(emit: Emitter, label: str) -> None:
    """Put what was emitted in front of the emitter's operation; its loops become functions named after the label."""
    for op in emit.ops:
        set_location(op, emit.op.location)
        if isinstance(op, scf.ForOp):
            op.attributes[LOOP_LABEL] = StringAttr(label)
    Rewriter.insert_op(emit.ops, InsertPoint.before(emit.op))
