"""Loads, stores and prefetches of the `loop` dialect, of an element or of a vector, at affine indices.

    %v = loop.load %x[%n, %h * 2 + %kh, %w] : memref<1x28x28xf32>
    %v = loop.load %x[%n, %w] : memref<1x28xf32>, vector<16xf32>
    loop.store %v, %y[%n, %w] : vector<16xf32>, memref<1x28xf32>
    %v = loop.load %x[%n, 16] part 12 : memref<1x28xf32>, vector<16xf32>
    loop.prefetch %x[%n, %w] ahead 256 : memref<1x28xf32>

All indices of an access are one map over the enclosing loops' variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from msc.dialects.loop.affine_syntax import AffineReader, check_affine, print_affine
from msc.ir.typed import is_vector


class AccessOp(IRDLOperation):
    """What loads and stores share: a buffer, an affine index into it, and for vectors the step between lanes.

    A vector access touches `index + k * lanes` for lane k; `lanes` defaults to one along the last dimension. Of a part,
    only the first lanes touch memory: the others are loaded as zeros, and not stored.
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

    @property
    def is_contiguous(self) -> bool:
        """Whether the lanes of a vector lie side by side."""
        *outer, last = self.lane_steps or (0,)
        return last == 1 and not any(outer)

    @property
    def touched_lanes(self) -> int:
        """How many elements are read or written."""
        given = self.properties.get("part")
        return cast("IntegerAttr[IntegerType]", given).value.data if given is not None else self.all_lanes

    @property
    def all_lanes(self) -> int:
        """The lanes of the vector loaded or stored; 1 for an element."""
        value = self.results[0] if self.results else self.operands[0]
        return value.type.get_shape()[0] if is_vector(value.type) else 1

    def _first_index(self) -> int:
        raise TypeError(f"{self.name} does not say where its indices are")

    def verify_access(self, element: Attribute) -> None:
        """Shared verification; `element` is the type loaded or stored."""
        type_ = self.buffer.type
        if not isinstance(type_, MemRefType):
            raise VerifyException(f"{self.name}: {type_} is not a memref")
        buffer = cast(MemRefType[Attribute], type_)
        check_affine(self.name, self.map, len(self.indices))
        if len(self.map.results) != len(buffer.get_shape()) or self.map.num_dims != len(self.indices):
            raise VerifyException(f"{self.name}: index {self.map} does not fit {buffer}")
        scalar = cast(VectorType[Attribute], element).element_type if isinstance(element, VectorType) else element
        if scalar != buffer.element_type:
            raise VerifyException(f"{self.name}: {element} is not made of the elements of {buffer}")
        if len(self.lane_steps) != len(buffer.get_shape()):
            raise VerifyException(f"{self.name}: lanes {self.lane_steps} do not fit {buffer}")
        if "part" in self.properties and not (any(self.lane_steps) and 1 <= self.touched_lanes < self.all_lanes):
            raise VerifyException(f"{self.name}: {self.touched_lanes} lanes are no part of {element} in several places")

    def print_index(self, printer: Printer) -> None:
        printer.print_operand(self.buffer)
        printer.print_string("[")
        printer.print_list(self.map.results, lambda e: print_affine(printer, e, self.indices))
        printer.print_string("]")
        if "lanes" in self.properties:
            printer.print_string(f" lanes {list(self.lane_steps)}")
        if "part" in self.properties:
            printer.print_string(f" part {self.touched_lanes}")
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")


def access_properties(map_: AffineMap, lanes: Sequence[int] | None, part: int | None) -> dict[str, Attribute]:
    """The properties of a load or store; lanes are left out where they are the default."""
    properties: dict[str, Attribute] = {"index": AffineMapAttr(map_)}
    rank = len(map_.results)
    if lanes is not None and tuple(lanes) != (*[0] * (rank - 1), 1)[:rank]:
        properties["lanes"] = DenseArrayBase.from_list(i64, list(lanes))
    if part is not None:
        properties["part"] = IntegerAttr(part, i64)
    return properties


@dataclass(frozen=True)
class _Index:
    """What stands between an access's buffer and its types."""

    values: Sequence[SSAValue]
    map: AffineMap
    lanes: list[int] | None
    part: int | None
    attributes: dict[str, Attribute]


def _parse_index(parser: Parser) -> _Index:
    reader = AffineReader(parser)
    exprs = reader.index_list()
    lanes = part = None
    if parser.parse_optional_keyword("lanes"):
        lanes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    if parser.parse_optional_keyword("part"):
        part = parser.parse_integer()
    map_ = reader.map(exprs)
    return _Index(reader.values, map_, lanes, part, parser.parse_optional_attr_dict())


