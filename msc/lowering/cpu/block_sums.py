"""Pass `block-sums`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f32
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from msc.analysis.index_ranges import index_range
from msc.analysis.properties import KERNEL_FUNCTIONS, VECTORS
from msc.dialects.loop import AccessOp, ForOp, LoadOp, LoopKind, StoreOp
from msc.ir.contracts import Contract
from msc.ir.typed import is_vector, memref_type, static_shape
from msc.lowering.cpu.vectorize.vector_reductions import splat, update_of
from msc.poly.intervals import interval

LONG = 1024
"""Sums of more terms are cut: the error of shorter ones is near that of ONNX Runtime's."""
BLOCK = 256
"""Terms of a block, about: of 16384 terms there are 64 blocks, and the end of a block takes a hundredth of its time."""


@dataclass(frozen=True)
class BlockSums(ModulePass):
    """Cut long sums of f32 into blocks.

    Takes kernels' functions with vectors. Each addition to an f32 sum rounds by up to half a unit in the last place
    of what has been added up so far, so that the error of one long chain grows with its length. A loop that adds into
    places of a local array, so often that this shows, becomes a loop over blocks. The array, which lies in registers
    inside the loop, starts each block at zero; at the end of a block it is added to one of two arrays of totals in
    turn, and after the last one it gets what both hold together. So an element takes part in as many roundings as a
    block has terms, and half as many more as there are blocks. What else the loop does stays as it is, in the same
    order: a named reassociation of floating-point sums, as those of `vectorize`. Left alone are sums that the loop
    uses otherwise too, and those of other types: in f64 no chain is long enough, and integers do not round.

    It decides no schedule: the iterations run in the order and the tiles that the schedule says, and what they
    add to is all that changes.

    There are two totals because a C compiler that knows a place at compile time may hold it in a register all along
    the blocks, and then has too few for the inner loop. Which total it is changes from block to block.
    """

    name = "block-sums"
    contract = Contract(requires=(KERNEL_FUNCTIONS, VECTORS))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [loop for loop in op.walk() if isinstance(loop, ForOp)]:
            if loop.kind.data is LoopKind.SEQUENTIAL:
                _cut(loop)


_Values: TypeAlias = dict[SSAValue, SSAValue]
"""What variables of loops are in copies of the loops."""


@dataclass(frozen=True)
class _Total:
    """One of the totals in an array of them: the one of a number, an expression over a loop's variables."""

    buffer: SSAValue
    which: AffineExpr
    variables: tuple[SSAValue, ...] = ()

    @classmethod
    def number(cls, buffer: SSAValue, number: int) -> _Total:
        """A total that is always the same."""
        return cls(buffer, AffineExpr.constant(number))

    def place(self, access: AccessOp, values: _Values) -> tuple[AffineMap, list[SSAValue]]:
        """Where in it the element is that an access of the array touches."""
        indices = [*self.variables, *(values[v] for v in access.indices)]
        moved = [AffineExpr.dimension(len(self.variables) + k) for k in range(len(access.indices))]
        inside = (expr.replace_dims_and_symbols(moved, []) for expr in access.map.results)
        return AffineMap(len(indices), 0, (self.which, *inside)), indices


