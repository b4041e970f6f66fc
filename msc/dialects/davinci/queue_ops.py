"""Queue instructions: one operation for each row of `msc.targets.davinci_isa.INSTRUCTIONS`.

    davinci.vadd %c[0], %a[%p * 4096], %b[0] {repeat = 128}
    davinci.vmuls %c[0], %a[0], 0.5 {repeat = 32}

Operands are buffers with an offset in elements; parameters have the table's names, and its defaults where left out.
Offsets and parameters are affine expressions of index values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, cast

from xdsl.dialects.builtin import AffineMapAttr, FloatAttr, IndexType, f64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr, AffineMap
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from msc.dialects.davinci.buffers import BufferType
from msc.dialects.loop.affine_syntax import AffineReader, check_affine, print_affine
from msc.ir.errors import DtypeConflict
from msc.support.diagnostics import near_match
from msc.targets.davinci_isa import INSTRUCTIONS, Instruction, InstructionParameter


class QueueOp(IRDLOperation):
    """What all queue instructions share."""

    buffers = var_operand_def(BufferType)
    values = var_operand_def(IndexType)
    offsets = prop_def(AffineMapAttr)
    parameters = prop_def(AffineMapAttr)
    scalar = opt_prop_def(FloatAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        buffers: Sequence[SSAValue],
        offsets: AffineMap,
        parameters: AffineMap,
        values: Sequence[SSAValue] = (),
        scalar: float | None = None,
    ):
        super().__init__(
            operands=[list(buffers), list(values)],
            properties={
                "offsets": AffineMapAttr(offsets),
                "parameters": AffineMapAttr(parameters),
                "scalar": None if scalar is None else FloatAttr(scalar, f64),
            },
        )

    @property
    def instruction(self) -> Instruction:
        """Its row of the table."""
        return instruction_of(type(self))

    @property
    def numbers(self) -> list[InstructionParameter]:
        """The parameters that are affine expressions: all but the scalar."""
        return [p for p in self.instruction.parameters if not p.real]

    def buffer_type(self, operand: int) -> BufferType:
        """The type of an operand."""
        return cast(BufferType, self.buffers[operand].type)

    def verify_(self) -> None:
        row = self.instruction
        if len(self.buffers) != len(row.spaces):
            raise VerifyException(f"{self.name}: {len(row.spaces)} buffers, not {len(self.buffers)}")
        for k, space in enumerate(row.spaces):
            if self.buffer_type(k).memory is not space:
                raise VerifyException(
                    f"{self.name}: operand {k} lies in {space.name}, not in {self.buffer_type(k).memory.name}"
                )
        types = tuple(self.buffer_type(k).dtype for k in range(len(row.spaces)))
        if types and types not in row.types:
            raise DtypeConflict(f"{self.name} does not take {_types_text(types)}", help=_taken_text(row))
        for map_, count in ((self.offsets.data, len(row.spaces)), (self.parameters.data, len(self.numbers))):
            check_affine(self.name, map_, len(self.values))
            if len(map_.results) != count:
                raise VerifyException(f"{self.name}: {count} expressions, not {len(map_.results)}")
        if (self.scalar is not None) != any(p.real for p in row.parameters):
            raise VerifyException(f"{self.name}: it takes {'a' if self.scalar is None else 'no'} scalar")
        self._verify_limits()

    def _verify_limits(self) -> None:
        for parameter, expr in zip(self.numbers, self.parameters.data.results, strict=True):
            if parameter.bits and not isinstance(expr, AffineConstantExpr):
                raise VerifyException(f"{self.name}: {parameter.name} is a literal")
            if isinstance(expr, AffineConstantExpr):
                value = expr.value
                if not parameter.least <= value <= parameter.most:
                    raise VerifyException(
                        f"{self.name}: {parameter.name} is {value}, outside {parameter.least} to {parameter.most}"
                    )
        for k, expr in enumerate(self.offsets.data.results):
            if isinstance(expr, AffineConstantExpr) and not 0 <= expr.value <= self.buffer_type(k).elements.data:
                raise VerifyException(
                    f"{self.name}: operand {k} starts at element {expr.value} of {self.buffer_type(k)}"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        reader, buffers, offsets = AffineReader(parser), list[SSAValue](), list[AffineExpr]()
        for k in range(len(instruction_of(cls).spaces)):
            if k:
                parser.parse_punctuation(",")
            buffers.append(parse_buffer(parser))
            offsets += reader.index_list()
        scalar = None
        if any(p.real for p in instruction_of(cls).parameters):
            if instruction_of(cls).spaces:
                parser.parse_punctuation(",")
            scalar = _real(parser)
        given = _given(parser, reader, instruction_of(cls))
        exprs = [
            given.get(p.name, AffineExpr.constant(p.default or 0)) for p in instruction_of(cls).parameters if not p.real
        ]
        return cls(buffers, reader.map(offsets), reader.map(exprs), reader.values, scalar)

    def print(self, printer: Printer) -> None:
        for k, (buffer, expr) in enumerate(zip(self.buffers, self.offsets.data.results, strict=True)):
            printer.print_string(", " if k else " ")
            printer.print_operand(buffer)
            printer.print_string("[")
            print_affine(printer, expr, self.values)
            printer.print_string("]")
        if self.scalar is not None:
            printer.print_string(f", {self.scalar.value.data!r}")
        shown = [
            (p.name, expr)
            for p, expr in zip(self.numbers, self.parameters.data.results, strict=True)
            if not (isinstance(expr, AffineConstantExpr) and expr.value == p.default)
        ]
        if not shown:
            return
        printer.print_string(" {")
        for k, (name, expr) in enumerate(shown):
            printer.print_string(f"{', ' if k else ''}{name} = ")
            print_affine(printer, expr, self.values)
        printer.print_string("}")


def _types_text(types: Sequence[str]) -> str:
    return f"{types[0]} <- {', '.join(types[1:])}" if len(types) > 1 else types[0]


def _taken_text(row: Instruction) -> str:
    if all(len(set(types)) == 1 for types in row.types):
        return f"all operands have one type, of {', '.join(types[0] for types in row.types)}"
    return f"it takes {'; '.join(map(_types_text, row.types))}"


def instruction_of(kind: type[QueueOp]) -> Instruction:
    """The row of the table that an operation stands for."""
    return INSTRUCTIONS[kind.name.removeprefix("davinci.")]


def _real(parser: Parser) -> float:
    """A number, `inf`, `-inf` or `nan`."""
    sign = -1.0 if parser.parse_optional_punctuation("-") else 1.0
    for word in ("inf", "nan"):
        if parser.parse_optional_keyword(word):
            return sign * float(word)
    return sign * float(parser.parse_number())


def parse_buffer(parser: Parser) -> SSAValue:
    """A buffer by name. Raises ParseError for a value that is none."""
    start = parser.pos
    unresolved = parser.parse_unresolved_operand()
    known = parser.ssa_values.get(unresolved.operand_name)
    if known is None:
        parser.raise_error(f"SSA value %{unresolved.operand_name} is used before assignment", start, parser.pos)
    value = known[0]
    if not isinstance(value.type, BufferType):
        parser.raise_error(f"%{unresolved.operand_name} is a {value.type}, not a !davinci.buffer", start, parser.pos)
    return value


def _given(parser: Parser, reader: AffineReader, row: Instruction) -> Mapping[str, AffineExpr]:
    given: dict[str, AffineExpr] = {}
    names = [p.name for p in row.parameters if not p.real]

    def one() -> None:
        start = parser.pos
        name = parser.parse_identifier()
        if name not in names:
            near = near_match(name, names)
            hint = f"; did you mean '{near}'?" if near else f"; it has {', '.join(names) or 'none'}"
            parser.raise_error(f"davinci.{row.name} has no parameter '{name}'{hint}", start, parser.pos)
        if name in given:
            parser.raise_error(f"'{name}' is given twice", start, parser.pos)
        parser.parse_punctuation("=")
        given[name] = reader.expression()

    start = parser.pos
    parser.parse_optional_comma_separated_list(parser.Delimiter.BRACES, one)
    missing = [p.name for p in row.parameters if not p.real and p.default is None and p.name not in given]
    if missing:
        parser.raise_error(f"davinci.{row.name} needs {', '.join(missing)}", start, parser.pos)
    return given


def _operation(row: Instruction) -> type[QueueOp]:
    members: dict[str, Any] = {
        "name": f"davinci.{row.name}",
        "__doc__": f"{row.pipe.name}: {row.note}.",
        "__module__": __name__,
    }
    return irdl_op_definition(cast("type[QueueOp]", type(f"{row.name}_op", (QueueOp,), members)))


QUEUE_OPS: Mapping[str, type[QueueOp]] = {name: _operation(row) for name, row in INSTRUCTIONS.items()}
"""The operation of each instruction, by the instruction's name."""


def queue_op(
    name: str,
    operands: Sequence[tuple[SSAValue, AffineExpr | int]],
    values: Sequence[SSAValue] = (),
    scalar: float | None = None,
    **parameters: AffineExpr | int,
) -> QueueOp:
    """An instruction by name; dimension k of an expression is `values[k]`. Raises KeyError for a missing parameter."""
    row = INSTRUCTIONS[name]
    exprs: list[AffineExpr] = []
    for p in row.parameters:
        if not p.real:
            value = parameters.pop(p.name) if p.name in parameters else p.default
            if value is None:
                raise KeyError(p.name)
            exprs.append(_expression(value))
    if parameters:
        raise KeyError(min(parameters))
    offsets = AffineMap(len(values), 0, tuple(_expression(offset) for _, offset in operands))
    return QUEUE_OPS[name](
        [buffer for buffer, _ in operands], offsets, AffineMap(len(values), 0, tuple(exprs)), values, scalar
    )


def _expression(value: AffineExpr | int) -> AffineExpr:
    return AffineExpr.constant(value) if isinstance(value, int) else value
