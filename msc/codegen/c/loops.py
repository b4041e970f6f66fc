"""Loop heads, and which parallel loops are worth threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation

from msc.codegen.c.affine import INDEX, Index
from msc.codegen.c.prelude import Prelude
from msc.codegen.c.values import Value
from msc.dialects.loop import ForOp, LoopKind

PARALLEL_WORK = 100_000
"""Scalar operations below which a parallel loop runs on one thread: waking a team costs about as much."""


@dataclass(frozen=True)
class LoopHead:
    """`for (int64_t name = lower; name < upper; name += step)`; several bounds mean their maximum and minimum."""

    name: str
    lower: Sequence[Index]
    upper: Sequence[Index]
    step: int

    @property
    def variable(self) -> Index:
        """The loop variable with what its bounds say of its range."""
        lows = [bound.low for bound in self.lower if bound.low is not None]
        highs = [bound.high - 1 for bound in self.upper if bound.high is not None]
        return Index(Value(self.name, INDEX), max(lows, default=None), min(highs, default=None))

    def text(self, prelude: Prelude) -> str:
        lower, upper = _bound(self.lower, "msc_max", prelude), _bound(self.upper, "msc_min", prelude)
        step = f"++{self.name}" if self.step == 1 else f"{self.name} += {self.step}"
        return f"for (int64_t {self.name} = {lower}; {self.name} < {upper}; {step})"


def _bound(bounds: Sequence[Index], function: str, prelude: Prelude) -> str:
    text = bounds[0].value.text
    for bound in bounds[1:]:
        prelude.plain.add("bounds")
        text = f"{function}({text}, {bound.value.text})"
    return text


def parallel_nest(op: ForOp, threads: int) -> str | None:
    """The clauses of `omp parallel for`, or None when the loop has too little work or lies in another parallel loop."""
    if _inside_parallel(op) or work(op) < PARALLEL_WORK:
        return None
    depth = _perfect_depth(op)
    collapse = f" collapse({depth})" if depth > 1 else ""
    return f"num_threads({threads}) schedule(static){collapse}" if threads else f"schedule(static){collapse}"


def _inside_parallel(op: ForOp) -> bool:
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, ForOp) and parent.kind.data is LoopKind.PARALLEL and _trips(parent) > 1:
            return True
        parent = parent.parent_op()
    return False


def _perfect_depth(op: ForOp) -> int:
    """How many parallel loops nest directly; a loop of one iteration has no text and ends the nest."""
    ops = list(op.body.block.ops)
    if len(ops) == 1 and isinstance(ops[0], ForOp):
        inner = ops[0]
        if inner.kind.data is LoopKind.PARALLEL and not inner.values and _trips(inner) > 1:
            return 1 + _perfect_depth(inner)
    return 1


def _trips(op: ForOp) -> int:
    """Iterations; a loop whose bounds vary counts as two."""
    trips = op.constant_range
    return 2 if trips is None else len(trips)


def work(op: Operation) -> int:
    """Scalar operations that a loop executes, roughly: an operation on a vector counts once a lane."""
    if not isinstance(op, ForOp):
        return max((_lanes(result) for result in op.results), default=0)
    return _trips(op) * sum(work(inner) for inner in op.body.block.ops)


def _lanes(result: object) -> int:
    type_ = getattr(result, "type", None)
    return prod(type_.get_shape()) if isinstance(type_, VectorType) else 1
