"""The parts of a kernel that cube and vector cores run, and index values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import AffineMapAttr, IndexType, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from msc.dialects.loop.affine_syntax import AffineReader, check_affine, print_affine


def parse_body(parser: Parser, arguments: Sequence[Parser.Argument]) -> Region:
    """A region of one block, which may be empty."""
    region = parser.parse_region(arguments)
    if not region.blocks:
        region.add_block(Block(arg_types=[argument.type for argument in arguments]))
    return region


@irdl_op_definition
class SectionOp(IRDLOperation):
    """What only one kind of core of a mix kernel runs: `davinci.section cube { ... }`."""

    name = "davinci.section"
    kind = prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())

    def __init__(self, kind: str, body: Region | None = None):
        super().__init__(properties={"kind": StringAttr(kind)}, regions=[body if body is not None else Region(Block())])

    def verify_(self) -> None:
        if self.kind.data not in ("cube", "vector"):
            raise VerifyException(f"davinci.section: no kind '{self.kind.data}'; there are cube and vector")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        kind = parser.parse_identifier("cube or vector")
        return cls(kind, parse_body(parser, []))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data} ")
        printer.print_region(self.body)


class _Index(IRDLOperation):
    """An index of the core that runs."""

    result = result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls()

    def print(self, printer: Printer) -> None:
        pass


@irdl_op_definition
class BlockIdxOp(_Index):
    """Which block runs: `%b = davinci.block_idx`."""

    name = "davinci.block_idx"


@irdl_op_definition
class SubBlockOp(_Index):
    """Which of a block's vector cores runs: `%v = davinci.sub_block`."""

    name = "davinci.sub_block"


class _Extreme(IRDLOperation):
    """The least or greatest of some expressions."""

    values = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    result = result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, map_: Attribute, values: Sequence[SSAValue]):
        super().__init__(operands=[list(values)], properties={"map": map_}, result_types=[IndexType()])

    def verify_(self) -> None:
        check_affine(self.name, self.map.data, len(self.values))
        if not self.map.data.results:
            raise VerifyException(f"{self.name}: of one expression or more")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        reader = AffineReader(parser)
        exprs: list[AffineExpr] = parser.parse_comma_separated_list(parser.Delimiter.PAREN, reader.expression)
        return cls(AffineMapAttr(reader.map(exprs)), reader.values)

    def print(self, printer: Printer) -> None:
        printer.print_string(" (")
        printer.print_list(self.map.data.results, lambda e: print_affine(printer, e, self.values))
        printer.print_string(")")


@irdl_op_definition
class MinOp(_Extreme):
    """`%n = davinci.min (8192 - %i * 1536, 1536)`."""

    name = "davinci.min"


@irdl_op_definition
class MaxOp(_Extreme):
    """`%n = davinci.max (%i - 4, 0)`."""

    name = "davinci.max"
