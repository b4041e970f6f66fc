"""Kernels: programs of queue instructions for the cores of a machine."""

from __future__ import annotations

from typing import Self

from xdsl.dialects.builtin import IntegerAttr, StringAttr, SymbolNameConstraint, i64
from xdsl.ir import Region
from xdsl.ir.affine import AffineConstantExpr
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from msc.dialects.davinci.buffers import AllocOp, BufferType
from msc.dialects.davinci.gathers import verify_gathers
from msc.dialects.davinci.index_ops import parse_body
from msc.dialects.davinci.kernel_rules import (
    KernelRuleError,
    kinds_of,
    verify_apart,
    verify_cores,
    verify_events,
    verify_indices,
    verify_operations,
)
from msc.dialects.davinci.queue_ops import QueueOp
from msc.ir.entry import RunsOnOtherCores
from msc.support.diagnostics import MscError
from msc.targets.davinci import DEFAULT_TARGET, DavinciTarget, davinci_target
from msc.targets.davinci_isa import Pipe, Space

MAXIMUM_ARGUMENTS = 120
"""As `DV_ARGUMENTS` of sim/core/dv_core.h."""

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
        self._verify_arguments(machine)
        ops = list(self.walk())[1:]
        verify_operations(ops)
        verify_gathers(ops)
        verify_events(ops, machine)
        verify_apart(ops)
        verify_cores(self.body.block, kinds_of(self.kind.data, machine), machine)
        verify_indices(self.body.block, {}, self.blocks.value.data)
        for op in ops:
            if isinstance(op, AllocOp):
                verify_placement(op, machine)
            if isinstance(op, QueueOp):
                verify_machine_has(op, machine)

    def _verify_arguments(self, machine: DavinciTarget) -> None:
        types = [argument.type for argument in self.body.block.args]
        total = sum(type_.bytes for type_ in types if isinstance(type_, BufferType))
        if total > machine.shared.memory:
            raise VerifyException(
                f"davinci.kernel: its arguments have {total} bytes; {machine.name} has {machine.shared.memory}"
            )
        if len(types) > MAXIMUM_ARGUMENTS:
            raise VerifyException(f"davinci.kernel: {len(types)} arguments; there are {MAXIMUM_ARGUMENTS} at most")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        target = parser.parse_str_literal() if parser.parse_optional_keyword("target") else DEFAULT_TARGET
        kind = parser.parse_identifier("cube, vector or mix")
        blocks = parser.parse_integer(allow_boolean=False)
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        body = parse_body(parser, arguments)
        return cls(name.data, kind, blocks, body, target)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" target ")
        printer.print_string_literal(self.target.data)
        printer.print_string(f" {self.kind.data} {self.blocks.value.data} (")
        printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(") ")
        printer.print_region(self.body, print_entry_block_args=False)


def verify_placement(op: AllocOp, machine: DavinciTarget) -> None:
    """Raise KernelRuleError where a buffer is not aligned or reaches beyond its memory."""
    space, address = op.type.memory, op.address.value.data
    if space is Space.gm:
        return  # the operation's own verifier refuses it
    least, size = memory_of(machine, space)
    if address % least:
        raise KernelRuleError(f"davinci.alloc: byte {address} of {space.name} is no multiple of {least}", operation=op)
    if address < 0 or address + op.type.bytes > size:
        raise KernelRuleError(
            f"davinci.alloc: bytes {address} to {address + op.type.bytes} of {space.name}, "
            f"which has {size} on {machine.name}",
            operation=op,
        )


def verify_machine_has(op: QueueOp, machine: DavinciTarget) -> None:
    """Raise KernelRuleError for an instruction, or inputs of the cube, that a machine lacks."""
    row = op.instruction
    if row.feature and not getattr(machine.features, row.feature):
        raise KernelRuleError(f"{op.name}: {machine.name} has no {row.name}", operation=op)
    inputs = op.buffer_type(1).dtype if row.pipe is Pipe.M else ""
    if inputs and inputs not in machine.cube.inputs:
        raise KernelRuleError(
            f"{op.name}: the cube of {machine.name} multiplies {', '.join(machine.cube.inputs)}, not {inputs}",
            operation=op,
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
    """(alignment, bytes) of an on-chip memory, those that the vendor's software takes included."""
    b, a = machine.buffers, machine.alignment
    return {
        Space.cbuf: (a.l1, b.l1),
        Space.ca: (a.l0a, b.l0a),
        Space.cb: (a.l0b, b.l0b),
        Space.cc: (a.l0c, b.l0c),
        Space.ub: (a.ub, b.ub),
        Space.bt: (a.bt, b.bt),
        Space.fb: (a.fb, b.fb),
    }[space]
