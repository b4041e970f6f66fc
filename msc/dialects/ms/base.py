"""What every `ms` operation is: an inferred result type, one custom syntax, and for basic ones a compute definition.

    %r = ms.conv2d %x, %w {pad_mode = "valid"} : (tensor<...>, tensor<...>) -> tensor<...>

The type part may be left out; it is inferred, so operands must stand before the operation. Properties are written as
plain values (`[2, 2]`, `1e-05`, `"valid"`, `true`); those that have their default value are not printed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import NoneType, TensorType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue, SSAValues
from xdsl.irdl import IRDLOperation, VarResultDef, operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from msc.dialects.element_types import ELEMENT_TYPES, FAMILIES, dtype_name
from msc.dialects.ms.properties import Plain, PlainValue, conform, from_attribute, to_attribute
from msc.dialects.ms.shapes import same_shape, shape_of, shape_text
from msc.dialects.ms.syntax import group_operands, parse_operation, print_operation
from msc.ir.errors import DtypeConflict, InvalidAttribute, ShapeConflict
from msc.poly.compute import Statement
from msc.support.diagnostics import near_match


class MsOp(IRDLOperation):
    """Base of all `ms` operations. A subclass declares operands, properties and results as IRDL does, and `infer`."""

    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Legal words of the string properties."""

    EXAMPLE: ClassVar[str] = ""
    """Operand types and properties of a typical use; T stands for any element type: `4x8xT 8x2xT {axis = 1}`."""

    traits = traits_def(Pure())

    def __init__(
        self,
        *operands: SSAValue | Operation | None,
        result_types: Sequence[Attribute] | None = None,
        **properties: PlainValue | None,
    ):
        """Build the operation; absent optional operands are None; result types are inferred unless given."""
        declared = self.get_irdl_definition().properties
        attributes = {
            name: conform(declared.get(name), to_attribute(value))
            for name, value in properties.items()
            if value is not None
        }
        self.initialise(operands, attributes, {}, result_types)

    def initialise(
        self,
        operands: Sequence[SSAValue | Operation | None],
        properties: Mapping[str, Attribute],
        attributes: Mapping[str, Attribute],
        result_types: Sequence[Attribute] | None,
    ) -> None:
        """What `__init__` and the parser share: build from attributes, then give the results their types."""
        definition = self.get_irdl_definition()
        IRDLOperation.__init__(
            self,
            operands=group_operands(definition, operands),
            result_types=[() if isinstance(d, VarResultDef) else NoneType() for _, d in definition.results],
            properties=dict(properties),
            attributes=dict(attributes),
        )
        self._verify_choices()
        self.set_result_types(result_types if result_types is not None else self.infer())

    def set_result_types(self, types: Sequence[Attribute]) -> None:
        """Give the results new types in place, keeping their uses and name hints."""
        old = tuple(self.results)
        self.results = SSAValues(OpResult(type_, self, i) for i, type_ in enumerate(types))
        for before, after in zip(old, self.results, strict=False):
            after.name_hint = before.name_hint
            before.replace_all_uses_with(after)

    # What a subclass says about itself.

    @property
    def is_basic(self) -> bool:
        """Whether the scheduler understands the operation as it stands; any other is expanded, or is a mere view."""
        return False

    @abstractmethod
    def infer(self) -> Sequence[TensorType[Attribute]]:
        """Result types from operand types and properties; raises ShapeConflict, DtypeConflict or InvalidAttribute."""
        raise TypeError(f"{self.name} does not say what its results are")

    def verify_(self) -> None:
        self._verify_choices()
        types = self.infer()
        if len(types) != len(self.results):
            raise ShapeConflict(f"{self.name} is declared with {len(self.results)} results, but gives {len(types)}")
        for declared, inferred in zip(self.result_types, types, strict=True):
            if not compatible(declared, inferred):
                raise ShapeConflict(f"{self.name} is declared to give {declared}, but its operands give {inferred}")

    def _verify_choices(self) -> None:
        for name, words in self.CHOICES.items():
            value = str(self.plain(name))
            if value not in words:
                near = near_match(value, words)
                raise InvalidAttribute(
                    f"{self.name}: {name} is {value!r}, not one of {', '.join(map(repr, words))}"
                    + (f"; did you mean {near!r}?" if near else "")
                )

    # Reading operands and properties.

    def tensor(self, index: int) -> TensorType[Attribute]:
        """Type of operand `index`."""
        type_ = self.operands[index].type
        if not isinstance(type_, TensorType):
            raise DtypeConflict(f"{self.name}: operand {index} is a {type_}, not a tensor")
        return cast(TensorType[Attribute], type_)

    def shape(self, index: int) -> tuple[int, ...]:
        """Shape of operand `index`; -1 where unknown."""
        return shape_of(self.tensor(index))

    def expect_rank(self, index: int, *ranks: int) -> tuple[int, ...]:
        """Shape of operand `index`, which has one of `ranks`; raises ShapeConflict."""
        shape = self.shape(index)
        if len(shape) not in ranks:
            wanted = " or ".join(map(str, ranks))
            raise ShapeConflict(
                f"{self.name}: operand {index} is {shape_text(shape)}, of rank {len(shape)}; the rank must be {wanted}"
            )
        return shape

    def expect_shape(self, index: int, shape: tuple[int, ...], what: str) -> None:
        """Check that operand `index`, called `what`, has `shape`; raises ShapeConflict with both."""
        if not same_shape(self.shape(index), shape):
            raise ShapeConflict(
                f"{self.name}: the {what} is {shape_text(self.shape(index))}, but {shape_text(self.shape(0))} "
                f"needs {shape_text(shape)}"
            )

    def expect_dtype(self, index: int, family: str) -> str:
        """Element type of operand `index`, which belongs to a family of FAMILIES; raises DtypeConflict."""
        dtype = self.dtype(index)
        if dtype not in FAMILIES[family]:
            raise DtypeConflict(
                f"{self.name}: operand {index} has element type {dtype}, but must be {family}: "
                + ", ".join(sorted(FAMILIES[family]))
            )
        return dtype

    def expect_one_dtype(self, family: str = "any") -> str:
        """The element type that all operands share, of a family; raises DtypeConflict."""
        dtypes = [self.dtype(i) for i in range(len(self.operands))]
        if len(set(dtypes)) > 1:
            raise DtypeConflict(
                f"{self.name}: operands have element types {' and '.join(dtypes)}",
                help="convert one with ms.cast, in Python with x.astype(msc.float32)",
            )
        return self.expect_dtype(0, family)

    def dtype(self, index: int) -> str:
        """Name of the element type of operand `index`: "f32", "i64", ..."""
        element = self.tensor(index).element_type
        name = dtype_name(element)
        if name not in ELEMENT_TYPES:
            raise DtypeConflict(
                f"{self.name}: operand {index} has element type {element}, which msc does not compute on"
            )
        return name

    def result_tensor(self, index: int = 0) -> TensorType[Attribute]:
        """Type of result `index`."""
        return cast(TensorType[Attribute], self.results[index].type)

    def result_shape(self, index: int = 0) -> tuple[int, ...]:
        return shape_of(self.result_tensor(index))

    def result_dtype(self, index: int = 0) -> str:
        return cast(str, dtype_name(self.result_tensor(index).element_type))

    def plain(self, name: str) -> Plain | None:
        """A property as a plain Python value; None if an optional one is absent."""
        attribute = self.properties.get(name)
        return None if attribute is None else from_attribute(attribute)

    def ints(self, name: str) -> tuple[int, ...]:
        """A list property as integers; empty if absent."""
        return cast(tuple[int, ...], self.plain(name) or ())

    def int_(self, name: str) -> int:
        return cast(int, self.plain(name))

    def real(self, name: str) -> float:
        return cast(float, self.plain(name))

    def flag(self, name: str) -> bool:
        return cast(bool, self.plain(name))

    def word(self, name: str) -> str:
        return cast(str, self.plain(name))

    # The one syntax.

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        written = parse_operation(parser, cls.get_irdl_definition())
        op = cls.__new__(cls)
        op.initialise(written.operands, written.properties, written.attributes, written.result_types)
        return op

    def print(self, printer: Printer) -> None:
        print_operation(printer, self)


class TensorOp(MsOp):
    """An operation that gives one tensor."""

    result = result_def(TensorType)


class BasicOp(MsOp):
    """An operation that the scheduler understands: it states its computation."""

    @property
    def is_basic(self) -> bool:
        """True, unless a subclass needs some of its forms expanded first (padding, bias)."""
        return True

    @abstractmethod
    def compute(self) -> Sequence[Statement]:
        """The statements that define every element of every result, in order; shapes must be static."""
        raise TypeError(f"{self.name} does not say what it computes")


class BasicTensorOp(TensorOp, BasicOp):
    """A basic operation that gives one tensor."""


class ViewOp(TensorOp):
    """An operation that computes nothing: the result has the operand's bytes in the operand's order, another shape."""

    x = operand_def(TensorType)


def compatible(declared: Attribute, inferred: Attribute) -> bool:
    """Whether a declared tensor type agrees with an inferred one; unknown dimensions agree with all."""
    if not isinstance(declared, TensorType) or not isinstance(inferred, TensorType):
        return declared == inferred
    a, b = cast(TensorType[Attribute], declared), cast(TensorType[Attribute], inferred)
    return a.element_type == b.element_type and same_shape(shape_of(a), shape_of(b))
