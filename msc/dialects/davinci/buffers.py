"""Memories of a core: the type of a buffer, and where a kernel places it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    IntAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    param_def,
    prop_def,
    result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from msc.targets.davinci_isa import DTYPES, Space

_TYPES: dict[str, Attribute] = {
    "f16": Float16Type(),
    "bf16": BFloat16Type(),
    "f32": Float32Type(),
    "i8": IntegerType(8),
    "ui8": IntegerType(8, Signedness.UNSIGNED),
    "i16": IntegerType(16),
    "i32": IntegerType(32),
    "ui32": IntegerType(32, Signedness.UNSIGNED),
}


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """`!davinci.buffer<ub, f16, 16384>`: so many elements in one of the memories of `msc.targets.davinci_isa.Space`."""

    name = "davinci.buffer"
    space: IntAttr = param_def()
    element: Attribute = param_def()
    elements: IntAttr = param_def()

    @classmethod
    def of(cls, space: Space, dtype: str, elements: int) -> BufferType:
        """By the names of the instruction table."""
        return cls(IntAttr(int(space)), _TYPES[dtype], IntAttr(elements))

    @property
    def memory(self) -> Space:
        """Where it lies."""
        return Space(self.space.data)

    @property
    def dtype(self) -> str:
        """The element type by name."""
        return next(name for name, type_ in _TYPES.items() if type_ == self.element)

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.elements.data * DTYPES[self.dtype]

    def verify(self) -> None:
        """Raise VerifyException for an element type that no core has, or a size that is none."""
        if self.element not in _TYPES.values():
            raise VerifyException(f"davinci.buffer: no element type {self.element}; there are {', '.join(_TYPES)}")
        if self.elements.data < 1:
            raise VerifyException(f"davinci.buffer: {self.elements.data} elements")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            space = _space(parser)
            parser.parse_punctuation(",")
            element = parser.parse_type()
            parser.parse_punctuation(",")
            return [IntAttr(int(space)), element, IntAttr(parser.parse_integer(allow_boolean=False))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.memory.name}, ")
            printer.print_attribute(self.element)
            printer.print_string(f", {self.elements.data}")


def _space(parser: AttrParser) -> Space:
    word = parser.parse_identifier()
    if word not in Space.__members__:
        parser.raise_error(f"there is no memory '{word}'; there are {', '.join(Space.__members__)}")
    return Space[word]


@irdl_op_definition
class AllocOp(IRDLOperation):
    """A buffer at a byte address of its memory: `%a = davinci.alloc at 0 : !davinci.buffer<ub, f16, 16384>`.

    `davinci.alloc at 0 overlapping : ...` may share bytes with other buffers.
    """

    name = "davinci.alloc"
    address = prop_def(IntegerAttr)
    overlapping = opt_prop_def(UnitAttr)
    buffer = result_def(BufferType)

    def __init__(self, address: int, buffer: BufferType, *, overlapping: bool = False):
        properties = {"address": IntegerAttr(address, i64), "overlapping": UnitAttr() if overlapping else None}
        super().__init__(properties=properties, result_types=[buffer])

    @property
    def is_overlapping(self) -> bool:
        """Whether it may share bytes with other buffers."""
        return self.overlapping is not None

    @property
    def end(self) -> int:
        """The byte behind it."""
        return self.address.value.data + self.type.bytes

    def shares(self, other: AllocOp) -> bool:
        """Whether it has bytes in common with another."""
        if self.type.memory is not other.type.memory:
            return False
        return self.address.value.data < other.end and other.address.value.data < self.end

    @property
    def type(self) -> BufferType:
        """The type of the buffer."""
        assert isinstance(self.buffer.type, BufferType)
        return self.buffer.type

    def verify_(self) -> None:
        if self.type.memory is Space.gm:
            raise VerifyException("davinci.alloc: global memory comes in as an argument")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        parser.parse_keyword("at")
        address = parser.parse_integer(allow_boolean=False)
        overlapping = parser.parse_optional_keyword("overlapping") is not None
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not isinstance(type_, BufferType):
            parser.raise_error(f"davinci.alloc makes a !davinci.buffer, not a {type_}")
        return cls(address, type_, overlapping=overlapping)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" at {self.address.value.data}{' overlapping' if self.is_overlapping else ''} : ")
        printer.print_attribute(self.type)
