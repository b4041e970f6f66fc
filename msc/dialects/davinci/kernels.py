"""Kernels, the parts of them that cube and vector cores run, and index values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, StringAttr, SymbolNameConstraint, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from msc.dialects.davinci.buffers import AllocOp, BufferType
from msc.dialects.davinci.gathers import verify_gathers
from msc.dialects.davinci.queue_ops import QueueOp
from msc.dialects.loop.affine_syntax import AffineReader, check_affine, print_affine
from msc.ir.entry import RunsOnOtherCores
from msc.support.diagnostics import MscError
from msc.targets.davinci import DEFAULT_TARGET, DavinciTarget, davinci_target
from msc.targets.davinci_isa import Space

KINDS = ("cube", "vector", "mix")
"""What cores a kernel runs on: cube ones, vector ones, or blocks of one cube and two vector cores."""


@irdl_op_definition
class DavinciKernelOp(IRDLOperation):
    """A kernel that `blocks` blocks of cores run.

    `davinci.kernel @add target "ascend910b1" vector 48 (%x: !davinci.buffer<gm, f16, 65536>) { ... }`
    """

    name = "davinci.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    target = prop_def(StringAttr)
    kind = prop_def(StringAttr)
    blocks = prop_def(IntegerAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface(), RunsOnOtherCores())

    def __init__(self, name: str, kind: str, blocks: int, body: Region, target: str = DEFAULT_TARGET):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "target": StringAttr(target),
                "kind": StringAttr(kind),
                "blocks": IntegerAttr(blocks, i64),
            },
            regions=[body],
        )

    @property
    def machine(self) -> DavinciTarget:
        """The machine it is for. Raises MscError for a name that is none."""
        return davinci_target(self.target.data)

    def verify_(self) -> None:
        try:
            machine = self.machine
        except MscError as error:
            raise VerifyException(error.diagnostics[0].message) from error
        if self.kind.data not in KINDS:
            raise VerifyException(f"davinci.kernel: no kind '{self.kind.data}'; there are {', '.join(KINDS)}")
        cores = machine.cores.vector if self.kind.data == "vector" else machine.cores.cube
        if not 1 <= self.blocks.value.data <= cores:
            raise VerifyException(f"davinci.kernel: {self.blocks.value.data} blocks; {machine.name} has {cores} cores")
        for argument in self.body.block.args:
            if not isinstance(argument.type, BufferType) or argument.type.memory is not Space.gm:
                raise VerifyException(f"davinci.kernel: arguments lie in gm, not {argument.type}")
        verify_gathers(self.walk())
        for op in self.walk():
            if isinstance(op, AllocOp):
                verify_placement(op, machine)
            if (
                isinstance(op, QueueOp)
                and op.instruction.feature
                and not getattr(machine.features, op.instruction.feature)
            ):
                raise VerifyException(f"davinci.kernel: {machine.name} has no {op.instruction.name}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        target = parser.parse_str_literal() if parser.parse_optional_keyword("target") else DEFAULT_TARGET
        kind = parser.parse_identifier("cube, vector or mix")
        blocks = parser.parse_integer(allow_boolean=False)
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        body = _body(parser, arguments)
        return cls(name.data, kind, blocks, body, target)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(f' target "{self.target.data}" {self.kind.data} {self.blocks.value.data} (')
        printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(") ")
        printer.print_region(self.body, print_entry_block_args=False)


def _body(parser: Parser, arguments: Sequence[Parser.Argument]) -> Region:
    """A region of one block, which may be empty."""
    region = parser.parse_region(arguments)
    if not region.blocks:
        region.add_block(Block(arg_types=[argument.type for argument in arguments]))
    return region


def verify_placement(op: AllocOp, machine: DavinciTarget) -> None:
    """Raise VerifyException where a buffer is not aligned or reaches beyond its memory."""
    space, address = op.type.memory, op.address.value.data
    least, size = memory_of(machine, space)
    if address % least:
        raise VerifyException(f"davinci.alloc: byte {address} of {space.name} is no multiple of {least}")
    if address < 0 or address + op.type.bytes > size:
        raise VerifyException(
            f"davinci.alloc: bytes {address} to {address + op.type.bytes} of {space.name}, "
            f"which has {size} on {machine.name}"
        )


def scalar_cycles(kernel: DavinciKernelOp) -> int | None:
    """The cycles of a kernel of scalar work alone, until the core that started last ends; None for any other.

    The scalar units run the kernel's function of loops.
    """
    machine = kernel.machine
    total = round((kernel.blocks.value.data - 1) * machine.cores.launch_us * machine.clock.mhz)
    for op in kernel.walk():
        if isinstance(op, QueueOp):
            if op.instruction.name != "scalar_work":
                return None
            [cycles] = op.parameters.data.results
            if not isinstance(cycles, AffineConstantExpr):
                return None
            total += cycles.value
    return total


def memory_of(machine: DavinciTarget, space: Space) -> tuple[int, int]:
    """(alignment, usable bytes) of an on-chip memory."""
    b, a = machine.buffers, machine.alignment
    return {
        Space.cbuf: (a.l1, b.l1 - b.l1_reserved),
        Space.ca: (a.l0a, b.l0a),
        Space.cb: (a.l0b, b.l0b),
        Space.cc: (a.l0c, b.l0c),
        Space.ub: (a.ub, b.ub - b.ub_reserved),
        Space.bt: (a.bt, b.bt),
        Space.fb: (a.fb, b.fb),
    }[space]


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
        return cls(kind, _body(parser, []))

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
