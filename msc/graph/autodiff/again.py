"""Blocks computed once more, where a gradient needs the values inside of a branch or of an iteration."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.reverse import CUSTOM, Reverse, activity, refusal


@dataclass(frozen=True)
class Again:
    """Copies of operations, and what they give."""

    emit: GradientEmitter
    ops: Sequence[Operation]
    results: Sequence[SSAValue]
    """What the terminator of the block gives."""

    def reverse(self, variables: Collection[SSAValue]) -> Reverse:
        """The walk back through the copies, to variables."""
        return Reverse(self.emit, activity(self.ops, variables))


def computed_again(emit: GradientEmitter, source: Block, arguments: Mapping[SSAValue, SSAValue]) -> Again:
    """A block once more, with other values for its arguments."""
    mapped = dict(arguments)
    last = source.last_op
    assert last is not None
    made: list[Operation] = []
    for op in source.ops:
        if op in CUSTOM:
            raise refusal(op, "a Cell with a bprop stands in a branch or a loop that a tensor decides on")
        if op is not last:
            copy = op.clone(mapped)
            emit.insert(copy)
            for original, copied in zip(op.walk(), copy.walk(), strict=True):
                copied.location = original.location
            made.append(copy)
    return Again(emit, made, [mapped.get(v, v) for v in last.operands])