@dataclass(frozen=True)
class _Update:
    """An addition to places of a local array: `tile` are the unrolled loops over them, `terms` is how often each is."""

    load: LoadOp
    store: StoreOp
    tile: tuple[ForOp, ...]
    terms: int

    def places(self) -> Iterator[tuple[int, ...]]:
        """The elements that the tile adds to."""
        for point in product(*(loop.constant_range or () for loop in self.tile)):
            pairs = zip(self.tile, point, strict=True)
            values: dict[SSAValue, int] = {loop.variable: value for loop, value in pairs}
            first = self.store.map.eval([values[v] for v in self.store.indices], ())
            for lane in range(self.store.all_lanes):
                yield tuple(at + lane * step for at, step in zip(first, self.store.lane_steps, strict=True))

    def keep(self, totals: SSAValue) -> list[Operation]:
        """Put what the array holds into the first total, and zero into the second."""

        def body(values: _Values) -> list[Operation]:
            held, zero = self.load.clone({**values}), self._zero()
            first, second = (
                self._stored(value, _Total.number(totals, k), values) for k, value in ((0, held), (1, zero))
            )
            return [held, first, zero, second]

        return self._in_tile(body)

    def clear(self) -> list[Operation]:
        """Set the places of the array to zero."""

        def body(values: _Values) -> list[Operation]:
            zero = self._zero()
            return [zero, self.store.clone({**values, self.store.value: zero.result})]

        return self._in_tile(body)

    def add_to(self, total: _Total) -> list[Operation]:
        """Add what the array holds to a total."""

        def body(values: _Values) -> list[Operation]:
            before, held = self._loaded(total, values), self.load.clone({**values})
            after = arith.AddfOp(before.result, held.result)
            return [before, held, after, self._stored(after, total, values)]

        return self._in_tile(body)

    def end(self, totals: SSAValue) -> list[Operation]:
        """Give the array the sum of both totals."""

        def body(values: _Values) -> list[Operation]:
            first, second = (self._loaded(_Total.number(totals, k), values) for k in range(2))
            both = arith.AddfOp(first.result, second.result)
            return [first, second, both, self.store.clone({**values, self.store.value: both.result})]

        return self._in_tile(body)

    def _loaded(self, total: _Total, values: _Values) -> LoadOp:
        lanes, type_ = (0, *self.load.lane_steps), self.load.result.type
        part = None if self.load.touched_lanes == self.load.all_lanes else self.load.touched_lanes
        return LoadOp(total.buffer, *total.place(self.load, values), type_, lanes, part)

    def _stored(self, value: Operation, total: _Total, values: _Values) -> StoreOp:
        lanes = (0, *self.store.lane_steps)
        part = None if self.store.touched_lanes == self.store.all_lanes else self.store.touched_lanes
        return StoreOp(value, total.buffer, *total.place(self.store, values), lanes, part)

    def _zero(self) -> arith.ConstantOp:
        type_ = self.store.value.type
        if is_vector(type_):
            return arith.ConstantOp(splat(0.0, type_))
        return arith.ConstantOp(FloatAttr(0.0, f32))

    def _in_tile(self, body: Callable[[_Values], list[Operation]]) -> list[Operation]:
        """Operations in copies of the tile's loops."""
        copies = [(loop, _copied(loop)) for loop in self.tile]
        operations: list[Operation] = body({loop.variable: copy.variable for loop, copy in copies})
        for _, copy in reversed(copies):
            copy.body.block.add_ops(operations)
            operations = [copy]
        return operations


def _copied(loop: ForOp) -> ForOp:
    """An empty copy of a loop."""
    label = loop.label.data if loop.label is not None else None
    copy = ForOp(loop.lower.data, loop.upper.data, loop.values, loop.step.value.data, loop.kind.data, label)
    copy.variable.name_hint = loop.variable.name_hint
    return copy


