"""What moves elements along an axis of open size, as gathers whose indices are computed from the sizes.

Elsewhere a tensor's valid part begins where the tensor begins, so that its indices are constant expressions. What is
reversed, read from its end, joined, padded or repeated has elements at places that depend on the sizes: element i of
the result is element f(i) of the operand, where f is arithmetic on `ms.iota` and on constants that are sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from msc.analysis.valid_extents import ValidExtents
from msc.dialects import ms
from msc.dialects.element_types import element_type
from msc.dialects.ms.base import MsOp
from msc.dialects.open_sizes import INSIDE, VALID, valid_attribute
from msc.graph.emitter import Emitter
from msc.graph.shapes.size_expressions import linear, number
from msc.ir.typed import static_shape
from msc.poly.affine import bounds
from msc.poly.valid_extents import Factor, Size, ranges_of
from msc.support.diagnostics import MscError

MOST_REPETITIONS = 8
"""Of a tile along an axis of open size: each takes a comparison an element."""


@dataclass
class MovedOperations:
    """What has become of an entry function: `made` operations stand for none of the model's but for the last of each.

    `moved` has these, with the name and the operands of the operation that each stands for.
    """

    made: set[Operation] = field(default_factory=set[Operation])
    moved: dict[Operation, tuple[str, Sequence[SSAValue]]] = field(
        default_factory=dict[Operation, tuple[str, Sequence[SSAValue]]]
    )


def with_computed_indices(
    entry: FuncOp,
    valid: ValidExtents,
    samples: Sequence[FuncOp],
    at: Sequence[Sequence[int]],
    sizes: Sequence[Size],
) -> MovedOperations:
    """Rewrite what moves elements along open axes. `samples` are the same function at the sizes `at`.

    `valid` follows the entry up to each operation that moves elements, if it can.
    """
    moves = MovedOperations()
    blocks = [_operations(f.body.block) for f in (entry, *samples)]
    for op, *others in zip(*blocks, strict=False):
        if any(type(other) is not type(op) for other in others):
            break
        if isinstance(op, ms.IotaOp | ms.BroadcastToOp):
            _bound(op, others, at, sizes)
        handler = _HANDLERS.get(type(op))
        if handler is not None and isinstance(op, MsOp):
            if op.parent is entry.body.block:
                with suppress(MscError):  # what is refused is refused when all is followed
                    valid.follow_to(op)
            _rewrite(handler, Move(op, [o for o in others if isinstance(o, MsOp)], at, sizes, valid), moves)
    return moves


def _bound(op: Operation, others: Sequence[Operation], at: Sequence[Sequence[int]], sizes: Sequence[Size]) -> None:
    """Note which part of a tensor that no operand bounds is valid."""
    shape, at_samples = static_shape(op.results[0]), [static_shape(other.results[0]) for other in others]
    if any(len(other) != len(shape) for other in at_samples):
        return
    dims = [_over_sizes(n, [s[axis] for s in at_samples], at, sizes) for axis, n in enumerate(shape)]
    known = [dim for dim in dims if dim is not None]
    if len(known) == len(shape) and any(dim.used_dims() for dim in known):
        valid = tuple((Factor(n, d if d.used_dims() else None),) for n, d in zip(shape, known, strict=True))
        op.attributes[VALID] = valid_attribute(valid, sizes)


def _operations(block: Block) -> list[Operation]:
    """What computes, in the bodies of loops too."""
    found = list[Operation]()
    for op in block.ops:
        if not isinstance(op, ms.ConstantOp | ms.GetParameterOp):
            found += [op, *(_operations(op.body.block) if isinstance(op, scf.ForOp) else ())]
    return found


def _rewrite(handler: Callable[[Move], SSAValue | None], move: Move, moves: MovedOperations) -> None:
    op = move.op
    value = handler(move)
    if value is None:
        return
    block = op.parent
    assert block is not None
    for made in move.emit.ops:
        made.location = op.location
        block.insert_op_before(made, op)
    moves.made.update(made for made in move.emit.ops if made is not value.owner)
    assert isinstance(value.owner, Operation)
    moves.moved[value.owner] = op.name, tuple(op.operands)
    value.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(value)
    block.erase_op(op)


def _over_sizes(
    top: int, values: Sequence[int], at: Sequence[Sequence[int]], sizes: Sequence[Size]
) -> AffineExpr | None:
    """A number at the largest sizes and at others, as an expression over the sizes; None where it is none."""
    found = linear(np.array(top, np.int64), [np.array(v, np.int64) for v in values], at, [s.high for s in sizes])
    return None if found is None else found.expression()


class Move:
    """One operation at the largest sizes and at others, and a way to write operations in its place."""

    def __init__(
        self,
        op: MsOp,
        others: Sequence[MsOp],
        at: Sequence[Sequence[int]],
        sizes: Sequence[Size],
        valid: ValidExtents,
    ) -> None:
        self.op, self.others = op, others
        self.emit = Emitter(op)
        self._at, self._sizes, self._valid = at, sizes, valid

    def each(self, read: Callable[[MsOp], int]) -> AffineExpr | None:
        """What an operation says, as an expression over the sizes; None where it is none."""
        return _over_sizes(read(self.op), [read(other) for other in self.others], self._at, self._sizes)

    def least(self, expression: AffineExpr) -> int:
        """The smallest value in the ranges of the sizes: what is cut at 0 for small sizes is not linear there."""
        return bounds(expression, ranges_of(self._sizes))[0]

    def size(self, operand: int, axis: int) -> AffineExpr | None:
        """The size of an operand's axis; None where it is no expression over the sizes."""
        known = self._valid.known(self.op.operands[operand])
        if known is not None and len(known[axis]) == 1 and known[axis][0].bound is not None:
            return known[axis][0].bound
        return self.each(lambda op: op.shape(operand)[axis])

    def is_alike(self, read: Callable[[MsOp], object]) -> bool:
        """Whether an operation says the same at all sizes."""
        return all(read(other) == read(self.op) for other in self.others)

    def number(self, expression: AffineExpr) -> SSAValue:
        """An expression over the sizes, of type i64."""
        return self.emit.insert(number(expression, [size.high for size in self._sizes])).result

    def places(self, count: AffineExpr) -> SSAValue:
        """The numbers below `count`, of type i64."""
        most = count.eval([size.high for size in self._sizes], ())
        value = self.emit(ms.IotaOp, shape=[most], axis=0, dtype=element_type("i64"))
        if count.used_dims() and isinstance(value.owner, Operation):
            value.owner.attributes[VALID] = valid_attribute(((Factor(most, count),),), self._sizes)
        return value

    def inside(self, index: SSAValue, size: AffineExpr) -> SSAValue:
        """An index cut to 0 up to `size`: what is masked reads some element, and never one that is not there."""
        return self.emit(ms.MaximumOp, self.emit(ms.MinimumOp, index, self.number(size + -1)), 0)

    def gathered(self, x: SSAValue, index: SSAValue, axis: int) -> SSAValue:
        """The elements of x at these places of an axis."""
        return self.emit(ms.GatherOp, x, index, axis=axis)

    def chosen(self, condition: SSAValue, x: SSAValue, other: SSAValue | float, axis: int) -> SSAValue:
        """X where the condition on places of an axis holds."""
        rank = len(self.emit.shape(x))
        shape = (*self.emit.shape(condition), *[1] * (rank - axis - 1))
        return self.emit(ms.SelectOp, self.emit.reshape(condition, shape), x, other)


