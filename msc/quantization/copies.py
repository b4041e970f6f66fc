"""Copies of a graph that give other values than the model does: what calibration and error reports run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.dialects.ms.building import OperationBuilder, OperationT
from msc.dialects.ms.constants import constant_of
from msc.dialects.ms.structure import ParameterOp
from msc.dialects.ms.values import Value, known
from msc.interp import evaluate_op
from msc.ir.entry import STRUCTURE
from msc.quantization.places import entry_of
from msc.weights.evaluated_parameters import EvaluatedParameters

Rows: TypeAlias = Sequence[Mapping[str, Array]]
"""The inputs of calls, each by name."""
Run: TypeAlias = Callable[[Mapping[str, Array]], Sequence[Array]]
Compiler: TypeAlias = Callable[[ModuleOp, Mapping[str, Array]], Run]
"""Makes a module, with the values of its parameters, a function."""


class StoredGraph:
    """A graph whose parameters all are stored: those that were derived have their values; what is unused is gone."""

    def __init__(self, module: ModuleOp, weights: Mapping[str, Array]) -> None:
        self.module = module.clone()
        evaluated = EvaluatedParameters(self.module, weights)
        read = {op.symbol for op in self.module.walk() if isinstance(op, ms.GetParameterOp) and not _derives(op)}
        self.weights = {name: evaluated[name] for name in read}
        names = {name: _origin(name, read, evaluated) for name in read}
        self.weights = {names[name]: array for name, array in self.weights.items()}
        for op in list(self.module.ops):
            if isinstance(op, ParameterOp) and (op.symbol not in read or op.initialiser is not None):
                if op.symbol in read:
                    stored = ParameterOp(names[op.symbol], op.type)
                    stored.location = op.location
                    self.module.body.block.insert_op_before(stored, op)
                op.detach()
                op.erase()
        for op in self.module.walk():
            if isinstance(op, ms.GetParameterOp):
                op.properties["parameter"] = SymbolRefAttr(names[op.symbol])

    def copy(self) -> StoredGraph:
        """The same, to be changed; arrays are shared."""
        copied = StoredGraph.__new__(StoredGraph)
        copied.module, copied.weights = self.module.clone(), dict(self.weights)
        return copied

    def replace(self, op: Operation, index: int, name: str, value: Array) -> None:
        """Let an operation read other values as an operand; a parameter that nothing else reads keeps its name."""
        operand = op.operands[index]
        if isinstance(operand, OpResult) and isinstance(operand.op, ms.GetParameterOp) and operand.has_one_use():
            symbol = operand.op.symbol
            reads = [each for each in self.module.walk() if isinstance(each, ms.GetParameterOp)]
            if sum(each.symbol == symbol for each in reads) == 1 and value.shape == self.weights[symbol].shape:
                self.weights[symbol] = value
                return
        block = op.parent_block()
        assert block is not None
        read = self.store(name, value)
        block.insert_op_before(read, op)
        op.operands[index] = read.results[0]

    def store(self, name: str, value: Array) -> ms.GetParameterOp:
        """A new parameter of about this name; the operation that reads it, which stands nowhere yet."""
        number, free = 1, name
        while free in self.weights:
            number += 1
            free = f"{name}_{number}"
        self.weights[free] = value
        kind = known(value).type
        block = self.module.body.block
        declared = [op for op in block.ops if isinstance(op, ParameterOp)]
        parameter = ParameterOp(free, kind)
        if declared:
            block.insert_op_after(parameter, declared[-1])
        else:
            assert block.first_op is not None
            block.insert_op_before(parameter, block.first_op)
        return ms.GetParameterOp(free, kind)

    def drop_unread(self) -> None:
        """Erase what computes nothing that is used, and parameters that nothing reads."""
        block = entry_of(self.module).body.block
        for op in reversed(list(block.ops)):
            if op.results and not any(result.uses for result in op.results) and op.name.startswith("ms."):
                op.detach()
                op.erase()
        read = {op.symbol for op in self.module.walk() if isinstance(op, ms.GetParameterOp)}
        for op in list(self.module.ops):
            if isinstance(op, ParameterOp) and op.symbol not in read:
                op.detach()
                op.erase()
                self.weights.pop(op.symbol, None)


def _origin(name: str, read: Collection[str], known: Collection[str]) -> str:
    """The name of the parameter that a derived one was made of, `fc.weight` for `fc.weight.mul`, where that is free."""
    before = name.rpartition(".")[0]
    return before if before in known and before not in read else name


def _derives(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp | ParameterOp):
        parent = parent.parent_op()
    return isinstance(parent, ParameterOp)


class BlockWriter(OperationBuilder[Value]):
    """Writes operations into a block, before or behind one of its operations."""

    def __init__(self, block: Block, after: Operation | None = None, before: Operation | None = None) -> None:
        super().__init__(Value, evaluate_op)
        self._block, self._after, self._before = block, after, before

    def insert(self, op: OperationT) -> OperationT:
        if self._before is not None:
            self._block.insert_op_before(op, self._before)
        elif self._after is None:
            first = self._block.first_op
            assert first is not None
            self._block.insert_op_before(op, first)
            self._after = op
        else:
            self._block.insert_op_after(op, self._after)
            self._after = op
        return op

    def insert_constant(self, op: OperationT) -> OperationT:
        op.results[0].name_hint = "c"
        return self.insert(op)

    def constant(self, value: Array) -> SSAValue:
        """An array as a constant."""
        return self.insert_constant(constant_of(value)).results[0]


def give(function: FuncOp, values: Iterable[SSAValue]) -> None:
    """Let a function return other values."""
    last = function.body.block.last_op
    assert isinstance(last, ReturnOp)
    last.operands = list(values)
    function.update_function_type()
    empty: list[Attribute] = [DictionaryAttr({}) for _ in last.operands]
    function.properties["res_attrs"] = ArrayAttr(empty)
    function.attributes.pop(STRUCTURE, None)


def on_values(
    model: StoredGraph,
    values: Sequence[SSAValue],
    compute: Callable[[BlockWriter, SSAValue], Sequence[SSAValue]],
    rows: Rows,
    compiled: Compiler,
) -> Iterator[Sequence[Array]]:
    """For each row of data, what `compute` writes of values of the graph: the results for all, one behind another."""
    copy = model.copy()
    block, original = entry_of(copy.module).body.block, entry_of(model.module).body.block
    twins = dict(zip(original.ops, list(block.ops), strict=True))
    watched = list[SSAValue]()
    for value in values:
        if isinstance(value, OpResult):
            op = twins[value.op]
            watched += compute(BlockWriter(block, after=op), op.results[value.index])
        else:
            assert isinstance(value, BlockArgument)
            watched += compute(BlockWriter(block), block.args[value.index])
    if watched:
        give(entry_of(copy.module), watched)
        run = compiled(copy.module, copy.weights)
        yield from (run(row) for row in rows)
