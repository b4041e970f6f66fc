"""Where in memory a result may overlap an input: a kernel reads each row before it writes over it.

A kernel that goes through its rows in order needs no row of its input again once the result has come that far. The
result so follows the input through memory, some rows behind; if it is larger than the input, from the last row to the
first (Stevenson and Miller, "Diagonal Memory Optimisation for Machine Learning on Micro-controllers", 2020).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate
from math import prod
from typing import NamedTuple, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from msc.analysis.bytes import byte_size
from msc.analysis.index_ranges import ValueRanges
from msc.analysis.integer_bounds import Range
from msc.dialects.loop import ForOp, LoadOp, StoreOp
from msc.dialects.loop.accesses import AccessOp
from msc.ir.typed import memref_type
from msc.lowering.cpu.memory.arena import Distances
from msc.poly.intervals import interval

_MOST_STEPS = 1 << 10
"""Iterations of an outermost loop that are looked at one by one."""


def trailing_distances(function: func.FuncOp, written: int, read: int) -> Distances | None:
    """From where an argument that a kernel writes begins to where one that it reads may begin.

    At each iteration of an outermost loop, what was written so far lies on one side of what is read from there on. None
    where something else than loads and stores touches one of them.
    """
    steps = _Steps(function.args[written], function.args[read])
    if not steps.touched_by_accesses_alone():
        return None
    found = [step for op in function.body.block.ops for step in steps.of(op)]
    so_far = accumulate((step.written for step in found), _hull)
    to_come = reversed(list(accumulate((step.read for step in reversed(found)), _hull)))
    pairs = [(w, r) for w, r in zip(so_far, to_come, strict=True) if w is not None and r is not None]
    return Distances(
        max((w[1] - r[0] for w, r in pairs), default=-byte_size(steps.read)),
        min((w[0] - r[1] for w, r in pairs), default=byte_size(steps.written)),
    )


def turn_around(function: func.FuncOp) -> None:
    """Let a kernel go through its outermost loops from the last iteration to the first.

    So it does if it reads nothing that it writes, and each element is written where loops alone say.
    """
    *nests, last = function.body.block.ops
    written = {op.buffer for op in function.walk() if isinstance(op, StoreOp)}
    if not all(isinstance(op, ForOp) and op.constant_range and _may_turn(op, written) for op in nests):
        return
    for nest in nests:
        if isinstance(nest, ForOp) and (iterations := nest.constant_range):
            _turn(nest.variable, iterations[0] + iterations[-1])
        nest.detach()
    nests.reverse()
    nests.sort(key=_reads_nothing)
    function.body.block.insert_ops_before(nests, last)


def _may_turn(nest: ForOp, written: AbstractSet[SSAValue]) -> bool:
    accesses = [op for op in nest.walk() if isinstance(op, AccessOp)]
    outer = {op.buffer for op in accesses if isinstance(op.buffer, BlockArgument)}
    return (
        outer.isdisjoint({op.buffer for op in accesses if isinstance(op, LoadOp)} & written)
        and all(isinstance(use.operation, AccessOp | ForOp) for use in nest.variable.uses)
        and all(isinstance(i, BlockArgument) for op in accesses if isinstance(op, StoreOp) for i in op.indices)
    )


def _reads_nothing(nest: Operation) -> bool:
    """Whether a loop fills memory, so that nothing is lost if it comes last."""
    return not any(isinstance(op, LoadOp) for op in nest.walk())


def _turn(variable: SSAValue, ends: int) -> None:
    """Put `ends` minus a loop's variable where the variable stands."""
    for op in {use.operation: None for use in variable.uses}:
        values = op.indices if isinstance(op, AccessOp) else op.operands
        dims = [AffineDimExpr(k) * -1 + ends if v is variable else AffineDimExpr(k) for k, v in enumerate(values)]
        for name in ("index",) if isinstance(op, AccessOp) else ("lower", "upper"):
            map_ = cast(AffineMapAttr, op.properties[name]).data
            results = tuple(e.replace_dims_and_symbols(dims, []) for e in map_.results)
            op.properties[name] = AffineMapAttr(AffineMap(map_.num_dims, 0, results))


def _hull(a: Range | None, b: Range | None) -> Range | None:
    return a or b if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))


class _Step(NamedTuple):
    """The bytes that an iteration writes of one argument and reads of another: where they begin, and end."""

    written: Range | None
    read: Range | None


@dataclass(frozen=True)
class _Steps:
    written: SSAValue
    read: SSAValue
    _ranges: ValueRanges = field(default_factory=ValueRanges)

    def touched_by_accesses_alone(self) -> bool:
        uses = [use for buffer in (self.written, self.read) for use in buffer.uses]
        kinds = (use.operation for use in uses)
        return all(isinstance(op, LoadOp) or (isinstance(op, StoreOp) and op.buffer is self.written) for op in kinds)

    def of(self, op: Operation) -> Iterator[_Step]:
        """The steps of an operation of the function: the iterations of a loop."""
        iterations = op.constant_range if isinstance(op, ForOp) else None
        if isinstance(op, ForOp) and iterations is not None and len(iterations) <= _MOST_STEPS:
            accesses = list(self._accesses(op.body.block.ops))
            yield from (self._step(accesses, {op.variable: (i, i)}) for i in iterations)
        else:
            yield self._step(list(self._accesses([op])), {})

    def _accesses(self, ops: Iterable[Operation]) -> Iterator[AccessOp]:
        inside = (inner for op in ops for inner in op.walk())
        return (op for op in inside if isinstance(op, LoadOp | StoreOp) and op.buffer in (self.written, self.read))

    def _step(self, accesses: Sequence[AccessOp], known: Mapping[SSAValue, Range]) -> _Step:
        written = [self._bytes(op, known) for op in accesses if op.buffer is self.written and isinstance(op, StoreOp)]
        read = [self._bytes(op, known) for op in accesses if op.buffer is self.read]
        return _Step(reduce(_hull, written, None), reduce(_hull, read, None))

    def _bytes(self, op: AccessOp, known: Mapping[SSAValue, Range]) -> tuple[int, int]:
        """The bytes of its buffer that an access touches at most."""
        buffer = memref_type(op.buffer)
        shape, lanes = buffer.get_shape(), op.touched_lanes - 1
        size = byte_size(op.buffer) // prod(shape)
        dims = [known.get(value) or self._ranges.of(value) for value in op.indices]
        low = high = 0
        for axis, (index, step) in enumerate(zip(op.map.results, op.lane_steps, strict=True)):
            range_ = interval(index, dims) or (0, shape[axis] - 1)
            stride = prod(shape[axis + 1 :])
            low += stride * (range_[0] + min(0, lanes * step))
            high += stride * (range_[1] + max(0, lanes * step))
        return low * size, (high + 1) * size