def _reverse(move: Move) -> SSAValue | None:
    op, emit = move.op, move.emit
    axes = {axis % len(op.shape(0)) for axis in op.ints("axis")}
    opened = [axis for axis in sorted(axes) if not move.is_alike(lambda o, a=axis: o.shape(0)[a])]
    x, rest = op.operands[0], sorted(axes.difference(opened))
    for axis in opened:
        size = move.size(0, axis)
        if size is None:
            return None
        x = move.gathered(x, emit(ms.SubOp, move.number(size + -1), move.places(size)), axis)
    return None if not opened else emit(ms.ReverseOp, x, axis=rest) if rest else x


def _ranges(op: MsOp) -> tuple[range, ...]:
    assert isinstance(op, ms.SliceOp)
    return tuple(places for places in op.ranges() if places is not None)


def _is_prefix(op: MsOp, axis: int) -> bool:
    """Whether a slice takes all that begins at its first place."""
    places = _ranges(op)[axis]
    return len(places) == len(range(places.start, op.shape(0)[axis], places.step))


def _slice(move: Move) -> SSAValue | None:
    """What begins at the same place, and takes a number or all that follows, stays."""
    op, emit = move.op, move.emit
    ranges, shape = _ranges(op), op.shape(0)
    moved = list[int]()
    for axis in range(len(shape)):
        begins = move.is_alike(lambda o, a=axis: _ranges(o)[a].start) and ranges[axis].step > 0
        counts = move.is_alike(lambda o, a=axis: len(_ranges(o)[a]))
        to_the_end = all(_is_prefix(o, axis) for o in (op, *move.others))
        if not (begins and (counts or to_the_end)):
            moved.append(axis)
    x, kept = (
        op.operands[0],
        [range(n) if a in moved else r for a, (n, r) in enumerate(zip(shape, ranges, strict=True))],
    )
    if not moved or not all(move.is_alike(lambda o, a=axis: _ranges(o)[a].step) for axis in moved):
        return None
    if any(places != range(n) for places, n in zip(kept, shape, strict=True)):
        ends = [places.start + len(places) * places.step for places in kept]
        x = emit(ms.SliceOp, x, begin=[r.start for r in kept], end=ends, strides=[r.step for r in kept])
    for axis in moved:
        start, count = (move.each(read) for read in (_start(axis), _count(axis)))
        if start is None or count is None or not ranges[axis] or min(move.least(start), move.least(count)) < 0:
            return None
        places, step = move.places(count), ranges[axis].step
        sign = ms.AddOp if step > 0 else ms.SubOp
        steps = places if abs(step) == 1 else emit(ms.MulOp, places, abs(step))
        x = move.gathered(x, emit(sign, move.number(start), steps), axis)
    return x


