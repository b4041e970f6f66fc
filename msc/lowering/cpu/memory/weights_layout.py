"""The offsets of parameters in the weights, and the parameters that a program still needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation

from msc.analysis.bytes import byte_size
from msc.dialects.loop.attributes import LOOP_OFFSET
from msc.dialects.ms.structure import GetParameterOp, ParameterOp
from msc.ir.typed import tensor_type
from msc.lowering.cpu.buffer_types import buffer_type
from msc.lowering.cpu.failure import refuse
from msc.lowering.cpu.memory.arena import aligned


@dataclass(frozen=True)
class WeightsLayout:
    """Offsets of the parameters that are stored, and the bytes of the whole."""

    offsets: Mapping[str, int]
    bytes: int


def lay_out_weights(module: ModuleOp, used: Iterable[str]) -> WeightsLayout:
    """Give the `used` parameters, in this order, aligned offsets; drop parameters that nothing refers to.

    What the initialisers of derived parameters read is kept, without a place. Raises MSC0404 for an undeclared name.
    """
    parameters = {op.symbol: op for op in module.body.block.ops if isinstance(op, ParameterOp)}
    offsets: dict[str, int] = {}
    size = 0
    for name in dict.fromkeys(used):
        if name not in parameters:
            raise refuse("plan-memory", module, f"parameter @{name} is not declared")
        offsets[name] = size
        parameters[name].attributes[LOOP_OFFSET] = IntegerAttr(size, i64)
        size = aligned(size + byte_size(buffer_type(tensor_type(parameters[name].type))))
    _drop_unneeded(parameters, offsets)
    return WeightsLayout(offsets, size)


def _drop_unneeded(parameters: Mapping[str, ParameterOp], stored: Iterable[str]) -> None:
    needed: set[str] = set()
    pending = list(stored)
    while pending:
        name = pending.pop()
        if name not in needed and name in parameters:
            needed.add(name)
            pending.extend(_read_by(parameters[name]))
    for name, parameter in parameters.items():
        if name not in needed:
            _erase(parameter)


def _read_by(parameter: ParameterOp) -> list[str]:
    return [op.symbol for op in parameter.walk() if isinstance(op, GetParameterOp)]


def _erase(op: Operation) -> None:
    block = op.parent_block()
    if block is not None:
        block.erase_op(op)
