"""Pass `vectorize`: loops marked `vector` become vector operations.

Takes kernels' functions from `convert-gk-to-loop`. A vector loop is innermost and straight-line. It is cut into whole
vectors of the target's width (a loop where there are several) and, for the rest, a part of one more (`vector_rests`);
where that may not be, vectors of half the width, a quarter, ... so that nothing runs one element at a time. An
element-wise update of one place (`y = combine(y, x)`) is summed lane by lane in a vector accumulator and reduced at the
end: a named reassociation of floating-point sums. A loop that can't be vectorised becomes sequential and says why
(`loop.refused`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass

from msc.dialects.loop import ForOp, LoopKind, LoopKindAttr
from msc.lowering.vector_body import NotVectorisable, VectorBody
from msc.lowering.vector_reductions import LaneSums
from msc.lowering.vector_rests import Rest, may_be_part
from msc.lowering.vector_types import widest_bits
from msc.targets.cpu import cpu_target

UNROLLED_VECTORS = 8
"""Up to this many vectors are spelled out by an unrolled loop; they are a register tile."""
CHAINS = 4
"""Independent accumulators of a long sum: they hide the latency of the addition."""


@dataclass(frozen=True)
class Vectorize(ModulePass):
    """Loops marked `vector` become operations on vectors of `target`'s width; sequential with `enable=false`."""

    name = "vectorize"
    target: str = "native"
    enable: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        bits = cpu_target(self.target).vector_bytes * 8
        ends: dict[Operation, int] = {}
        loops = [loop for loop in op.walk() if isinstance(loop, ForOp) and loop.kind.data is LoopKind.VECTOR]
        for loop in loops:
            try:
                if not self.enable:
                    raise NotVectorisable("vectors are turned off")
                _vectorize(loop, bits, ends)
            except NotVectorisable as refusal:
                loop.kind = LoopKindAttr(LoopKind.SEQUENTIAL)
                loop.attributes["loop.refused"] = StringAttr(str(refusal))


@dataclass(frozen=True)
class _Piece:
    """`count` steps of `chains` vectors of `lanes` elements, from `start`; of a `rest`, a part of one vector."""

    start: int
    count: int
    lanes: int
    chains: int = 1
    rest: Rest | None = None

    @property
    def step(self) -> int:
        return self.lanes * self.chains

    @property
    def end(self) -> int:
        return self.start + self.count * self.step


def _pieces(iterations: range, lanes: int, chains: int, ends: dict[Operation, int] | None) -> list[_Piece]:
    """The iterations as whole vectors, then a part of one; ever smaller ones if `ends`, of local rows, is None."""
    pieces: list[_Piece] = []
    start, left = iterations.start, len(iterations)
    for width, multiple in [(lanes, chains)] * (chains > 1) + [(lanes, 1)]:
        count = left // (width * multiple)
        if count:
            pieces.append(_Piece(start, count, width, multiple))
            start, left = pieces[-1].end, left - count * width * multiple
    if ends is not None and left.bit_count() > 1:
        return [*pieces, _Piece(start, 1, 1 << left.bit_length(), rest=Rest(left, ends))]
    return [*pieces, *_halves(start, left, lanes)]


def _halves(start: int, left: int, lanes: int) -> Iterator[_Piece]:
    while left:
        lanes //= 2
        if left >= lanes:
            yield _Piece(start, 1, lanes)
            start, left = start + lanes, left - lanes


def _vectorize(loop: ForOp, bits: int, ends: dict[Operation, int]) -> None:
    iterations = loop.constant_range
    if iterations is None or iterations.step != 1:
        raise NotVectorisable("its bounds are not constant")
    lanes = max(1, bits // widest_bits(loop))
    sums = LaneSums.of(loop)
    long = bool(sums.updates) and len(iterations) >= lanes * CHAINS * 2
    new: list[Operation] = []
    parts = ends if not sums.updates and may_be_part(loop) else None
    for piece in _pieces(iterations, lanes, CHAINS if long else 1, parts):
        new += _emit(loop, piece, sums)
    block = loop.parent
    assert block is not None
    block.insert_ops_before(new, loop)
    loop.detach()
    loop.erase()


def _emit(loop: ForOp, piece: _Piece, sums: LaneSums) -> list[Operation]:
    """One piece: straight code for a single vector, else a loop; sums over several vectors get accumulators."""
    if piece.lanes == 1:
        return VectorBody(loop, AffineExpr.constant(piece.start), (), 1, {}).operations
    if piece.count == 1 and piece.chains == 1:
        body = VectorBody(loop, AffineExpr.constant(piece.start), (), piece.lanes, sums.updates, piece.rest)
        return [*body.operations, *sums.combine_values(body.partial)]
    accumulators, before = sums.accumulators(piece.lanes, piece.chains)
    vectors, body = _vector_loop(piece, loop)
    if piece.chains == 1:
        inside = VectorBody(loop, AffineExpr.dimension(0), (vectors.variable,), piece.lanes, sums.updates)
        body.body.block.add_ops([*inside.operations, *sums.accumulate(inside.partial, accumulators, None, piece.lanes)])
    else:
        _chained(loop, piece, sums, accumulators, vectors, body)
    return [*before, vectors, *sums.combine_accumulators(accumulators, piece.lanes, piece.chains)]


def _chained(
    loop: ForOp, piece: _Piece, sums: LaneSums, accumulators: Sequence[Operation], vectors: ForOp, body: ForOp
) -> None:
    chain = body.variable
    at = AffineExpr.dimension(0) + AffineExpr.dimension(1) * piece.lanes
    inside = VectorBody(loop, at, (vectors.variable, chain), piece.lanes, sums.updates)
    body.body.block.add_ops([*inside.operations, *sums.accumulate(inside.partial, accumulators, chain, piece.lanes)])


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
    op.variable.name_hint = label
    return op
