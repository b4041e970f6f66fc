"""Moving expressions of parameters and constants into derived parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.traits import Pure

from msc.dialects.ms.attributes import MS_ORIGIN
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.structure import GetParameterOp, ParameterOp, YieldOp
from msc.ir.locations import fused_location
from msc.ir.typed import tensor_type

Key = tuple[object, ...]


class DerivedParameters:
    """The parameters of a module, and those that are made of expressions; equal expressions share one."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        existing = parameters(module)
        self._symbols = {op.symbol for op in existing}
        self._last = existing[-1] if existing else None
        self._made: dict[Key, ParameterOp] = {}
        self._keys: dict[Operation, Key] = {}

    def replace(self, value: OpResult) -> None:
        """Let all uses of a constant expression read a derived parameter that has it as initialiser."""
        assert isinstance(value.op, MsOp)
        parameter = self._parameter(value)
        read = GetParameterOp(parameter.symbol, tensor_type(value))
        read.location = value.op.location
        read.result.name_hint = value.name_hint
        block = value.op.parent_block()
        assert block is not None
        block.insert_op_after(read, value.op)
        value.replace_all_uses_with(read.result)

    def _parameter(self, value: OpResult) -> ParameterOp:
        key = (*self._key(value.op), value.index)
        if key not in self._made:
            self._made[key] = self._make(value)
        return self._made[key]

    def _key(self, op: Operation) -> Key:
        """What makes an expression equal to another one: operation, properties, and the keys of the operands."""
        for inner in expression(op):
            if inner not in self._keys:
                properties = tuple(sorted(inner.properties.items(), key=lambda item: item[0]))
                operands = tuple((self._keys[v.op], v.index) for v in inner.operands if isinstance(v, OpResult))
                types: tuple[Attribute, ...] = tuple(inner.result_types)
                self._keys[inner] = (inner.name, properties, operands, types)
        return self._keys[op]

    def _make(self, value: OpResult) -> ParameterOp:
        ops = expression(value.op)
        body = Block()
        copies: dict[SSAValue, SSAValue] = {}
        for op in ops:
            copy = op.clone(copies)
            copy.attributes.pop(MS_ORIGIN, None)
            body.add_op(copy)
        body.add_op(YieldOp(copies[value]))
        parameter = ParameterOp(self._new_symbol(ops), tensor_type(value), Region(body))
        parameter.location = fused_location(op.location for op in ops)
        self._insert(parameter)
        return parameter

    def _insert(self, parameter: ParameterOp) -> None:
        """After the last parameter, or first in the module."""
        block = self._module.body.block
        if self._last is not None:
            block.insert_op_after(parameter, self._last)
        elif block.first_op is not None:
            block.insert_op_before(parameter, block.first_op)
        self._last = parameter

    def _new_symbol(self, ops: Sequence[Operation]) -> str:
        """The largest parameter's name and the last operation's: `fc1.weight.transpose`, then with a number."""
        last = ops[-1].name.removeprefix("ms.")
        read = [op for op in ops if isinstance(op, GetParameterOp)]
        base = f"{max(read, key=_size).symbol}.{last}" if read else f"constant.{last}".removesuffix(".constant")
        symbol, number = base, 1
        while symbol in self._symbols:
            symbol, number = f"{base}.{number}", number + 1
        self._symbols.add(symbol)
        return symbol


def _size(op: GetParameterOp) -> int:
    return tensor_type(op.result).element_count()


def parameters(module: ModuleOp) -> list[ParameterOp]:
    """The parameters of a module, in order."""
    return [op for op in module.ops if isinstance(op, ParameterOp)]


def expression(root: Operation) -> list[Operation]:
    """All operations that an operation's value is computed of, itself last, each after what it uses."""
    order: dict[Operation, None] = {}
    pending = [root]
    while pending:
        op = pending[-1]
        inner = [v.op for v in op.operands if isinstance(v, OpResult) and v.op not in order]
        if inner and op not in order:
            pending.extend(inner)
            continue
        order[op] = None
        pending.pop()
    return list(order)


def erase_unused(module: ModuleOp) -> None:
    """Erase what only led to hoisted values, and parameters that nothing reads any more."""
    for function in (op for op in module.ops if isinstance(op, FuncOp)):
        for op in reversed(list(function.walk())):
            if isinstance(op, MsOp) and op.has_trait(Pure) and not any(result.uses for result in op.results):
                op.detach()
                op.erase()
    _erase_unread_parameters(module)


def _erase_unread_parameters(module: ModuleOp) -> None:
    """Last ones first: an erased parameter no longer reads those that its initialiser used."""
    readers = Counter(_reads(module))
    for parameter in reversed(parameters(module)):
        if not readers[parameter.symbol]:
            readers.subtract(_reads(parameter))
            parameter.detach()
            parameter.erase()


def _reads(root: Operation) -> list[str]:
    return [op.symbol for op in root.walk() if isinstance(op, GetParameterOp)]
