"""Small constants of the entry function as derived parameters, so that the weights contain all constant data."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region

from msc.dialects.ms.structure import ConstantOp, ParameterOp, YieldOp
from msc.ir.locations import set_location
from msc.ir.typed import tensor_type


@dataclass
class ConstantParameters:
    """Gives every distinct constant a derived parameter: `ms.parameter @constant_0 = { ms.constant; ms.yield }`."""

    module: ModuleOp
    _known: dict[DenseIntOrFPElementsAttr, str] = field(default_factory=dict[DenseIntOrFPElementsAttr, str])

    def symbol(self, constant: ConstantOp) -> str:
        """The parameter that holds the value of `constant`, declared if need be."""
        if constant.value not in self._known:
            self._known[constant.value] = self._declare(constant)
        return self._known[constant.value]

    def _declare(self, constant: ConstantOp) -> str:
        name = _unused_name("constant", self._names())
        parameter = ParameterOp(name, tensor_type(constant.result), _initialiser(constant))
        set_location(parameter, constant.location)
        self._insert(parameter)
        return name

    def _names(self) -> set[str]:
        symbols = (op.properties.get("sym_name") for op in self.module.body.block.ops)
        return {symbol.data for symbol in symbols if isinstance(symbol, StringAttr)}

    def _insert(self, parameter: Operation) -> None:
        """After the last parameter, or first of all."""
        block = self.module.body.block
        last = next((op for op in reversed(list(block.ops)) if isinstance(op, ParameterOp)), None)
        if last is not None:
            block.insert_op_after(parameter, last)
        elif block.first_op is not None:
            block.insert_op_before(parameter, block.first_op)


def _initialiser(constant: ConstantOp) -> Region:
    value = ConstantOp(value=constant.value)
    return Region(Block([value, YieldOp(value.result)]))


def _unused_name(stem: str, taken: set[str]) -> str:
    number = 0
    while (name := f"{stem}_{number}") in taken:
        number += 1
    return name
