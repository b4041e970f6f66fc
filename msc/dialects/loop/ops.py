"""Operations of the `loop` dialect: what upstream scf and memref lack for scheduled loop nests.

    loop.for %i = 0 to 28 step 4 unroll "oh" { ... }
    %v = loop.load %x[%n, %h * 2 + %kh, %w] : memref<1x28x28xf32>
    %v = loop.load %x[%n, %w] : memref<1x28xf32>, vector<16xf32>
    loop.store %v, %y[%n, %w] : vector<16xf32>, memref<1x28xf32>

Bounds and indices are affine expressions of enclosing loops' variables, kept as one map an operation, so that the IR stays
compact; `convert-loop-to-scf` spells them out in upstream dialects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    VectorType,
    i64,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
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
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, NoTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from msc.dialects.loop.affine_syntax import AffineReader, print_affine


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
    label = opt_prop_def(StringAttr)
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
    ):
        super().__init__(
            operands=[list(values)],
            properties={
                "lower": AffineMapAttr(lower),
                "upper": AffineMapAttr(upper),
                "step": IntegerAttr(step, i64),
                "kind": LoopKindAttr(kind),
                "label": StringAttr(label) if label else None,
            },
            regions=[body if body is not None else Region(Block(arg_types=[IndexType()]))],
        )

    @property
    def variable(self) -> BlockArgument:
        """The loop variable."""
        return self.body.block.args[0]

    @property
    def constant_range(self) -> range | None:
        """The iterations, if both bounds are constant."""
        if self.values:
            return None
        lower = max(self.lower.data.eval((), ()))
        return range(lower, min(self.upper.data.eval((), ())), self.step.value.data)

    def verify_(self) -> None:
        for bound in (self.lower.data, self.upper.data):
            if bound.num_dims != len(self.values) or bound.num_symbols or not bound.results:
                raise VerifyException("loop.for: a bound is a map over the operands, with one result or more")
        if self.step.value.data < 1:
            raise VerifyException(f"loop.for: step {self.step.value.data} is not positive")
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
        label = parser.parse_optional_str_literal()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region([variable.resolve(IndexType())])
        op = cls(reader.map(lower), reader.map(upper), reader.values, step, kind, label, body)
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
        if self.label is not None:
            printer.print_string(" ")
            printer.print_string_literal(self.label.data)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


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


class AccessOp(IRDLOperation):
    """What loads and stores share: a buffer, an affine index into it, and for vectors the step between lanes.

    A vector access touches `index + k * lanes` for lane k; `lanes` defaults to one along the last dimension.
    """

    @property
    def buffer(self) -> SSAValue:
        return self.operands[self._first_index() - 1]

    @property
    def indices(self) -> Sequence[SSAValue]:
        """The index values that the map's dimensions stand for."""
        return self.operands[self._first_index() :]

    @property
    def map(self) -> AffineMap:
        return cast(AffineMapAttr, self.properties["index"]).data

    @property
    def lane_steps(self) -> tuple[int, ...]:
        """Elements between lanes along each dimension of the buffer."""
        rank = len(self.map.results)
        given = self.properties.get("lanes")
        if isinstance(given, DenseArrayBase):
            return tuple(int(v) for v in given.get_values())
        return (*[0] * (rank - 1), 1)[:rank]

    def _first_index(self) -> int:
        raise TypeError(f"{self.name} does not say where its indices are")

    def verify_access(self, element: Attribute) -> None:
        """Shared verification; `element` is the type loaded or stored."""
        buffer = self.buffer.type
        if not isinstance(buffer, MemRefType):
            raise VerifyException(f"{self.name}: {buffer} is not a memref")
        if len(self.map.results) != len(buffer.get_shape()) or self.map.num_dims != len(self.indices):
            raise VerifyException(f"{self.name}: index {self.map} does not fit {buffer}")
        scalar = element.element_type if isinstance(element, VectorType) else element
        if scalar != buffer.element_type:
            raise VerifyException(f"{self.name}: {element} is not made of the elements of {buffer}")
        if len(self.lane_steps) != len(buffer.get_shape()):
            raise VerifyException(f"{self.name}: lanes {self.lane_steps} do not fit {buffer}")

    def print_index(self, printer: Printer) -> None:
        printer.print_operand(self.buffer)
        printer.print_string("[")
        printer.print_list(self.map.results, lambda e: print_affine(printer, e, self.indices))
        printer.print_string("]")
        if "lanes" in self.properties:
            printer.print_string(f" lanes {list(self.lane_steps)}")
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")


def access_properties(map_: AffineMap, lanes: Sequence[int] | None) -> dict[str, Attribute]:
    """The properties of a load or store; lanes are left out where they are the default."""
    properties: dict[str, Attribute] = {"index": AffineMapAttr(map_)}
    rank = len(map_.results)
    if lanes is not None and tuple(lanes) != (*[0] * (rank - 1), 1)[:rank]:
        properties["lanes"] = DenseArrayBase.from_list(i64, list(lanes))
    return properties


