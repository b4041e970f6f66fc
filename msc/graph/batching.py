"""One more dimension for graphs: operations on one example rewritten for a batch of them, along a new first axis.

An element-wise operation broadcasts; of any other basic one the box of each statement gets one more dimension
(`ms.compute`); a composite one is expanded. What depends on no example stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.dialects.element_types import element_type
from msc.dialects.ms.barrier import BarrierOp
from msc.dialects.ms.base import BasicOp, MsOp, ViewOp
from msc.dialects.ms.elementwise import ElementwiseOp, SelectOp
from msc.dialects.ms.generic import ComputeOp, statements_text
from msc.dialects.ms.movement import BroadcastToOp, SliceOp, StackOp
from msc.dialects.ms.shapes import shape_of
from msc.graph.emitter import CompositeEmitter, Emitter
from msc.graph.expand.expanders import expander
from msc.ir.locations import source_location
from msc.ir.typed import tensor_type
from msc.poly.compute import Statement
from msc.poly.scalar import Index, Read, Scalar, rewritten
from msc.support.diagnostics import Diagnostic, MscError


def _no_batch(op: Operation) -> Diagnostic:
    message = f"vmap: {op.name} cannot run on a batch: the elements of an example decide what runs"
    return Diagnostic("MSC0415", message, source_location(op), help="write the choice with `ops.where`")


class Batching:
    """Rewrites operations for `size` examples. `values` are those of examples, with their batches."""

    def __init__(self, emit: Emitter, size: int) -> None:
        self._emit, self._size = emit, size
        self.values: dict[SSAValue, SSAValue] = {}
        self._dropped: list[Operation] = []

    def run(self, ops: Iterable[Operation]) -> None:
        """Rewrite operations that stand in the graph, in order."""
        for op in ops:
            if any(operand in self.values for operand in op.operands) or op.regions:
                self._rewrite(op)

    def _rewrite(self, op: Operation) -> None:
        if not isinstance(op, MsOp):
            raise MscError(_no_batch(op))
        if isinstance(op, BarrierOp):
            self._barrier(op)
        elif isinstance(op, ViewOp):
            shape = [self._size, *op.result_shape()]
            self._set(op, [self._emit.reshape(self.values[op.operands[0]], shape)])
        elif isinstance(op, ElementwiseOp | SelectOp):
            self._set(op, [self._element_wise(op)])
        elif isinstance(op, BasicOp) and op.is_basic:
            self._set(op, [self._computed(op, k) for k in range(len(op.results))])
        elif (expand := expander.get(type(op))) is not None and _expands_to_basic(op):
            writer = CompositeEmitter(op)
            value = expand(op, writer)
            self._run_expansion(writer.finished(value))
            self._set(op, [self.values[value] if value in self.values else self._repeated(value)])
        else:
            self._set(op, self._one_by_one(op))

    def _repeated(self, value: SSAValue) -> SSAValue:
        """The batch of what no example decides, as the order of the first none."""
        return self._emit(BroadcastToOp, value, shape=[self._size, *self._emit.shape(value)])

    def _barrier(self, op: BarrierOp) -> None:
        """That of the batch; one for what no example changes cannot wait for a batch, which is made behind it."""
        if op.x in self.values:
            self._set(op, [self._emit(BarrierOp, *(self.values.get(v, v) for v in op.operands))])
        else:
            op.result.replace_all_uses_with(op.x)

    def _set(self, op: MsOp, batches: Sequence[SSAValue]) -> None:
        self.values.update(zip(op.results, batches, strict=True))

    def _run_expansion(self, made: Sequence[Operation]) -> None:
        """Operations that stand nowhere: those on no example are inserted, the others dropped."""
        for op in made:
            if any(operand in self.values for operand in op.operands):
                self._rewrite(op)
                self._dropped.append(op)
            else:
                self._emit.insert(op)

    def _element_wise(self, op: MsOp) -> SSAValue:
        rank = len(op.result_shape())
        operands = [self._aligned(v, rank) for v in op.operands]
        return self._emit(type(op), *operands, **op.properties)

    def _aligned(self, value: SSAValue, rank: int) -> SSAValue:
        """A batch as it broadcasts: with axes of size 1 behind the first."""
        batch = self.values.get(value)
        if batch is None:
            return value
        size, *shape = self._emit.shape(batch)
        return self._emit.reshape(batch, [size, *[1] * (rank - len(shape)), *shape])

    def _computed(self, op: BasicOp, result: int) -> SSAValue:
        batched = {k for k, v in enumerate(op.operands) if v in self.values}
        statements = [self._widened(s, batched) for s in op.compute() if s.result == result]
        operands = [self.values.get(v, v) for v in op.operands]
        shape, dtype = [self._size, *op.result_shape(result)], element_type(op.result_dtype(result))
        return self._emit(ComputeOp, *operands, shape=shape, dtype=dtype, statements=statements_text(statements))

    def _widened(self, statement: Statement, batched: set[int]) -> Statement:
        return replace(
            statement,
            extents=(self._size, *statement.extents),
            names=("example", *statement.names),
            write=_with_example(statement.write, True),
            body=_widened(statement.body, batched),
            result=0,
        )

    def _one_by_one(self, op: MsOp) -> list[SSAValue]:
        """An operation of no other form, for one example after the other."""
        columns: list[Sequence[SSAValue]] = []
        for number in range(self._size):
            operands = [self._example(v, number) for v in op.operands]
            made = self._emit.insert(type(op)(*operands, result_types=None, **op.properties))
            columns.append(made.results)
        return [self._emit(StackOp, *(c[k] for c in columns), axis=0) for k in range(len(op.results))]

    def _example(self, value: SSAValue, number: int) -> SSAValue:
        batch = self.values.get(value)
        if batch is None:
            return value
        shape = self._emit.shape(batch)
        begin = [number, *[0] * (len(shape) - 1)]
        part = self._emit(SliceOp, batch, begin=begin, end=[number + 1, *shape[1:]])
        return self._emit.reshape(part, shape_of(tensor_type(value)))

    def close(self) -> None:
        """Drop what stands nowhere."""
        for op in reversed(self._dropped):
            op.erase(safe_erase=False)


def _expands_to_basic(op: MsOp) -> bool:
    """Whether an operation is a straight line of others; a loop is left as it is."""
    return op.name != "ms.scatter_add"


def _with_example(map_: AffineMap, first: bool) -> AffineMap:
    """The map over one more dimension in front, which is its first result too if `first`."""
    moved = [AffineExpr.dimension(d + 1) for d in range(map_.num_dims)]
    results = [e.replace_dims_and_symbols(moved, []) for e in map_.results]
    return AffineMap(map_.num_dims + 1, 0, (AffineExpr.dimension(0), *results) if first else tuple(results))


def _widened(scalar: Scalar, batched: set[int]) -> Scalar:
    def widened(leaf: Read | Index) -> Scalar:
        if isinstance(leaf, Index):
            return Index(_moved(leaf.expr))
        is_batch = leaf.operand in batched
        indirect = tuple((d + is_batch, index) for d, index in leaf.indirect)
        return replace(leaf, index=_with_example(leaf.index, is_batch), indirect=indirect)

    return rewritten(scalar, widened)


def _moved(expr: AffineExpr) -> AffineExpr:
    """The expression over dimensions that are counted one further."""
    used = max(expr.used_dims(), default=-1)
    return expr.replace_dims_and_symbols([AffineExpr.dimension(d + 1) for d in range(used + 1)], [])
