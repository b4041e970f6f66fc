"""Loop heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import VectorType

from msc.codegen.c.affine import INDEX, IndexExpression
from msc.codegen.c.prelude import Prelude
from msc.codegen.c.types import INDEX_TYPE
from msc.codegen.c.values import CExpression, Precedence, call
from msc.dialects.loop import ApplyOp, ForOp, LoadOp, PrefetchOp, StoreOp

UNROLLED = 16
"""Iterations up to which GCC writes a loop out, asked or not (its default of max-completely-peel-times): a figure of
that compiler, not of a machine. Loops that only move data, which that gains nothing, are told to stay the loops of the
schedule."""


def fits(end: int | None, step: int | None) -> bool:
    """Whether a variable below `end` plus `step` is known to be an int64."""
    return step == 1 or (end is not None and step is not None and end - 1 + step < 1 << 63)


def head_text(name: str, start: str, end: str, step: str, *, fits: bool) -> str:
    """`for (int64_t name = start; name < end; name += step)`; `end` is evaluated each time.

    Where the sum may not fit, which C does not define, the last step goes to `end` itself.
    """
    after = f"++{name}" if step == "1" else f"{name} += {step}"
    if not fits:
        after = f"{name} = (uint64_t)({end}) - (uint64_t){name} > (uint64_t)({step}) ? {name} + {step} : {end}"
    return f"for ({INDEX_TYPE} {name} = {start}; {name} < {end}; {after})"


_MOVES = (ForOp, LoadOp, StoreOp, PrefetchOp, ApplyOp, arith.ConstantOp, vector.BroadcastOp)


def only_moves(loop: ForOp) -> bool:
    """Whether a loop only fills or copies whole vectors: nothing in it gets simpler where the iteration is known."""
    inside = list(loop.body.walk())
    stored = [op.value for op in inside if isinstance(op, StoreOp)]
    return all(isinstance(op, _MOVES) for op in inside) and all(isinstance(v.type, VectorType) for v in stored)


@dataclass(frozen=True)
class LoopHead:
    """`for (int64_t name = lower; name < upper; name += step)`; several bounds mean their maximum and minimum."""

    name: str
    lower: Sequence[IndexExpression]
    upper: Sequence[IndexExpression]
    step: int

    @property
    def variable(self) -> IndexExpression:
        """The loop variable with what its bounds say of its range."""
        lows = [bound.low for bound in self.lower if bound.low is not None]
        highs = [bound.high - 1 for bound in self.upper if bound.high is not None]
        return IndexExpression(CExpression(self.name, INDEX), max(lows, default=None), min(highs, default=None))

    def text(self, prelude: Prelude) -> str:
        """Over all iterations."""
        return self._over(self._start(prelude).text, self._end(prelude).text)

    def part(self, first: str, last: str, prelude: Prelude) -> str:
        """Over iterations `first` to below `last`, counted from 0."""
        return self._over(self._place(first, prelude), self._place(last, prelude))

    def trips(self, prelude: Prelude) -> str:
        """How many iterations there are; not above 0 if there are none."""
        start, end = self._start(prelude), self._end(prelude)
        if start.text.isdecimal() and end.text.isdecimal():
            return str(len(range(int(start.text), int(end.text), self.step)))
        span = end.text if start.text == "0" else f"{end.at(Precedence.SUM)} - {start.at(Precedence.PRODUCT)}"
        return span if self.step == 1 else f"({span} + {self.step - 1}) / {self.step}"

    def _over(self, start: str, end: str) -> str:
        highest = min((bound.high for bound in self.upper if bound.high is not None), default=None)
        return head_text(self.name, start, end, str(self.step), fits=fits(highest, self.step))

    def _place(self, iteration: str, prelude: Prelude) -> str:
        start, steps = self._start(prelude), iteration if self.step == 1 else f"{iteration} * {self.step}"
        return steps if start.text == "0" else f"{start.at(Precedence.SUM)} + {steps}"

    def _start(self, prelude: Prelude) -> CExpression:
        return _bound(self.lower, "msc_max", prelude)

    def _end(self, prelude: Prelude) -> CExpression:
        return _bound(self.upper, "msc_min", prelude)


def _bound(bounds: Sequence[IndexExpression], function: str, prelude: Prelude) -> CExpression:
    value = bounds[0].value
    for bound in bounds[1:]:
        prelude.plain.add("bounds")
        value = call(function, INDEX, value, bound.value)
    return value