@irdl_op_definition
class LoadOp(AccessOp):
    """Load an element, or a vector of elements, at an affine index."""

    name = "loop.load"
    source = operand_def(MemRefType)
    index_values = var_operand_def(IndexType)
    index = prop_def(AffineMapAttr)
    lanes = opt_prop_def(DenseArrayBase)
    part = opt_prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        source: SSAValue | Operation,
        map_: AffineMap,
        indices: Sequence[SSAValue],
        result_type: Attribute,
        lanes: Sequence[int] | None = None,
        part: int | None = None,
    ):
        # Without sorting by the definition, as in ForOp
        Operation.__init__(
            self,
            operands=[SSAValue.get(source), *indices],
            properties=access_properties(map_, lanes, part),
            result_types=[result_type],
        )

    def _first_index(self) -> int:
        return 1

    def verify_(self) -> None:
        self.verify_access(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parser.parse_unresolved_operand()
        index = _parse_index(parser)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        result = parser.parse_type() if parser.parse_optional_punctuation(",") else None
        if not isinstance(type_, MemRefType):
            parser.raise_error(f"loop.load reads a memref, not {type_}")
        memref = cast(MemRefType[Attribute], type_)
        element = memref.element_type if result is None else result
        buffer = parser.resolve_operand(source, memref)
        op = cls(buffer, index.map, index.values, element, index.lanes, index.part)
        op.attributes |= index.attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        self.print_index(printer)
        printer.print_attribute(self.source.type)
        result: Attribute = self.result.type
        if isinstance(result, VectorType):
            printer.print_string(", ")
            printer.print_attribute(cast(VectorType[Attribute], result))


@irdl_op_definition
class StoreOp(AccessOp):
    """Store an element, or a vector of elements, at an affine index."""

    name = "loop.store"
    value = operand_def()
    target = operand_def(MemRefType)
    index_values = var_operand_def(IndexType)
    index = prop_def(AffineMapAttr)
    lanes = opt_prop_def(DenseArrayBase)
    part = opt_prop_def(IntegerAttr)
    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self,
        value: SSAValue | Operation,
        target: SSAValue | Operation,
        map_: AffineMap,
        indices: Sequence[SSAValue],
        lanes: Sequence[int] | None = None,
        part: int | None = None,
    ):
        # Without sorting by the definition, as in ForOp
        Operation.__init__(
            self,
            operands=[SSAValue.get(value), SSAValue.get(target), *indices],
            properties=access_properties(map_, lanes, part),
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
        index = _parse_index(parser)
        parser.parse_punctuation(":")
        value_type = parser.parse_type()
        parser.parse_punctuation(",")
        target_type = parser.parse_type()
        values = parser.resolve_operand(value, value_type), parser.resolve_operand(target, target_type)
        op = cls(*values, index.map, index.values, index.lanes, index.part)
        op.attributes |= index.attributes
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
class PrefetchOp(AccessOp):
    """Ask for the memory `ahead` elements after an affine index: a hint, which may lie past the buffer.

    `ahead` is an affine expression over the same values.
    """

    name = "loop.prefetch"
    source = operand_def(MemRefType)
    index_values = var_operand_def(IndexType)
    index = prop_def(AffineMapAttr)
    ahead_map = prop_def(AffineMapAttr, prop_name="ahead")

    def __init__(
        self, source: SSAValue | Operation, map_: AffineMap, indices: Sequence[SSAValue], ahead: int | AffineExpr
    ):
        expr = AffineExpr.constant(ahead) if isinstance(ahead, int) else ahead
        super().__init__(
            operands=[source, list(indices)],
            properties={"index": AffineMapAttr(map_), "ahead": AffineMapAttr(AffineMap(map_.num_dims, 0, (expr,)))},
        )

    @property
    def ahead(self) -> AffineExpr:
        """Elements after the index, over the values that the index is over."""
        return self.ahead_map.data.results[0]

    def _first_index(self) -> int:
        return 1

    def verify_(self) -> None:
        self.verify_access(cast(MemRefType[Attribute], self.source.type).element_type)
        check_affine(self.name, self.ahead_map.data, len(self.indices))
        if len(self.ahead_map.data.results) != 1:
            raise VerifyException(f"{self.name}: how far ahead is one expression over the values of the index")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parser.parse_unresolved_operand()
        reader = AffineReader(parser)
        index = reader.index_list()
        parser.parse_keyword("ahead")
        ahead = reader.expression()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls(parser.resolve_operand(source, parser.parse_type()), reader.map(index), reader.values, ahead)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        printer.print_string("[")
        printer.print_list(self.map.results, lambda e: print_affine(printer, e, self.indices))
        printer.print_string("] ahead ")
        print_affine(printer, self.ahead, self.indices)
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