def _parse_index(parser: Parser) -> tuple[AffineReader, AffineMap, list[int] | None, dict[str, Attribute]]:
    reader = AffineReader(parser)
    exprs = reader.index_list()
    lanes = None
    if parser.parse_optional_keyword("lanes"):
        lanes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    return reader, reader.map(exprs), lanes, parser.parse_optional_attr_dict()


@irdl_op_definition
class LoadOp(AccessOp):
    """Load an element, or a vector of elements, at an affine index."""

    name = "loop.load"
    source = operand_def(MemRefType)
    index_values = var_operand_def(IndexType)
    index = prop_def(AffineMapAttr)
    lanes = opt_prop_def(DenseArrayBase)
    result = result_def()
    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        source: SSAValue | Operation,
        map_: AffineMap,
        indices: Sequence[SSAValue],
        result_type: Attribute,
        lanes: Sequence[int] | None = None,
    ):
        super().__init__(
            operands=[source, list(indices)],
            properties=dict(access_properties(map_, lanes)),
            result_types=[result_type],
        )

    def _first_index(self) -> int:
        return 1

    def verify_(self) -> None:
        self.verify_access(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parser.parse_unresolved_operand()
        reader, map_, lanes, attributes = _parse_index(parser)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        result = parser.parse_type() if parser.parse_optional_punctuation(",") else None
        if not isinstance(type_, MemRefType):
            parser.raise_error(f"loop.load reads a memref, not {type_}")
        element = cast(MemRefType[Attribute], type_).element_type if result is None else result
        op = cls(parser.resolve_operand(source, type_), map_, reader.values, element, lanes)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        self.print_index(printer)
        printer.print_attribute(self.source.type)
        if isinstance(self.result.type, VectorType):
            printer.print_string(", ")
            printer.print_attribute(self.result.type)


@irdl_op_definition
class StoreOp(AccessOp):
    """Store an element, or a vector of elements, at an affine index."""

    name = "loop.store"
    value = operand_def()
    target = operand_def(MemRefType)
    index_values = var_operand_def(IndexType)
    index = prop_def(AffineMapAttr)
    lanes = opt_prop_def(DenseArrayBase)
    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self,
        value: SSAValue | Operation,
        target: SSAValue | Operation,
        map_: AffineMap,
        indices: Sequence[SSAValue],
        lanes: Sequence[int] | None = None,
    ):
        super().__init__(
            operands=[value, target, list(indices)],
            properties=dict(access_properties(map_, lanes)),
        )

    def _first_index(self) -> int:
        return 2

    def verify_(self) -> None:
        self.verify_access(self.value.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        target = parser.parse_unresolved_operand()
        reader, map_, lanes, attributes = _parse_index(parser)
        parser.parse_punctuation(":")
        value_type = parser.parse_type()
        parser.parse_punctuation(",")
        target_type = parser.parse_type()
        values = parser.resolve_operand(value, value_type), parser.resolve_operand(target, target_type)
        op = cls(*values, map_, reader.values, lanes)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(", ")
        self.print_index(printer)
        printer.print_attribute(self.value.type)
        printer.print_string(", ")
        printer.print_attribute(self.target.type)


@irdl_op_definition
class ApplyOp(IRDLOperation):
    """The value of an affine expression as an index: `%r = loop.apply %i * 2 + %j`."""

    name = "loop.apply"
    values = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    result = result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, map_: AffineMap, values: Sequence[SSAValue]):
        super().__init__(
            operands=[list(values)], properties={"map": AffineMapAttr(map_)}, result_types=[IndexType()]
        )

    def verify_(self) -> None:
        if self.map.data.num_dims != len(self.values) or len(self.map.data.results) != 1:
            raise VerifyException("loop.apply: one expression of the operands")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        reader = AffineReader(parser)
        expr = reader.expression()
        return cls(reader.map([expr]), reader.values)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_affine(printer, self.map.data.results[0], self.values)


@irdl_op_definition
class LanesOp(IRDLOperation):
    """An upstream operation, lane by lane, that xDSL's dialects lack or do not take on vectors.

    `loop.lanes "arith.cmpf" %a, %b {predicate = 4 : i64} : (vector<8xf32>, vector<8xf32>) -> vector<8xi1>`; on scalars too.
    """

    name = "loop.lanes"
    arguments = var_operand_def()
    operation = prop_def(StringAttr)
    predicate = opt_prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$operation $arguments attr-dict `:` functional-type(operands, results)"

    def __init__(
        self, operation: str, arguments: Sequence[SSAValue], result_type: Attribute, predicate: IntegerAttr | None = None
    ):
        super().__init__(
            operands=[list(arguments)],
            properties={"operation": StringAttr(operation), "predicate": predicate},
            result_types=[result_type],
        )