def _start(axis: int) -> Callable[[MsOp], int]:
    return lambda op: _ranges(op)[axis].start


def _count(axis: int) -> Callable[[MsOp], int]:
    return lambda op: len(_ranges(op)[axis])


def _concat(move: Move) -> SSAValue | None:
    op, emit = move.op, move.emit
    axis, count = op.int_("axis") % len(op.shape(0)), len(op.operands)
    sizes = [move.size(k, axis) for k in range(count)]
    known = [size for size in sizes if size is not None]
    if len(known) != count or not any(size.used_dims() for size in known):
        return None
    ends = list(accumulate(known))
    places, result = move.places(ends[-1]), None
    for x, size, end in reversed(list(zip(op.operands, known, ends, strict=True))):
        if emit.shape(x)[axis] == 0:
            continue
        local = emit(ms.SubOp, places, move.number(end + size * -1))
        part = move.gathered(x, move.inside(local, size), axis)
        before = emit(ms.LessOp, places, move.number(end))
        result = part if result is None else move.chosen(before, part, result, axis)
    return result


def _pad(move: Move) -> SSAValue | None:
    op, emit = move.op, move.emit
    assert isinstance(op, ms.PadOp)
    amounts, rank = op.amounts(), len(op.shape(0))
    opened = [a for a in range(rank) if any(amounts[a]) and not move.is_alike(lambda o, a=a: o.shape(0)[a])]
    if not opened or not move.is_alike(lambda o: o.ints("pad")):
        return None
    x = op.operands[0]
    rest = [(0, 0) if a in opened else amounts[a] for a in range(rank)]
    value, mode = op.real("value"), op.word("mode")
    if any(map(any, rest)):
        pad = [*(b for b, _ in rest), *(e for _, e in rest)]
        x = emit(ms.PadOp, x, pad=pad, mode=mode, value=value)
    for axis in opened:
        size, (before, after) = move.size(0, axis), amounts[axis]
        if size is None or emit.shape(x)[axis] == 0:
            return None
        local = emit(ms.SubOp, move.places(size + (before + after)), before)
        part = move.gathered(x, move.inside(_source(move, local, size, mode), size), axis)
        if mode == "constant":
            there = emit(ms.LogicalAndOp, emit(ms.GreaterEqualOp, local, 0), emit(ms.LessOp, local, move.number(size)))
            part = move.chosen(there, part, value, axis)
        x = part
    return x


