"""Constants and parameters: where the values come from that are not computed.

Weights are never in the text. `ms.parameter` names a tensor of the module's safetensors file; with a region it is a
derived parameter, computed once at compile time from other parameters, so that all work on weights is IR too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

from xdsl.dialects.builtin import (
    AnyDenseElement,
    DenseIntOrFPElementsAttr,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_region_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from msc.dialects.ms.base import TensorOp, compatible
from msc.ir.errors import InvalidAttribute, InvalidStructure, ShapeConflict
from msc.support.diagnostics import did_you_mean

INLINE_CONSTANT_BYTES = 4096
"""Larger data belongs into a parameter."""


@irdl_op_definition
class ConstantOp(TensorOp):
    """A small constant tensor in the text, at most 4 KB: `ms.constant dense<[1.0, 2.0]> : tensor<2xf32>`."""

    name = "ms.constant"
    value = prop_def(DenseIntOrFPElementsAttr[AnyDenseElement])
    traits = traits_def(Pure(), ConstantLike())

    def infer(self) -> Sequence[TensorType[Attribute]]:
        return (cast(TensorType[Attribute], self.value.type),)

    def verify_(self) -> None:
        super().verify_()
        if len(self.value.data.data) > INLINE_CONSTANT_BYTES:
            raise InvalidAttribute(
                f"ms.constant holds {len(self.value.data.data)} bytes; above {INLINE_CONSTANT_BYTES} use ms.parameter"
            )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        value = parser.parse_attribute()
        if not isa(value, DenseIntOrFPElementsAttr[AnyDenseElement]):
            parser.raise_error("ms.constant needs a dense<...> : tensor<...> value")
        attributes = parser.parse_optional_attr_dict()
        op = cls(value=value)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.value)
        if self.attributes:
            printer.print_op_attributes(self.attributes)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the region of a derived parameter or of a kernel and gives its values."""

    name = "ms.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue):
        super().__init__(operands=[values])


@irdl_op_definition
class ParameterOp(IRDLOperation):
    """A named weight: `ms.parameter @fc.weight : tensor<10x84xf32>`; MindSpore's `Parameter`.

    With ` = { ... ms.yield %v : ... }` it is derived: its region may use `ms.get_parameter` and other ms ops.
    """

    name = "ms.parameter"
    sym_name = prop_def(SymbolNameConstraint())
    type = prop_def(TensorType)
    initialiser = opt_region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove())

    def __init__(self, name: str, type_: TensorType[Attribute], initialiser: Region | None = None):
        super().__init__(
            properties={"sym_name": StringAttr(name), "type": type_},
            regions=[[initialiser] if initialiser is not None else []],
        )

    @property
    def symbol(self) -> str:
        return self.sym_name.data

    def verify_(self) -> None:
        if self.initialiser is None:
            return
        last = self.initialiser.block.last_op
        if not isinstance(last, YieldOp) or len(last.values) != 1:
            raise VerifyException("the region of a derived parameter ends with an ms.yield of one value")
        if not compatible(self.type, last.values[0].type):
            raise ShapeConflict(
                f"ms.parameter @{self.symbol} is a {self.type}, but its region gives a {last.values[0].type}"
            )
        if self.symbol in _sources(self):
            raise InvalidStructure(f"ms.parameter @{self.symbol} is computed from itself")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name, type_ = _parse_declared(parser)
        initialiser = parser.parse_region() if parser.parse_optional_punctuation("=") else None
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(name, type_, initialiser)
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        _print_declared(printer, self.symbol, self.type)
        if self.initialiser is not None:
            printer.print_string(" = ")
            printer.print_region(self.initialiser)
        printer.print_op_attributes(self.attributes, print_keyword=True)


@irdl_op_definition
class GetParameterOp(TensorOp):
    """The value of a parameter: `%w = ms.get_parameter @fc.weight : tensor<10x84xf32>`."""

    name = "ms.get_parameter"
    parameter = prop_def(SymbolRefAttr)

    def __init__(self, name: str, type_: TensorType[Attribute]):
        super().__init__(parameter=SymbolRefAttr(name), result_types=[type_])

    @property
    def symbol(self) -> str:
        return self.parameter.root_reference.data

    def infer(self) -> Sequence[TensorType[Attribute]]:
        return (self.result_tensor(),)

    def verify_(self) -> None:
        super().verify_()
        module = _enclosing_module(self)
        if module is None:
            return
        declared = _find_parameter(module, self.symbol)
        if declared is None:
            near = did_you_mean(self.symbol, _parameters(module))
            raise InvalidStructure(f"there is no parameter @{self.symbol}", help=near)
        if declared.type != self.result.type:
            raise ShapeConflict(f"parameter @{self.symbol} is a {declared.type}, not a {self.result.type}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name, type_ = _parse_declared(parser)
        attributes = parser.parse_optional_attr_dict()
        op = cls(name, type_)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        _print_declared(printer, self.symbol, self.result.type)
        if self.attributes:
            printer.print_op_attributes(self.attributes)


def _parse_declared(parser: Parser) -> tuple[str, TensorType[Attribute]]:
    """A parameter's name and type: `@fc.weight : tensor<10x84xf32>`."""
    name = parser.parse_symbol_name().data
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    if not isinstance(type_, TensorType):
        parser.raise_error("a parameter has a tensor type")
    return name, cast(TensorType[Attribute], type_)


def _print_declared(printer: Printer, name: str, type_: Attribute) -> None:
    printer.print_string(" ")
    printer.print_symbol_name(name)
    printer.print_string(" : ")
    printer.print_attribute(type_)


def _enclosing_module(op: Operation) -> ModuleOp | None:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, ModuleOp):
        parent = parent.parent_op()
    return parent


_FOUND: WeakKeyDictionary[ModuleOp, WeakValueDictionary[str, ParameterOp]] = WeakKeyDictionary()
"""What was found last in a module. It may have changed since, so that an entry is looked at before it is believed."""


def _find_parameter(module: ModuleOp, name: str) -> ParameterOp | None:
    """The parameter of a name. Each use asks for it: looking through the module each time would be quadratic."""
    found = _FOUND.setdefault(module, WeakValueDictionary())
    parameter = found.get(name)
    if parameter is None or parameter.parent is not module.body.block or parameter.symbol != name:
        found.clear()
        found.update(_parameters(module))
    return found.get(name)


def _parameters(module: ModuleOp) -> dict[str, ParameterOp]:
    return {op.symbol: op for op in module.ops if isinstance(op, ParameterOp)}


def _sources(parameter: ParameterOp) -> set[str]:
    """The names of all parameters that a derived one is computed from, directly or through others."""
    module = _enclosing_module(parameter)
    names: set[str] = set()
    pending = _read_by(parameter)
    while pending:
        name = pending.pop()
        if name not in names:
            names.add(name)
            declared = None if module is None else _find_parameter(module, name)
            pending += [] if declared is None else _read_by(declared)
    return names


def _read_by(parameter: ParameterOp) -> list[str]:
    """The parameters that a derived one reads itself."""
    region = parameter.initialiser
    return [] if region is None else [op.symbol for op in region.walk() if isinstance(op, GetParameterOp)]
