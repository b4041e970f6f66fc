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
from typing import ClassVar, Self

from xdsl.dialects.builtin import I64, DenseArrayBase, StringAttr, TensorType, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from msc.dialects.gk.attributes import GK_SCHEDULE, verify_kernel_attributes
from msc.dialects.gk.schedule import ScheduleAttr
from msc.ir.errors import InvalidStructure
from msc.ir.typed import static_shape


@irdl_op_definition
class KernelYieldOp(IRDLOperation):
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
    def terminator(self) -> KernelYieldOp:
        last = self.body.block.last_op
        if not isinstance(last, KernelYieldOp):
            raise InvalidStructure("gk.kernel: the region ends with gk.yield")
        return last

    @property
    def materialized(self) -> list[MaterializeOp]:
        """What lies in memory between two members, in order."""
        return [op for op in self.body.block.ops if isinstance(op, MaterializeOp)]

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


@irdl_op_definition
class MaterializeOp(IRDLOperation):
    """A value that lies in memory as its type says: the operations above it are one member, those below it the next.

    A kernel of several members computes it a block at a time `along` some axes, at loops that both members share.
    """

    name = "gk.materialize"
    T: ClassVar = VarConstraint("T", base(TensorType))
    value = operand_def(T)
    along = prop_def(DenseArrayBase.constr(I64))
    result = result_def(T)
    traits = traits_def(HasParent(KernelOp), Pure())
    assembly_format = "$value `along` $along attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, along: Sequence[int]):
        axes = DenseArrayBase.from_list(i64, list(along))
        super().__init__(operands=[value], properties={"along": axes}, result_types=[value.type])

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that blocks are cut along, outermost loop first."""
        return tuple(map(int, self.along.get_values()))

    def verify_(self) -> None:
        rank = len(static_shape(self.value))
        if len(set(self.axes)) < len(self.axes) or not all(0 <= axis < rank for axis in self.axes):
            raise VerifyException(f"gk.materialize: axes are different numbers below {rank}, not {list(self.axes)}")
        is_computed = not isinstance(self.value.owner, Block | MaterializeOp)
        if not is_computed or any(isinstance(use.operation, KernelYieldOp) for use in self.result.uses):
            raise VerifyException(
                "gk.materialize: an operation of the kernel gives its operand, and others read its result"
            )
