"""The operations of a block as steps, for orders and peaks of memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from msc.analysis.bytes import bytes_of
from msc.analysis.kernels import blocks_outside_kernels
from msc.dialects.gk import KernelOp
from msc.dialects.ms.base import ViewOp
from msc.dialects.ms.structure import GetParameterOp
from msc.graph_kernel.fusion.areas import used_values
from msc.graph_kernel.memory_order import BufferUse, KernelSequence
from msc.ir.donation import updates
from msc.ir.typed import is_tensor


class KernelSteps:
    """The operations of an entry function, or of a loop's body, as steps; a view shows the buffer of what it is of.

    What leaves the block has buffers of its own beside it.
    """

    def __init__(self, block: Block) -> None:
        self._block = block
        last = self._block.last_op
        assert last is not None
        self.ops = [op for op in self._block.ops if op is not last]
        self.number = {op: k for k, op in enumerate(self.ops)}
        self.buffers: dict[SSAValue, int] = {}
        self._bytes: list[int] = []
        self._roots: dict[SSAValue, SSAValue] = {}
        returned = {self.root(value) for value in last.operands}
        self.updated = {self.root(new): old for new, old in _updated(block)}
        self._readers: dict[SSAValue, list[int]] = {}
        for number, op in enumerate(self.ops):
            for value in {self.root(v) for v in used_values(op)}:
                self._readers.setdefault(value, []).append(number)
        for op in self.ops:
            for result in op.results:
                if self.root(result) is result and is_tensor(result.type):
                    self.buffers[result] = len(self._bytes)
                    self._bytes.append(0 if result in returned or isinstance(op, GetParameterOp) else bytes_of(result))
        self.steps = KernelSequence([self._step(number, op) for number, op in enumerate(self.ops)], self._bytes)

    def readers(self, value: SSAValue) -> Sequence[int]:
        """The numbers of the operations that read the buffer of a value, in their order."""
        return self._readers.get(self.root(value), ())

    def last_reader(self, value: SSAValue) -> Operation | None:
        """The last operation that reads the buffer of a value."""
        numbers = self.readers(value)
        return self.ops[numbers[-1]] if numbers else None

    def root(self, value: SSAValue) -> SSAValue:
        """The value whose buffer holds a value."""
        if value not in self._roots:
            op = value.owner
            self._roots[value] = self.root(op.operands[0]) if isinstance(op, ViewOp) else value
        return self._roots[value]

    def _step(self, number: int, op: Operation) -> BufferUse:
        makes = tuple(self.buffers[r] for r in op.results if r in self.buffers)
        reads = dict.fromkeys(self.root(v) for v in used_values(op))
        needed = {self.number[v.op] for v in used_values(op) if isinstance(v, OpResult) and v.op in self.number}
        after = {n for n in (*needed, *self._read_before(number, op)) if n != number}
        held = tuple(self.buffers[v] for v in reads if v in self.buffers)
        return BufferUse(makes, held, tuple(sorted(after)), not _moves(op))

    def _read_before(self, number: int, op: Operation) -> Iterator[int]:
        """The earlier readers of what an operation may write over."""
        written = [self.updated[r] for r in op.results if r in self.updated]
        if not isinstance(op, KernelOp | ViewOp):
            written += [self.root(v) for v in used_values(op)]
        for value in written:
            yield from (reader for reader in self.readers(value) if reader < number)


def blocks_of_steps(function: FuncOp) -> list[Block]:
    """The block of a function and those of loops in it, outer ones first."""
    blocks = blocks_outside_kernels(function)
    return [block for block in blocks if isinstance(block.parent_op(), FuncOp | scf.ForOp | scf.WhileOp)]


def _updated(block: Block) -> Iterator[tuple[SSAValue, BlockArgument]]:
    """The values that leave a block in the buffer of one of its arguments: updates, and what a loop carries."""
    around, last = block.parent_op(), block.last_op
    assert last is not None
    match around:
        case FuncOp():
            yield from ((last.operands[result], block.args[k]) for result, k in updates(around).items())
        case scf.ForOp():
            yield from zip(last.operands, block.args[1:], strict=True)
        case scf.WhileOp() if block is around.after_region.block:
            condition = around.before_region.block.last_op
            passed = list(condition.args) if isinstance(condition, scf.ConditionOp) else []
            for new, begun in zip(last.operands, around.before_region.block.args, strict=True):
                if begun in passed:
                    yield new, block.args[passed.index(begun)]
        case _:
            return


def _moves(op: Operation) -> bool:
    """Whether an operation may stand elsewhere: a kernel, a view, a parameter or a number."""
    return isinstance(op, KernelOp | ViewOp | GetParameterOp | arith.ConstantOp)
