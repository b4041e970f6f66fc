"""Operations of the `gk` dialect.

    %y = gk.kernel "conv2d_relu" (%x = %image : tensor<...>, %w = %weight : tensor<...>) -> tensor<...> {
      %0 = ms.conv2d %x, %w : (...) -> tensor<...>
      %1 = ms.relu %0 : (tensor<...>) -> tensor<...>
      gk.yield %1 : tensor<...>
    }

The region is isolated: what it reads are its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import IntegerAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from msc.dialects.gk.attributes import BLOCK_AXIS, GK_SCHEDULE, KERNEL_BLOCKS, verify_kernel_attributes
from msc.dialects.gk.schedule import ScheduleAttr
from msc.ir.errors import InvalidStructure


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a kernel and gives its results."""

    name = "gk.yield"
    values = var_operand_def(TensorType)
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue):
        super().__init__(operands=[values])


@irdl_op_definition
class KernelOp(IRDLOperation):
    """What will be one generated function: an isolated region of basic `ms` operations.

    `label` names it for people (C names carry a number too). Attribute `gk.reasons` records what clustering decided.
    """

    name = "gk.kernel"
    inputs = var_operand_def(TensorType)
    label = prop_def(StringAttr)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), Pure())

    def __init__(self, label: str, inputs: Sequence[SSAValue], result_types: Sequence[Attribute], body: Region):
        super().__init__(
            operands=[list(inputs)],
            properties={"label": StringAttr(label)},
            result_types=[list(result_types)],
            regions=[body],
        )

    @property
    def terminator(self) -> YieldOp:
        last = self.body.block.last_op
        if not isinstance(last, YieldOp):
            raise InvalidStructure("gk.kernel: the region ends with gk.yield")
        return last

    @property
    def schedule(self) -> ScheduleAttr | None:
        """The schedule, once it has one."""
        found = self.attributes.get(GK_SCHEDULE)
        return found if isinstance(found, ScheduleAttr) else None

    def verify_(self) -> None:
        verify_kernel_attributes(self.attributes)
        if [a.type for a in self.body.block.args] != [v.type for v in self.inputs]:
            raise InvalidStructure("gk.kernel: the region's arguments do not have the types of the inputs")
        if [v.type for v in self.terminator.values] != [r.type for r in self.outputs]:
            raise VerifyException("gk.kernel: gk.yield does not give values of the result types")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        label = parser.parse_str_literal()
        arguments: list[Parser.Argument] = []
        inputs: list[SSAValue] = []

        def binding() -> None:
            argument = parser.parse_argument(expect_type=False)
            parser.parse_punctuation("=")
            operand = parser.parse_unresolved_operand()
            parser.parse_punctuation(":")
            type_ = parser.parse_type()
            arguments.append(argument.resolve(type_))
            inputs.append(parser.resolve_operand(operand, type_))

        parser.parse_comma_separated_list(parser.Delimiter.PAREN, binding)
        parser.parse_punctuation("->")
        types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        types = types if types is not None else [parser.parse_type()]
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(label, inputs, types, parser.parse_region(arguments))
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.label.data)
        printer.print_string(" (")
        for i, (argument, value) in enumerate(zip(self.body.block.args, self.inputs, strict=True)):
            printer.print_string(", " if i else "")
            printer.print_block_argument(argument, print_type=False)
            printer.print_string(" = ")
            printer.print_operand(value)
            printer.print_string(" : ")
            printer.print_attribute(value.type)
        printer.print_string(") -> ")
        self._print_result_types(printer)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    def _print_result_types(self, printer: Printer) -> None:
        if len(self.outputs) == 1:
            printer.print_attribute(self.outputs[0].type)
            return
        printer.print_string("(")
        printer.print_list(self.outputs, lambda r: printer.print_attribute(r.type))
        printer.print_string(")")


def blocks_of(value: SSAValue) -> int:
    """How many axes of a value number the blocks that it is computed in; 0 for an ordinary one."""
    return _number(value, KERNEL_BLOCKS) or 0


def blocked_axes(value: SSAValue) -> tuple[int, ...]:
    """The axes along which a value is computed block by block, outermost first; none for an ordinary one."""
    axis = _number(value, BLOCK_AXIS)
    return tuple(range(blocks_of(value))) if axis is None else (axis,)


def _number(value: SSAValue, name: str) -> int | None:
    number = value.owner.attributes.get(name) if isinstance(value.owner, KernelOp) else None
    return number.value.data if isa(number, IntegerAttr) else None
