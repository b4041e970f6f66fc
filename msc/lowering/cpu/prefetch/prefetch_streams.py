"""Pass `prefetch-streams`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.properties import KERNEL_FUNCTIONS, VECTORS
from msc.analysis.target import target_of
from msc.dialects.loop import ForOp, LoadOp, LoopKind, PrefetchOp
from msc.ir.contracts import Contract
from msc.ir.typed import is_vector, memref_type, static_shape
from msc.lowering.cpu.prefetch.next_panel import PrefetchAddress, distance, next_panel, trips
from msc.lowering.cpu.prefetch.next_tile import next_tile
from msc.lowering.cpu.vectorize.vector_types import bits_of
from msc.poly.affine import linear_form
from msc.targets.machine import Machine


@dataclass(frozen=True)
class PrefetchStreams(ModulePass):
    """Prefetch what register tiles stream from beyond L1.

    Takes kernels' functions with vectors. In the loop that runs around the unrolled loops of a register tile, the
    vectors that all rows of the tile share are a stream; where more of it is read than L1 keeps until it
    is read again, each iteration gets `loop.prefetch`s of what a later one reads. The hardware sees the stream too,
    but it stops at every page, and so late that each row of vectors waits. Where the stream is one panel of an
    operand that L2 does not hold, the next panel is asked for as well (`next_panel`); so are the rows
    of such an operand that the next tile reads (`next_tile`). Schedules prefetch rows that
    several loops read. Keeps: all results.
    """

    name = "prefetch-streams"
    contract = Contract(requires=(KERNEL_FUNCTIONS, VECTORS))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        cpu = target_of(op).machine
        for loop in [loop for loop in op.walk() if isinstance(loop, ForOp)]:
            if loop.kind.data is LoopKind.SEQUENTIAL:
                for tile, load in list(_tile_loads(loop, ())):
                    if operand_bytes(load) > cpu.l2 and is_linear(load) and _lanes(load) == 1:
                        _prefetch_next_tile(loop, tile, load)
                for stream in list(_streams(loop, cpu)):
                    if stream.bytes_of_operand > cpu.l2:
                        stream.prefetch_next_panel()
                    if stream.bytes_until_reuse > cpu.l1 // 2:
                        stream.prefetch()


@dataclass(frozen=True)
class _Stream:
    """A vector load below `loop` and the unrolled `tile` loops between the two."""

    loop: ForOp
    tile: tuple[ForOp, ...]
    load: LoadOp
    machine: Machine

    @property
    def is_shared(self) -> bool:
        """Whether the load moves with the loop, and some loop of the tile repeats it."""
        return self.moves_with(self.loop) and not all(map(self.moves_with, self.tile))

    def moves_with(self, loop: ForOp) -> bool:
        return loop.variable in self.load.indices

    @property
    def is_new(self) -> bool:
        """Whether each iteration reads other elements than the one before, not a window that overlaps with the last."""
        return abs(distance(self.load, self.loop)) >= _lanes(self.load)

    @property
    def bytes_an_iteration(self) -> int:
        vectors = prod(trips(t) for t in self.tile if self.moves_with(t))
        return vectors * _lanes(self.load) * _item_bytes(self.load)

    @property
    def bytes_until_reuse(self) -> int:
        """What is read until a loop outside reads the same again."""
        total, around = self.bytes_an_iteration, self.loop
        while isinstance(around, ForOp) and self.moves_with(around):
            total *= trips(around)
            around = around.parent_op()
        return total

    @property
    def bytes_of_operand(self) -> int:
        """Of the whole array that the stream is a part of."""
        return operand_bytes(self.load)

    def prefetch(self) -> None:
        """Ask in each iteration for what a later one reads."""
        place = PrefetchAddress(self.load.map, tuple(self.load.indices), self._ahead())
        self._insert(line_prefetches(self.load, place, [t for t in self.tile if self.moves_with(t)], self.machine))

    def prefetch_next_panel(self) -> None:
        """Where the stream is a panel that is read several times, ask for the next one meanwhile."""
        size = _item_bytes(self.load)
        places = next_panel(self.loop, self.tile, self.load, self.bytes_an_iteration // size, size, self.machine)
        for place in reversed(places):
            self._insert(_prefetch(self.load, place))

    def _insert(self, op: Operation) -> None:
        first = self.loop.body.block.first_op
        assert first is not None
        self.loop.body.block.insert_op_before(op, first)

    def _ahead(self) -> int:
        """Elements between what this iteration reads and what the one to prefetch for reads."""
        return ceil(self.machine.code.prefetch_bytes / self.bytes_an_iteration) * distance(self.load, self.loop)


def _streams(loop: ForOp, machine: Machine) -> Iterator[_Stream]:
    """The linear vector loads below unrolled loops only that are shared."""
    for tile, load in _tile_loads(loop, ()):
        stream = _Stream(loop, tile, load, machine)
        if _lanes(load) > 1 and is_linear(load) and stream.is_shared and stream.is_new:
            yield stream


def _tile_loads(loop: ForOp, tile: tuple[ForOp, ...]) -> Iterator[tuple[tuple[ForOp, ...], LoadOp]]:
    for op in loop.body.block.ops:
        if isinstance(op, LoadOp):
            yield tile, op
        elif isinstance(op, ForOp) and op.kind.data is LoopKind.UNROLL and op.constant_range is not None:
            yield from _tile_loads(op, (*tile, op))


def is_linear(load: LoadOp) -> bool:
    """Whether a load is at an index that is linear in the loops."""
    return all(linear_form(e) is not None for e in load.map.results)


def _prefetch_next_tile(loop: ForOp, tile: tuple[ForOp, ...], load: LoadOp) -> None:
    """Where the rows of a tile are a block, ask for those of the next tile meanwhile."""
    place, first = next_tile(loop, tile, load), loop.body.block.first_op
    if place is not None and first is not None:
        loop.body.block.insert_op_before(_prefetch(load, place), first)


def line_prefetches(load: LoadOp, place: PrefetchAddress, tile: Sequence[ForOp], machine: Machine) -> Operation:
    """The prefetch in copies of loops of a tile, once for each cache line."""
    loops = [copied(t, _line_step(load, t, machine)) for t in tile]
    variables: dict[SSAValue, SSAValue] = {t.variable: c.variable for t, c in loops}
    indices = tuple(variables.get(v, v) for v in place.indices)
    op: Operation = _prefetch(load, PrefetchAddress(place.map, indices, place.ahead))
    for _, copy in reversed(loops):
        copy.body.block.add_op(op)
        op = copy
    return op


def _line_step(load: LoadOp, loop: ForOp, machine: Machine) -> int:
    """Iterations of a loop of the tile in one cache line."""
    apart = abs(distance(load, loop)) * _item_bytes(load)
    return max(1, machine.line // apart) if apart else 1


def _prefetch(load: LoadOp, place: PrefetchAddress) -> PrefetchOp:
    op = PrefetchOp(load.source, place.map, place.indices, place.ahead)
    op.location = load.location
    return op


def _lanes(load: LoadOp) -> int:
    type_ = load.result.type
    return type_.get_shape()[0] if is_vector(type_) else 1


def operand_bytes(load: LoadOp) -> int:
    """Of the whole buffer that a load reads."""
    return prod(static_shape(load.source)) * _item_bytes(load)


def _item_bytes(load: LoadOp) -> int:
    return max(1, bits_of(memref_type(load.source).element_type) // 8)


def copied(loop: ForOp, steps: int) -> tuple[ForOp, ForOp]:
    """A loop and its empty copy that does every `steps`-th iteration."""
    step, label = loop.step.value.data * steps, loop.label.data if loop.label is not None else None
    copy = ForOp(loop.lower.data, loop.upper.data, loop.values, step, loop.kind.data, label)
    copy.variable.name_hint = loop.variable.name_hint
    return loop, copy
