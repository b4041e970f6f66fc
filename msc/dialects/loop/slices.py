"""Slices of buffers along the first axis: `%e = loop.slice %x[%i] : memref<8x2x4xf32>`, a memref<2x4xf32>.

The bytes of x from `i` times the size of a slice on. Upstream has no such view: its memref.subview keeps the offset in
the type, so that a function takes either whole buffers or slices.
"""

from __future__ import annotations

from typing import Self

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from msc.ir.typed import memref_type


@irdl_op_definition
class BufferSliceOp(IRDLOperation):
    """The slice of a contiguous buffer at an index inside its first axis: a view of the same bytes."""

    name = "loop.slice"
    source = operand_def(MemRefType)
    index = operand_def(IndexType)
    result = result_def(MemRefType)
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue, index: SSAValue):
        type_ = memref_type(source)
        if not type_.get_shape():
            raise VerifyException("loop.slice: a buffer of rank 0 has no slices")
        slice_ = MemRefType(type_.element_type, type_.get_shape()[1:])
        super().__init__(operands=[source, index], result_types=[slice_])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parser.parse_unresolved_operand()
        parser.parse_punctuation("[")
        index = parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())
        parser.parse_punctuation("]")
        parser.parse_punctuation(":")
        return cls(parser.resolve_operand(source, parser.parse_type()), index)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        printer.print_string("[")
        printer.print_operand(self.index)
        printer.print_string("] : ")
        printer.print_attribute(self.source.type)
