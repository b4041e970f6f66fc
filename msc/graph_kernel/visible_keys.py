"""Which blocks of keys a block of queries sees: those that a computed mask hides whole are not computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from msc.dialects.ms.arithmetic import AddOp, SubOp
from msc.dialects.ms.elementwise import SelectOp
from msc.graph_kernel.attention import Attention
from msc.graph_kernel.attention_operands import Part
from msc.graph_kernel.value_intervals import NEVER, UNKNOWN, Box, Interval, ValueIntervals, applied, operand_box


@dataclass(frozen=True)
class BlockBound:
    """For block r of `rows` blocks of queries: the smaller of `(r * factor + offset) floordiv divisor` and `most`."""

    factor: int
    offset: int
    divisor: int
    most: int
    rows: int

    def at(self, row: int) -> int:
        """The bound of a block of queries."""
        return min((row * self.factor + self.offset) // self.divisor, self.most)

    def emit(self, ops: list[Operation], row: SSAValue | None) -> SSAValue:
        """The bound as an index; without a number there is one block of queries."""

        def add(op: Operation) -> SSAValue:
            ops.append(op)
            return op.results[0]

        def constant(value: int) -> SSAValue:
            return add(arith.ConstantOp.from_int_and_width(value, IndexType()))

        if row is None or not self.factor:
            return constant(self.at(0))
        value = row if self.factor == 1 else add(arith.MuliOp(row, constant(self.factor)))
        value = add(arith.AddiOp(value, constant(self.offset))) if self.offset else value
        value = add(arith.FloorDivSIOp(value, constant(self.divisor))) if self.divisor > 1 else value
        if (self.factor * (self.rows - 1) + self.offset) // self.divisor <= self.most:
            return value
        return add(arith.MinSIOp(value, constant(self.most)))


@dataclass(frozen=True)
class VisibleKeys:
    """What a block of queries sees: blocks of keys before `plain` as `unmasked` says, those from there to `end` masked.

    `unmasked` is the attention without the operations that have no effect there.
    """

    unmasked: Attention
    plain: BlockBound
    end: BlockBound


def visible_keys(found: Attention, intervals: ValueIntervals, rows: Part, keys: Part) -> VisibleKeys:
    """What blocks see, as far as the operations between the products tell."""
    blocks = _Blocks(found, intervals, rows, keys)
    nothing = BlockBound(0, 0, 1, 0, rows.count)
    neutral = blocks.neutral(rows.count - 1, 0, 1)
    ends = [_first(keys.count, lambda k, r=r: blocks.hidden(r, k)) for r in range(rows.count)]
    end = _fitted(ends, rows, keys) or BlockBound(0, max(ends), 1, keys.count, rows.count)
    if not neutral:
        return VisibleKeys(found, nothing, end)
    masked = [_first(keys.count, lambda k, r=r: not neutral <= blocks.neutral(r, 0, k + 1)) for r in range(rows.count)]
    fitted = _fitted([min(plain, end.at(r)) for r, plain in enumerate(masked)], rows, keys)
    left = tuple(op for op in found.before if op not in neutral)
    return VisibleKeys(replace(found, before=left), fitted or nothing, end)


def _first(count: int, holds: Callable[[int], bool]) -> int:
    """The first number of which something holds that holds of all later ones too; `count` if there is none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _fitted(values: Sequence[int], rows: Part, keys: Part) -> BlockBound | None:
    """A bound with these values."""
    first, rise = values[0], (values[1] - values[0] if len(values) > 1 else 0)
    steps = ((rows.size, first * keys.size + k, keys.size) for k in range(keys.size))
    bounds = (BlockBound(*shape, keys.count, rows.count) for shape in ((0, first, 1), (rise, first, 1), *steps))
    return next((b for b in bounds if [b.at(r) for r in range(rows.count)] == list(values)), None)


@dataclass(frozen=True)
class _Blocks:
    """Boxes of scores, in numbers of blocks."""

    found: Attention
    intervals: ValueIntervals
    rows: Part
    keys: Part

    def _box(self, row: int, first: int, end: int) -> Box:
        top, left = self.rows.start + row * self.rows.size, self.keys.start
        columns = (left + first * self.keys.size, left + end * self.keys.size - 1)
        return (*((0, n - 1) for n in self.found.shape[:-2]), (top, top + self.rows.size - 1), columns)

    def _others(self, op: Operation, inside: set[SSAValue], box: Box, score: Interval) -> list[Interval]:
        return [score if v in inside else self.intervals.of(v, operand_box(v, box)) for v in op.operands]

    @property
    def _inside(self) -> set[SSAValue]:
        return {op.results[0] for op in (self.found.scores, *self.found.before)}

    def hidden(self, row: int, first: int) -> bool:
        """Whether a block of queries sees no key from a block of keys on."""
        box, score, inside = self._box(row, first, self.keys.count), UNKNOWN, self._inside
        for op in self.found.before:
            score = applied(op, self._others(op, inside, box, score), box)
        return score == NEVER

    def neutral(self, row: int, first: int, end: int) -> frozenset[Operation]:
        """The operations that change no score of a block of queries and some blocks of keys."""
        box, inside = self._box(row, first, end), self._inside
        given = {op: self._others(op, inside, box, UNKNOWN) for op in self.found.before}
        return frozenset(op for op in self.found.before if _is_neutral(op, given[op], inside))


def _is_neutral(op: Operation, given: Sequence[Interval], inside: set[SSAValue]) -> bool:
    spine = next(i for i, v in enumerate(op.operands) if v in inside)
    match op:
        case AddOp():
            return given[1 - spine] == (0, 0)
        case SubOp():
            return spine == 0 and given[1] == (0, 0)
        case SelectOp():
            return given[0] == ((1, 1) if spine == 1 else (0, 0)) and spine > 0
        case _:
            return False
