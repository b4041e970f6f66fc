"""Which constant values kernels make themselves: storing them costs more than computing them in every call."""

from __future__ import annotations

from xdsl.ir import Operation, OpResult, SSAValue

from msc.analysis.bytes import bytes_of
from msc.analysis.constancy import is_constant
from msc.analysis.patterns import Pattern, is_cut, pattern_of
from msc.dialects.ms.arithmetic import AddOp, MulOp, SubOp
from msc.dialects.ms.comparison import BitwiseOp, ComparisonOp, LogicalOp
from msc.dialects.ms.elementwise import CastOp, SelectOp
from msc.dialects.ms.movement import BroadcastToOp
from msc.dialects.ms.shapes import known
from msc.dialects.ms.structure import ConstantOp
from msc.dialects.ms.unary import BitwiseNotOp, LogicalNotOp, NegOp
from msc.ir.typed import is_tensor

LARGEST_STORED = 64 << 20
"""Bytes up to which a constant value is stored in any case: only larger ones make a library much larger."""

GROWTH = 64
"""How many times the bytes of each operand a value has at least that is computed in place of being stored."""

MOST_OPERATIONS = 8
"""How many operations compute such a value at most; computing more of them takes longer than reading the value."""

_FEW_INSTRUCTIONS = (
    *(ComparisonOp, LogicalOp, LogicalNotOp, SelectOp, CastOp, BroadcastToOp),
    *(AddOp, SubOp, MulOp, NegOp, BitwiseOp, BitwiseNotOp),
)
"""What takes no longer than a read from memory. Divisions, powers and the functions of mathematics take longer."""


def is_generated(value: SSAValue) -> bool:
    """Whether kernels make a constant value themselves: a splat, places, what repeats them, or a large table of these.

    A large table has more than `LARGEST_STORED` bytes, and few elementwise operations of few instructions compute it
    of values that are generated too, or `GROWTH` times smaller: each place of a row is compared with each of a column.
    All that reads it is elementwise, so that it is computed in the kernels that read it.
    """
    return _is_repeated(value) or (isinstance(value, OpResult) and _is_large_table(value))


def _is_repeated(value: SSAValue) -> bool:
    """Whether a value is a splat or the numbers of places, or repeats them."""
    while isinstance(value, OpResult):
        op = value.op
        if isinstance(op, ConstantOp) or op.name == "ms.iota":
            return True
        if op.name not in ("ms.reshape", "ms.broadcast_to", "ms.expand_dims", "ms.tile"):
            return False
        value = op.operands[0]
    return False


def _is_large_table(table: OpResult) -> bool:
    """A table may be computed of other tables: each is looked at once."""
    parts = [table]
    for part in parts:
        if len(parts) > MOST_OPERATIONS or not _is_large(part) or not _is_computed_by_readers(part):
            return False
        inner = (operand for operand in part.op.operands if _is_of_its_size(operand, part))
        parts += [operand for operand in inner if isinstance(operand, OpResult) and operand not in parts]
    return is_constant(table)


def _is_large(value: SSAValue) -> bool:
    return is_tensor(value.type) and known(value.type.get_shape()) and bytes_of(value) > LARGEST_STORED


def _is_computed_by_readers(part: OpResult) -> bool:
    return isinstance(part.op, _FEW_INSTRUCTIONS) and all(_is_elementwise(use.operation) for use in part.uses)


def _is_elementwise(op: Operation) -> bool:
    return pattern_of(op).pattern in (Pattern.ELEMENTWISE, Pattern.BROADCAST) and not is_cut(op)


def _is_of_its_size(operand: SSAValue, table: SSAValue) -> bool:
    """Whether storing an operand of a table would save too little."""
    return bytes_of(operand) * GROWTH > bytes_of(table) and not _is_repeated(operand)
