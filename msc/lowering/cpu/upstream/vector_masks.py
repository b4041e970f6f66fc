"""Masks with the type that MLIR gives them.

xDSL 0.74 knows comparisons of vectors only with the result i1, and arith.select only with the condition i1; in MLIR
both are vectors of i1. The right types would not verify in xDSL, so these operations are made without its definition:
they print in the generic form, which is the one that MLIR is given.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp, VectorType, i1
from xdsl.ir import Attribute, Operation, SSAValue

from msc.ir.typed import is_vector


def give_masks_their_type(module: ModuleOp) -> None:
    """Turn every i1 that comes from a comparison of vectors into a vector of i1, through logical operations."""
    for op in list(module.walk()):
        shape = _mask_shape(op)
        if shape is None:
            continue
        match op:
            case arith.CmpfOp() | arith.CmpiOp():
                _replace(op, op.operands, VectorType(i1, shape))
            case arith.AndIOp() | arith.OrIOp() | arith.XOrIOp():
                _replace(op, [_as_mask(operand, op, shape) for operand in op.operands], VectorType(i1, shape))
            case arith.SelectOp():
                _replace(op, op.operands, op.result.type)
            case _:
                pass


def _mask_shape(op: Operation) -> tuple[int, ...] | None:
    """The shape of the vectors that a comparison takes, or of a mask that another operation takes."""
    compares = isinstance(op, arith.CmpfOp | arith.CmpiOp)
    for operand in op.operands:
        if is_vector(operand.type) and (compares or operand.type.element_type == i1):
            return operand.type.get_shape()
    return None


def _as_mask(operand: SSAValue, op: Operation, shape: tuple[int, ...]) -> SSAValue:
    if is_vector(operand.type):
        return operand
    broadcast = vector.BroadcastOp(operand, VectorType(i1, shape))
    _insert_before(broadcast, op)
    return broadcast.vector


def _replace(op: Operation, operands: Sequence[SSAValue], type_: Attribute) -> None:
    new = UnregisteredOp.with_name(op.name).create(operands=operands, result_types=[type_], properties=op.properties)
    new.location = op.location
    new.results[0].name_hint = op.results[0].name_hint
    _insert_before(new, op)
    op.results[0].replace_all_uses_with(new.results[0])
    op.detach()
    op.erase()


def _insert_before(new: Operation, op: Operation) -> None:
    block = op.parent_block()
    if block is not None:
        block.insert_op_before(new, op)
