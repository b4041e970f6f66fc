"""Pass `vectorize`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from msc.analysis.properties import KERNEL_FUNCTIONS, KERNELS, VECTORS
from msc.analysis.target import target_of
from msc.dialects.loop import AccessOp, ForOp, LoadOp, LoopKind, LoopKindAttr, StoreOp
from msc.ir.contracts import Contract
from msc.lowering.cpu.failure import refuse
from msc.lowering.cpu.vectorize.vector_body import NotVectorisable, VectorBody
from msc.lowering.cpu.vectorize.vector_reductions import LaneSums, update_of
from msc.lowering.cpu.vectorize.vector_tails import Tail, local_rows, may_be_part
from msc.lowering.cpu.vectorize.vector_types import widest_bits
from msc.poly.affine import linear_form, simplified
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
    floating-point sums; so is the sum of two products, added one after the other. Raises MSC0404 for a vector loop
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
        for each in list(op.walk()):
            if isinstance(each, StoreOp) and isinstance(each.value.type, VectorType):
                _add_products(each)


def _add_products(store: StoreOp) -> None:
    """`y = y + (a * b + c * d)` as `(y + a * b) + c * d`: two fused multiply-adds, in place of three steps."""
    found, total = update_of(store), store.value.owner
    if found is None or not isinstance(total, arith.AddfOp):
        return
    before, both = found[0].results[0], found[1]
    if not isinstance(both.owner, arith.AddfOp) or both.uses.get_length() != 1:
        return
    first, second = both.owner.operands
    if not isinstance(first.owner, arith.MulfOp) or not isinstance(second.owner, arith.MulfOp):
        return
    sum_ = arith.AddfOp(before, first)
    Rewriter.insert_op(sum_, InsertPoint.before(total))
    total.operands = [sum_.result, second]
    both.owner.detach()
    both.owner.erase()


@dataclass(frozen=True)
class _Piece:
    """`count` steps of `chains` vectors of `lanes` elements, from `start` to `end`; of a `tail`, a part of one vector.

    `count` is None if each call decides it: bounds are then expressions over the values of the loop, and it starts at
    the largest of `start`.
    """

    start: tuple[AffineExpr, ...]
    end: AffineExpr
    count: int | None
    lanes: int
    chains: int = 1
    tail: Tail | None = None

    @classmethod
    def known(cls, start: int, count: int, lanes: int, chains: int = 1, tail: Tail | None = None) -> _Piece:
        """A piece with constant bounds."""
        end = start + count * lanes * chains
        return cls((AffineExpr.constant(start),), AffineExpr.constant(end), count, lanes, chains, tail)

    @property
    def is_single(self) -> bool:
        """Whether it is one vector in each call."""
        return self.count == 1 and self.chains == 1


def _pieces(iterations: range, lanes: int, chains: int) -> tuple[list[_Piece], int]:
    """The iterations as whole vectors, and how many are left."""
    pieces: list[_Piece] = []
    start, left = iterations.start, len(iterations)
    for width, multiple in [(lanes, chains)] * (chains > 1) + [(lanes, 1)]:
        count = left // (width * multiple)
        if count:
            pieces.append(_Piece.known(start, count, width, multiple))
            start, left = start + count * width * multiple, left - count * width * multiple
    return pieces, left


def _halves(start: int, left: int, lanes: int) -> Iterator[_Piece]:
    while left:
        lanes //= 2
        if left >= lanes:
            yield _Piece.known(start, 1, lanes)
            start, left = start + lanes, left - lanes


def _open_pieces(loop: ForOp, lanes: int, sums: LaneSums, machine: Machine) -> Iterator[_Piece]:
    """The pieces of a loop whose bounds calls decide: whole vectors, then at most one of each smaller power of two."""
    (start,), (end,) = loop.lower.data.results, loop.upper.data.results
    length = linear_form(end - start)
    may_be_negative = length is None or length.constant < 0 or any(c < 0 for c in length.coefficients.values())
    widths = [lanes >> k for k in range(lanes.bit_length())]
    chains = _chains(len(sums.updates), machine) if sums.updates else 1
    first = (start,)
    for width, multiple in [(lanes, chains)] * (chains > 1) + [(width, 1) for width in widths]:
        step = width * multiple
        last = simplified(start + (end - start) // step * step) if step > 1 else end
        yield _Piece(first, last, None, width, multiple)
        first = (start, last) if may_be_negative else (last,)


def _vectorize(loop: ForOp, machine: Machine, ends: Mapping[Operation, int]) -> None:
    if loop.step.value.data != 1 or len(loop.lower.data.results) != 1 or len(loop.upper.data.results) != 1:
        raise NotVectorisable("it has several bounds, or steps of several elements")
    lanes = max(1, machine.vectors.bits // widest_bits(loop))
    sums, iterations = LaneSums.of(loop) if lanes > 1 else LaneSums({}), loop.constant_range
    if iterations is None:
        pieces = list(_open_pieces(loop, lanes, sums, machine))
    else:
        pieces = _cut(loop, iterations, lanes, sums, machine, ends)
    new = _emitted(loop, pieces, sums)
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
        return [*pieces, _Piece.known(start, 1, lanes if one_width else 1 << left.bit_length(), tail=Tail(left, ends))]
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
    if len(together) == 1 and together[0].is_single:
        together = []
    apart = (op for p in pieces if p not in together for op in _emit(loop, p, sums))
    return [*(_summed(loop, together, sums) if together else ()), *apart]


def _emit(loop: ForOp, piece: _Piece, sums: LaneSums) -> list[Operation]:
    """One piece: straight code for a single vector, else a loop."""
    if piece.is_single and piece.lanes == 1:
        return VectorBody(loop, piece.start[0], (), 1, {}).operations
    if piece.is_single:
        operations, partial = _straight(loop, piece, sums)
        return [*operations, *sums.combine_values(partial)]
    vectors, body = _vector_loop(piece, loop)
    updates: Mapping[Operation, SSAValue] = sums.updates if piece.lanes > 1 else {}
    inside = VectorBody(loop, AffineExpr.dimension(0), (vectors.variable,), piece.lanes, updates)
    body.body.block.add_ops([*inside.operations, *sums.combine_values(inside.partial)])
    return [vectors]


def _straight(loop: ForOp, piece: _Piece, sums: LaneSums) -> tuple[list[Operation], Mapping[Operation, SSAValue]]:
    """A single vector, and what it adds to each sum."""
    body = VectorBody(loop, piece.start[0], (), piece.lanes, sums.updates, piece.tail)
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
    if piece.is_single:
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
    is_short = piece.count is not None and piece.count <= UNROLLED_VECTORS and piece.chains == 1
    kind, values = LoopKind.UNROLL if is_short else LoopKind.SEQUENTIAL, tuple(loop.values)
    start, end = (AffineMap(len(values), 0, bounds) for bounds in (piece.start, (piece.end,)))
    outer = ForOp(start, end, values, piece.lanes * piece.chains, kind, label)
    outer.variable.name_hint = valid_hint(label)
    if piece.chains == 1:
        return outer, outer
    zero, chains = (AffineMap.constant_map(bound) for bound in (0, piece.chains))
    inner = ForOp(zero, chains, (), 1, LoopKind.UNROLL, "chain")
    inner.variable.name_hint = "chain"
    outer.body.block.add_op(inner)
    return outer, inner


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