def _cut(loop: ForOp) -> None:
    """Make a loop with long sums one over blocks."""
    found = list(_updates(loop, ()))
    if _longest(found) * _iterations(loop) <= LONG:
        return
    sums = _sums(loop, found)
    terms = _longest([update for updates in sums.values() for update in updates])
    if terms * _iterations(loop) <= LONG:
        return
    blocks, block = _loop_over_blocks(loop, _block_length(loop, max(1, BLOCK // terms)))
    turn = AffineExpr.dimension(0) // blocks.step.value.data % 2
    before, start, end, after = list[Operation](), list[Operation](), list[Operation](), list[Operation]()
    for array, updates in sums.items():
        totals = memref.AllocaOp.get(f32, shape=[2, *static_shape(array)])
        totals.memref.name_hint = "totals"
        before.append(totals)
        for update in updates:
            before += update.keep(totals.memref)
            start += update.clear()
            end += update.add_to(_Total(totals.memref, turn, (blocks.variable,)))
            after += update.end(totals.memref)
    blocks.body.block.add_ops([*start, block, *end])
    Rewriter.insert_op(before, InsertPoint.before(blocks))
    Rewriter.insert_op(after, InsertPoint.after(blocks))


def _longest(updates: Sequence[_Update]) -> int:
    """The most terms that an iteration adds to an element."""
    return max((update.terms for update in updates), default=0)


def _sums(loop: ForOp, updates: Sequence[_Update]) -> dict[SSAValue, list[_Update]]:
    """The local arrays from around a loop that it only adds to, to each element in one place of its body."""
    found: dict[SSAValue, list[_Update]] = {}
    for update in updates:
        found.setdefault(update.store.target, []).append(update)
    return {array: updates for array, updates in found.items() if _is_sum(loop, array, updates)}


def _is_sum(loop: ForOp, array: SSAValue, updates: Sequence[_Update]) -> bool:
    own = {op for update in updates for op in (update.load, update.store)}
    users = {use.operation for use in array.uses}
    places = [place for update in updates for place in update.places()]
    return (
        not loop.is_ancestor(array.owner)
        and all(op in own for op in users if loop.is_ancestor(op))
        and len(places) == len(set(places))
    )


def _updates(loop: ForOp, around: tuple[ForOp, ...]) -> Iterator[_Update]:
    """The additions to local arrays in a loop, of which `around` are the loops inside the outermost one."""
    for op in loop.body.block.ops:
        if isinstance(op, ForOp):
            yield from _updates(op, (*around, op))
        elif isinstance(op, StoreOp) and (update := _update(op, around)) is not None:
            yield update


def _update(store: StoreOp, around: Sequence[ForOp]) -> _Update | None:
    """What a store adds to a register tile of f32; None if it does not."""
    is_added = isinstance(store.value.owner, arith.AddfOp) and isinstance(store.target.owner, memref.AllocaOp)
    found = update_of(store) if is_added and memref_type(store.target).element_type == f32 else None
    tile = tuple(loop for loop in around if loop.variable in store.indices)
    if found is None or not all(map(_is_unrolled, tile)) or {*store.indices} != {loop.variable for loop in tile}:
        return None
    return _Update(found[0], store, tile, prod(_iterations(loop) for loop in around if loop not in tile))


def _is_unrolled(loop: ForOp) -> bool:
    return loop.kind.data is LoopKind.UNROLL and loop.constant_range is not None


def _iterations(loop: ForOp) -> int:
    """Of a loop for any sizes; 1 where that is not known."""
    ranges = [index_range(value) for value in loop.values]
    first = [interval(expr, ranges) for expr in loop.lower.data.results]
    end = [interval(expr, ranges) for expr in loop.upper.data.results]
    firsts, ends = [low for low, _ in filter(None, first)], [high for _, high in filter(None, end)]
    return len(range(max(firsts), min(ends), loop.step.value.data)) if firsts and ends else 1


def _block_length(loop: ForOp, wanted: int) -> int:
    """Iterations of a block: about `wanted`, so that all blocks are of one length where they can be."""
    iterations = len(loop.constant_range or ())
    lengths = [n for n in range((wanted + 1) // 2, 2 * wanted + 1) if iterations % n == 0]
    return min(lengths, key=lambda n: abs(n - wanted)) if iterations and lengths else wanted


def _loop_over_blocks(loop: ForOp, length: int) -> tuple[ForOp, ForOp]:
    """A loop over blocks of `length` iterations in the place of another, and that one as the loop through a block."""
    step, kind = loop.step.value.data, loop.kind.data
    name, label = loop.variable.name_hint or "i", loop.label.data if loop.label is not None else "i"
    blocks = ForOp(loop.lower.data, loop.upper.data, loop.values, step * length, kind, f"{label} block")
    blocks.variable.name_hint = f"{name}_block"
    first, values = AffineExpr.dimension(0), tuple(loop.values)
    ends: tuple[AffineExpr, ...] = (first + step * length,)
    if loop.constant_range is None or len(loop.constant_range) % length:
        later = [AffineExpr.dimension(1 + k) for k in range(len(values))]
        ends = (*ends, *(expr.replace_dims_and_symbols(later, []) for expr in loop.upper.data.results))
    else:
        values = ()
    dims = 1 + len(values)
    block = ForOp(
        AffineMap(dims, 0, (first,)),
        AffineMap(dims, 0, ends),
        (blocks.variable, *values),
        step,
        kind,
        label,
        loop.detach_region(loop.body),
    )
    block.attributes |= loop.attributes
    for new in (blocks, block):
        new.location = loop.location
    Rewriter.replace_op(loop, blocks)
    return blocks, block
