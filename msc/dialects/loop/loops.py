"""The loops of the `loop` dialect: what upstream scf lacks for scheduled loop nests.

    loop.for %i = 0 to 28 step 4 unroll "oh" { ... }

Bounds are affine expressions of enclosing loops' variables, kept as one map an operation, so that the IR stays compact;
`convert-loop-to-scf` spells them out in upstream dialects.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Self

from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, IntegerType, MemRefType, StringAttr, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineExpr, AffineMap
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from msc.dialects.loop.affine_syntax import AffineReader, check_affine, print_affine
from msc.ir.typed import memref_type


class LoopKind(StrEnum):
    """How the iterations of a loop run."""

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"
    """Iterations are independent; threads share them."""
    VECTOR = "vector"
    """Iterations are lanes; only before `vectorize`."""
    UNROLL = "unroll"
    """A small constant number of iterations, unrolled in C."""


@irdl_attr_definition
class LoopKindAttr(EnumAttribute[LoopKind], SpacedOpaqueSyntaxAttribute):
    """The kind of a loop as an attribute."""

    name = "loop.kind"


@irdl_op_definition
class ForOp(IRDLOperation):
    """`for (i = max(lower); i < min(upper); i += step)`; `lower` and `upper` are maps over `values`."""

    name = "loop.for"
    values = var_operand_def(IndexType)
    lower = prop_def(AffineMapAttr)
    upper = prop_def(AffineMapAttr)
    step = prop_def(IntegerAttr, default_value=IntegerAttr(1, i64))
    kind = prop_def(LoopKindAttr, default_value=LoopKindAttr(LoopKind.SEQUENTIAL))
    least = opt_prop_def(IntegerAttr)
    """Iterations from which threads share a parallel loop; without it always."""
    label = opt_prop_def(StringAttr)
    unit = opt_prop_def(StringAttr)
    """The unit of the machine that performs it and all below it, where it has one."""
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(
        self,
        lower: AffineMap,
        upper: AffineMap,
        values: Sequence[SSAValue] = (),
        step: int = 1,
        kind: LoopKind = LoopKind.SEQUENTIAL,
        label: str | None = None,
        body: Region | None = None,
        least: int = 0,
        unit: str = "",
    ):
        properties: dict[str, Attribute] = {
            "lower": AffineMapAttr(lower),
            "upper": AffineMapAttr(upper),
            "step": _number(step),
            "kind": _kind(kind),
        }
        if label:
            properties["label"] = StringAttr(label)
        if least:
            properties["least"] = _number(least)
        if unit:
            properties["unit"] = StringAttr(unit)
        # Operands in one group need no sorting by the definition, which takes most of the time to make an operation
        Operation.__init__(
            self,
            operands=list(values),
            properties=properties,
            regions=[body if body is not None else Region(Block(arg_types=[IndexType()]))],
        )

    @property
    def variable(self) -> BlockArgument:
        """The loop variable."""
        return self.regions[0].block.args[0]

    @property
    def constant_range(self) -> range | None:
        """The iterations, if both bounds are constant."""
        if self.operands:
            return None
        return range(max(_constants(self.lower.data)), min(_constants(self.upper.data)), self.step.value.data)

    @property
    def most_iterations(self) -> int | None:
        """How many iterations run at most, if both bounds are constant or one is an end so far from the lower one."""
        iterations = self.constant_range
        if iterations is not None:
            return len(iterations)
        if len(self.lower.data.results) != 1:
            return None
        distances = [_distance(self.lower.data.results[0], end) for end in self.upper.data.results]
        lengths = [-(-distance // self.step.value.data) for distance in distances if distance is not None]
        return max(0, min(lengths)) if lengths else None

    def verify_(self) -> None:
        for bound in (self.lower.data, self.upper.data):
            check_affine(self.name, bound, len(self.values))
            if not bound.results:
                raise VerifyException("loop.for: a bound is a map over the operands, with one result or more")
        if self.step.value.data < 1:
            raise VerifyException(f"loop.for: step {self.step.value.data} is not positive")
        if self.least is not None and (self.kind.data is not LoopKind.PARALLEL or self.least.value.data < 2):
            raise VerifyException("loop.for: threads share parallel loops, from 2 iterations on or more")
        if [a.type for a in self.body.block.args] != [IndexType()]:
            raise VerifyException("loop.for: the body has one index argument")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        variable = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        reader = AffineReader(parser)
        lower = _parse_bound(reader, "max")
        parser.parse_keyword("to")
        upper = _parse_bound(reader, "min")
        step = parser.parse_integer() if parser.parse_optional_keyword("step") else 1
        kind = next((k for k in LoopKind if parser.parse_optional_keyword(k)), LoopKind.SEQUENTIAL)
        least = parser.parse_integer() if parser.parse_optional_keyword("from") else 0
        label = parser.parse_optional_str_literal()
        unit = parser.parse_str_literal() if parser.parse_optional_keyword("unit") else ""
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region([variable.resolve(IndexType())])
        op = cls(reader.map(lower), reader.map(upper), reader.values, step, kind, label, body, least, unit)
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_block_argument(self.variable, print_type=False)
        printer.print_string(" = ")
        _print_bound(printer, "max", self.lower.data, self.values)
        printer.print_string(" to ")
        _print_bound(printer, "min", self.upper.data, self.values)
        if self.step.value.data != 1:
            printer.print_string(f" step {self.step.value.data}")
        if self.kind.data is not LoopKind.SEQUENTIAL:
            printer.print_string(f" {self.kind.data}")
        if self.least is not None:
            printer.print_string(f" from {self.least.value.data}")
        if self.label is not None:
            printer.print_string(" ")
            printer.print_string_literal(self.label.data)
        if self.unit is not None:
            printer.print_string(" unit ")
            printer.print_string_literal(self.unit.data)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@cache
def _number(value: int) -> IntegerAttr[IntegerType]:
    return IntegerAttr(value, i64)


@cache
def _kind(kind: LoopKind) -> LoopKindAttr:
    return LoopKindAttr(kind)


def _constants(bound: AffineMap) -> list[int]:
    """The values of a map over nothing."""
    return [e.value if type(e) is AffineConstantExpr else e.eval((), ()) for e in bound.results]


def _distance(first: AffineExpr, end: AffineExpr) -> int | None:
    """From an expression to itself and a constant."""
    match end:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, AffineConstantExpr(value)) if lhs == first:
            return value
        case _:
            return None


def _parse_bound(reader: AffineReader, word: str) -> list[AffineExpr]:
    if reader.parser.parse_optional_keyword(word):
        return reader.parser.parse_comma_separated_list(reader.parser.Delimiter.PAREN, reader.expression)
    return [reader.expression()]


def _print_bound(printer: Printer, word: str, bound: AffineMap, values: Sequence[SSAValue]) -> None:
    if len(bound.results) == 1:
        print_affine(printer, bound.results[0], values)
        return
    printer.print_string(f"{word}(")
    printer.print_list(bound.results, lambda e: print_affine(printer, e, values))
    printer.print_string(")")


# Slices of buffers along the first axis: `%e = loop.slice %x[%i] : memref<8x2x4xf32>`, a memref<2x4xf32>.
#
# The bytes of x from `i` times the size of a slice on. Upstream has no such view: its memref.subview keeps the offset
# in the type, so that a function takes either whole buffers or slices.
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
