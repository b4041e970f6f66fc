"""Pass `vectorize`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass

from msc.analysis.properties import KERNEL_FUNCTIONS, KERNELS, VECTORS
from msc.analysis.target import target_of
from msc.dialects.loop import AccessOp, ForOp, LoadOp, LoopKind, LoopKindAttr, StoreOp
from msc.ir.contracts import Contract
from msc.lowering.cpu.failure import refuse
from msc.lowering.cpu.vectorize.vector_body import NotVectorisable, VectorBody
from msc.lowering.cpu.vectorize.vector_reductions import LaneSums
from msc.lowering.cpu.vectorize.vector_tails import Tail, local_rows, may_be_part
from msc.lowering.cpu.vectorize.vector_types import widest_bits
from msc.support.naming import valid_hint
from msc.targets.machine import Machine

UNROLLED_VECTORS = 8
"""Vectors of a loop that are written out, as the row of a register tile; more are a loop. What `vector` means in a
schedule (docs/schedules.md), on every machine: it bounds the length of the code."""


@dataclass(frozen=True)
class Vectorize(ModulePass):
    """Loops marked `vector` become operations on vectors of the target's width; sequential with `enable=false`.

    Takes kernels' functions from `convert-gk-to-loop`. A vector loop is straight-line, or becomes it when the
    unrolled loops of a register tile in it are unrolled. It is cut into whole vectors of the
    target's width (a loop where there are several) and, for the tail, a part of one more (`vector_tails`); where that
    may not be or half of one is enough, vectors of half the width, a quarter, ... so that nothing runs one element at
    a time. Rows of several vectors of a register tile end with a part of one. An element-wise update of one place (`y
    = combine(y, x)`) is summed lane by lane in a vector accumulator and reduced at the end: a named reassociation of
    floating-point sums. Raises MSC0404 for a vector loop
    that has no vector form; `schedule-kernels` refuses schedules with one (`msc.poly.lanes`).
    """

    name = "vectorize"
    contract = Contract(requires=(KERNELS, KERNEL_FUNCTIONS), ensures=(VECTORS,))
    enable: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = target_of(op).machine
        ends = local_rows(op)
        loops = [loop for loop in op.walk() if type(loop) is ForOp and loop.kind.data is LoopKind.VECTOR]
        for loop in loops:
            if not self.enable:
                loop.kind = LoopKindAttr(LoopKind.SEQUENTIAL)
                continue
            try:
                unroll_inside(loop)
                _vectorize(loop, machine, ends)
            except NotVectorisable as refusal:
                name = loop.label.data if loop.label is not None else "a loop"
                raise refuse(self.name, loop, f"{name} is no vector loop: {refusal}") from None


@dataclass(frozen=True)
class _Piece:
    """`count` steps of `chains` vectors of `lanes` elements, from `start`; of a `tail`, a part of one vector."""

    start: int
    count: int
    lanes: int
    chains: int = 1
    tail: Tail | None = None

    @property
    def step(self) -> int:
        return self.lanes * self.chains

    @property
    def end(self) -> int:
        return self.start + self.count * self.step


def _pieces(iterations: range, lanes: int, chains: int) -> tuple[list[_Piece], int]:
    """The iterations as whole vectors, and how many are left."""
    pieces: list[_Piece] = []
    start, left = iterations.start, len(iterations)
    for width, multiple in [(lanes, chains)] * (chains > 1) + [(lanes, 1)]:
        count = left // (width * multiple)
        if count:
            pieces.append(_Piece(start, count, width, multiple))
            start, left = pieces[-1].end, left - count * width * multiple
    return pieces, left


def _halves(start: int, left: int, lanes: int) -> Iterator[_Piece]:
    while left:
        lanes //= 2
        if left >= lanes:
            yield _Piece(start, 1, lanes)
            start, left = start + lanes, left - lanes


def _vectorize(loop: ForOp, machine: Machine, ends: Mapping[Operation, int]) -> None:
    iterations = loop.constant_range
    if iterations is None or iterations.step != 1:
        raise NotVectorisable("its bounds are not constant")
    sums = LaneSums.of(loop)
    lanes = max(1, machine.vectors.bits // widest_bits(loop))
    new = _emitted(loop, _cut(loop, iterations, lanes, sums, machine, ends), sums)
    block = loop.parent
    assert block is not None
    block.insert_ops_before(new, loop)
    loop.detach()
    loop.erase()


def _cut(
    loop: ForOp, iterations: range, lanes: int, sums: LaneSums, machine: Machine, ends: Mapping[Operation, int]
) -> list[_Piece]:
    """The pieces of a loop; sums over several vectors take what is left into the same accumulators."""
    long = bool(sums.updates) and len(iterations) >= lanes * machine.chains * 2
    pieces, left = _pieces(iterations, lanes, _chains(len(sums.updates), machine) if long else 1)
    start = iterations[-1] + 1 - left
    if not may_be_part(loop):
        return [*pieces, *_halves(start, left, lanes)]
    one_width = bool(pieces) and (
        bool(sums.updates) or _in_registers(loop, (len(iterations) - left) // lanes, left, ends)
    )
    if left and (left.bit_count() > 1 or one_width):
        return [*pieces, _Piece(start, 1, lanes if one_width else 1 << left.bit_length(), tail=Tail(left, ends))]
    return [*pieces, *_halves(start, left, lanes)]


def _in_registers(loop: ForOp, vectors: int, left: int, ends: Mapping[Operation, int]) -> bool:
    """Whether the loop is one of the rows of a register tile whose vectors share a register with what they multiply.

    What is left would need one of its own width; beside a single vector that costs less than a part does.
    """
    around = loop.parent_op()
    unrolled = isinstance(around, ForOp) and around.kind.data is LoopKind.UNROLL
    if not unrolled or vectors < 2 or left < 2:
        return False
    return any(isinstance(op, AccessOp) and op.buffer.owner in ends for op in loop.body.block.ops)


def _chains(sums: int, machine: Machine) -> int:
    """Accumulators of each sum: of many sums one each keeps as many additions in flight."""
    return min(machine.chains, -(-machine.sums_in_flight // sums))


def _emitted(loop: ForOp, pieces: Sequence[_Piece], sums: LaneSums) -> list[Operation]:
    """All pieces: what sums over several vectors of one width has accumulators in common."""
    together = [p for p in pieces if sums.updates and p.lanes == pieces[0].lanes]
    if sum(p.count * p.chains for p in together) < 2:
        together = []
    apart = (op for p in pieces if p not in together for op in _emit(loop, p, sums))
    return [*(_summed(loop, together, sums) if together else ()), *apart]


def _emit(loop: ForOp, piece: _Piece, sums: LaneSums) -> list[Operation]:
    """One piece: straight code for a single vector, else a loop."""
    if piece.lanes == 1:
        return VectorBody(loop, AffineExpr.constant(piece.start), (), 1, {}).operations
    if piece.count == 1:
        operations, partial = _straight(loop, piece, sums)
        return [*operations, *sums.combine_values(partial)]
    vectors, body = _vector_loop(piece, loop)
    body.body.block.add_ops(VectorBody(loop, AffineExpr.dimension(0), (vectors.variable,), piece.lanes, {}).operations)
    return [vectors]


def _straight(loop: ForOp, piece: _Piece, sums: LaneSums) -> tuple[list[Operation], Mapping[Operation, SSAValue]]:
    """A single vector, and what it adds to each sum."""
    body = VectorBody(loop, AffineExpr.constant(piece.start), (), piece.lanes, sums.updates, piece.tail)
    if piece.tail is None:
        return body.operations, body.partial
    masks, partial = sums.only(body.partial, piece.tail.count, piece.lanes)
    return [*body.operations, *masks], partial


def _summed(loop: ForOp, pieces: Sequence[_Piece], sums: LaneSums) -> list[Operation]:
    """Pieces of one width, lane by lane into accumulators, which are combined at the end."""
    lanes, chains = pieces[0].lanes, max(p.chains for p in pieces)
    accumulators, operations = sums.accumulators(lanes, chains)
    for piece in pieces:
        operations += _accumulated(loop, piece, sums, accumulators)
    return [*operations, *sums.combine_accumulators(accumulators, lanes, chains)]


def _accumulated(loop: ForOp, piece: _Piece, sums: LaneSums, accumulators: Sequence[Operation]) -> list[Operation]:
    if piece.count == 1 and piece.chains == 1:
        operations, partial = _straight(loop, piece, sums)
        return [*operations, *sums.accumulate(partial, accumulators, None, piece.lanes)]
    vectors, body = _vector_loop(piece, loop)
    at, variables, chain = AffineExpr.dimension(0), (vectors.variable,), None
    if piece.chains > 1:
        at, variables, chain = (
            at + AffineExpr.dimension(1) * piece.lanes,
            (vectors.variable, body.variable),
            body.variable,
        )
    inside = VectorBody(loop, at, variables, piece.lanes, sums.updates)
    body.body.block.add_ops([*inside.operations, *sums.accumulate(inside.partial, accumulators, chain, piece.lanes)])
    return [vectors]


def _vector_loop(piece: _Piece, loop: ForOp) -> tuple[ForOp, ForOp]:
    """The loop over a piece's vectors, and the loop whose body handles one: an inner one over chains, or the same."""
    label = loop.label.data if loop.label is not None else None
    kind = LoopKind.UNROLL if piece.count <= UNROLLED_VECTORS and piece.chains == 1 else LoopKind.SEQUENTIAL
    outer = _constant_loop(piece.start, piece.end, piece.step, kind, label)
    if piece.chains == 1:
        return outer, outer
    inner = _constant_loop(0, piece.chains, 1, LoopKind.UNROLL, "chain")
    outer.body.block.add_op(inner)
    return outer, inner


