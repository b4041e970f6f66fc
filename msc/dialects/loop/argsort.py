"""`loop.argsort`: the order of the keys of a row, by a function of the C library that generated programs contain.

loop.argsort %keys, %places, %scratch[%i] of %n : memref<4x100xi32>, memref<4x10xi64>, memref<20xi32>
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, MemRefType, i32
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from msc.dialects.gk.argsort import check_rows
from msc.ir.typed import memref_type, static_shape

INSERTED = 64
"""How many places are found by insertion at most, which moves half of them for each; more are found by their digits."""

_BUFFERED = 512
"""Keys beyond twice the count that are sorted at once: so many take about as long as the sums over a digit's values."""

_DIGIT = 256
"""Values of a digit."""


def capacity(size: int, count: int) -> int:
    """How many keys are sorted at once to find `count` of `size`."""
    return count if count <= INSERTED else min(size, 2 * count + _BUFFERED)


def scratch_elements(size: int, count: int, key_bytes: int) -> int:
    """Numbers of the keys' type: pairs of a key and its place, and if they are sorted by digits twice so many pairs,
    and the number of keys with each value of each digit.
    """
    pairs = 2 * capacity(size, count)
    return pairs if count <= INSERTED else 2 * pairs + key_bytes * _DIGIT


@irdl_op_definition
class ArgsortRowOp(IRDLOperation):
    """The places of the first of `size` keys of a row in ascending order; equal keys keep their order.

    The `indices` say which row. It writes as many places as their row holds, or all if the size is smaller.
    """

    name = "loop.argsort"
    keys = operand_def(MemRefType)
    places = operand_def(MemRefType)
    scratch = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    size = operand_def(IndexType())
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$keys `,` $places `,` $scratch `[` $indices `]` `of` $size attr-dict"
        " `:` type($keys) `,` type($places) `,` type($scratch)"
    )

    def __init__(
        self, keys: SSAValue, places: SSAValue, scratch: SSAValue, indices: Sequence[SSAValue], size: SSAValue
    ):
        super().__init__(operands=[keys, places, scratch, list(indices), size])

    @property
    def count(self) -> int:
        """How many places a row holds."""
        return static_shape(self.places)[-1]

    @property
    def most(self) -> int:
        """How many keys a row has at most."""
        return static_shape(self.keys)[-1]

    def verify_(self) -> None:
        keys, scratch = memref_type(self.keys), memref_type(self.scratch)
        check_rows(self.name, keys, memref_type(self.places))
        if len(self.indices) != len(keys.get_shape()) - 1:
            raise VerifyException("loop.argsort: an index for each axis of the keys but the last")
        least = scratch_elements(keys.get_shape()[-1], self.count, 4 if keys.element_type == i32 else 8)
        if scratch.element_type != keys.element_type or scratch.element_count() < least:
            raise VerifyException(f"loop.argsort: the scratch memory has {least} elements of the type of the keys")