def _source(move: Move, local: SSAValue, size: AffineExpr, mode: str) -> SSAValue:
    """The place in x of a place counted from its first element."""
    emit = move.emit
    if mode == "reflect":
        last = move.number(size + -1)
        return emit(ms.SubOp, last, emit(ms.AbsOp, emit(ms.SubOp, last, emit(ms.AbsOp, local))))
    if mode == "wrap":
        all_, below = move.number(size), emit(ms.LessOp, local, 0)
        beyond = emit(ms.SelectOp, emit(ms.LessOp, local, all_), local, emit(ms.SubOp, local, all_))
        return emit(ms.SelectOp, below, emit(ms.AddOp, local, all_), beyond)
    return local


def _gather(move: Move) -> SSAValue | None:
    """Indices that are data count from the end of what is valid."""
    op, emit = move.op, move.emit
    axis = op.int_("axis") % len(op.shape(0))
    size = move.size(0, axis)
    if size is None or not size.used_dims() or (isinstance(op.operands[1].owner, ms.ConstantOp) and not _same(move)):
        return None
    return emit(type(op), op.operands[0], _place(move, size), axis=axis)


def _entry(move: Move) -> SSAValue | None:
    """The entry at a place that is cut to what is valid."""
    op, size = move.op, move.size(0, 0)
    if size is None or not size.used_dims():
        return None
    return _inside_valid(move.emit(type(op), op.operands[0], _place(move, size), *op.operands[2:]))


def _place(move: Move, size: AffineExpr) -> SSAValue:
    """Indices, counted from the end of what is valid where they are negative, and cut to that."""
    emit = move.emit
    index = emit.cast(move.op.operands[1], "i64")
    counted = emit(ms.SelectOp, emit(ms.LessOp, index, 0), emit(ms.AddOp, index, move.number(size)), index)
    return move.inside(counted, size)


def _inside_valid(value: SSAValue) -> SSAValue:
    assert isinstance(value.owner, Operation)
    value.owner.attributes[INSIDE] = UnitAttr()
    return value


def _same(move: Move) -> bool:
    """Whether constant indices are the same at all sizes."""

    def text(op: MsOp) -> object:
        constant = op.operands[1].owner
        return constant.value if isinstance(constant, ms.ConstantOp) else None

    return move.is_alike(text)


def _tile(move: Move) -> SSAValue | None:
    op, emit = move.op, move.emit
    shape, multiples = op.shape(0), op.ints("multiples")
    opened = [a for a, m in enumerate(multiples) if len(multiples) == len(shape) and m > 1 and not _is_fixed(move, a)]
    fits = move.is_alike(lambda o: o.ints("multiples")) and all(multiples[a] <= MOST_REPETITIONS for a in opened)
    if not opened or not fits or 0 in shape:
        return None
    x, rest = op.operands[0], [1 if a in opened else m for a, m in enumerate(multiples)]
    if any(m != 1 for m in rest):
        x = emit(ms.TileOp, x, multiples=rest)
    for axis in opened:
        size = move.size(0, axis)
        if size is None:
            return None
        places = index = move.places(size * multiples[axis])
        for k in range(1, multiples[axis]):
            start = move.number(size * k)
            index = emit(ms.SelectOp, emit(ms.LessOp, places, start), index, emit(ms.SubOp, places, start))
        x = move.gathered(x, index, axis)
    return x


def _is_fixed(move: Move, axis: int) -> bool:
    return move.is_alike(lambda o: o.shape(0)[axis])


_HANDLERS: Mapping[Any, Callable[[Move], SSAValue | None]] = {
    ms.ReverseOp: _reverse,
    ms.SliceOp: _slice,
    ms.ConcatOp: _concat,
    ms.PadOp: _pad,
    ms.TileOp: _tile,
    ms.GatherOp: _gather,
    ms.GatherElementsOp: _gather,
    ms.ExtractSliceOp: _entry,
    ms.InsertSliceOp: _entry,
}