def _constant_loop(start: int, end: int, step: int, kind: LoopKind, label: str | None) -> ForOp:
    op = ForOp(AffineMap.constant_map(start), AffineMap.constant_map(end), (), step, kind, label)
    op.variable.name_hint = valid_hint(label)
    return op


def unroll_inside(loop: ForOp) -> None:
    """Replace the unrolled loops inside a loop by their iterations; what several of these load is loaded once."""
    inner = [op for op in loop.body.block.ops if isinstance(op, ForOp) and _is_unrolled(op)]
    for tile in inner:
        unroll_inside(tile)
        _replace(tile)
    if inner:
        _load_once(loop)


def _is_unrolled(loop: ForOp) -> bool:
    return loop.kind.data is LoopKind.UNROLL and loop.constant_range is not None


def _replace(tile: ForOp) -> None:
    block = tile.parent
    assert block is not None
    for k in tile.constant_range or ():
        block.insert_ops_before(VectorBody(tile, AffineExpr.constant(k), (), 1, {}).operations, tile)
    tile.detach()
    tile.erase()


def _load_once(loop: ForOp) -> None:
    """Of equal loads from buffers that the loop does not write, keep the first."""
    operations = list(loop.body.block.ops)
    written = {op.target for op in operations if isinstance(op, StoreOp)}
    known: dict[tuple[SSAValue, AffineMap, tuple[SSAValue, ...]], Operation] = {}
    for op in operations:
        if isinstance(op, LoadOp) and op.source not in written:
            first = known.setdefault((op.source, op.map, tuple(op.indices)), op)
            if first is not op:
                op.result.replace_all_uses_with(first.results[0])
                op.detach()
                op.erase()
