"""The state of bufferization: how values and blocks move from tensors to buffers; knows no operation in particular."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from msc.ir.locations import set_location
from msc.ir.typed import memref_type, tensor_type
from msc.lowering.cpu.buffer_types import buffer_type, contiguous_view, root_buffer
from msc.lowering.cpu.bufferize.destinations import MayOverwrite
from msc.lowering.cpu.failure import refuse
from msc.support.naming import valid_hint

OperationT = TypeVar("OperationT", bound=Operation)
Handler = Callable[["Bufferizer", Operation], None]
FindDestination = Callable[["Bufferizer", SSAValue], SSAValue | None]


@dataclass
class Bufferizer:
    """Translates blocks operation by operation; `handlers` say how, by operation class.

    `values` gives for every tensor seen so far its buffer, and for every other value its counterpart; `destinations`
    gives for some results the buffer that they are to be computed in, and `find_destination` is asked for the others;
    `may_overwrite` knows which kernels may work in place; `donated` are arguments whose buffers are ours to write.
    """

    handlers: Mapping[type[Operation], Handler]
    find_destination: FindDestination
    may_overwrite: MayOverwrite
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    destinations: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    donated: set[SSAValue] = field(default_factory=set[SSAValue])
    _block: Block = field(default_factory=Block)
    _source: Operation | None = None

    @contextmanager
    def inside(self, target: Block) -> Generator[None]:
        """Within, operations are appended to `target`."""
        outer = self._block, self._source
        self._block = target
        yield
        self._block, self._source = outer

    def translate(self, source: Block) -> None:
        """Append the translation of the operations of `source`, but for its terminator."""
        for op in list(source.ops)[:-1]:
            self._source = op
            self._translate(op)
        self._source = source.last_op

    def _translate(self, op: Operation) -> None:
        handler = next((h for kind, h in self.handlers.items() if isinstance(op, kind)), None)
        if handler is not None:
            handler(self, op)
        elif op.regions or any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
            raise refuse("bufferize", op, f"'{op.name}' on tensors is outside kernels")
        else:
            self.emit(op.clone(value_mapper=self.values))

    def emit(self, op: OperationT) -> OperationT:
        """Append an operation to the current block; it comes from the operation that is being translated."""
        self._block.add_op(op)
        if self._source is not None:
            set_location(op, self._source.location)
        return op

    def buffers(self, tensors: Iterable[SSAValue]) -> list[SSAValue]:
        """The counterparts of values: buffers of tensors."""
        return [self.values[value] for value in tensors]

    def new_buffer(self, type_: Attribute, hint: str | None = None) -> SSAValue:
        """An allocation, whose place `plan-memory` decides."""
        buffer = self.emit(memref.AllocOp([], [], memref_type(type_))).memref
        buffer.name_hint = valid_hint(hint)
        return buffer

    def view(self, buffer: SSAValue, type_: MemRefType[Attribute], hint: str | None = None) -> SSAValue:
        """`buffer` under the shape of `type_`."""
        if buffer.type == type_:
            return buffer
        view = self.emit(contiguous_view(buffer, type_)).result
        view.name_hint = valid_hint(hint)
        return view

    def result_buffer(self, result: SSAValue) -> SSAValue:
        """Where to compute `result`, from now on its buffer: its destination if it has one, else a new buffer."""
        type_ = buffer_type(tensor_type(result))
        destination = self.destinations.get(result) or self.find_destination(self, result)
        if destination is None:
            self.values[result] = self.new_buffer(type_, result.name_hint)
        else:
            self.values[result] = self.view(destination, type_, result.name_hint)
        return self.values[result]

    def move(self, values: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
        """Bring tensors into buffers, all at once: one that overwrites another's source does so after it was read."""
        moves = [(self.values[v], t) for v, t in zip(values, targets, strict=True)]
        moves = [(source, target) for source, target in moves if root_buffer(source) is not root_buffer(target)]
        overwritten = {root_buffer(target) for _, target in moves}
        saved = [(self._saved(s) if root_buffer(s) in overwritten else s, t) for s, t in moves]
        for source, target in saved:
            self.emit(memref.CopyOp(self.view(source, memref_type(target)), target))

    def _saved(self, source: SSAValue) -> SSAValue:
        copy = self.new_buffer(source.type)
        self.emit(memref.CopyOp(source, copy))
        return copy
