"""Blocks computed once more, where a gradient needs the values inside of a branch or of an iteration."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.reverse import CUSTOM, CustomGradient, Reverse, activity, refusal


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
    ops = [op for op in source.ops if op is not last]
    for op in ops:
        custom = CUSTOM.get(op)
        if custom is not None and not custom.through_emitter:
            raise refusal(op, "a Cell with a bprop stands in a branch or a loop that a tensor decides on")
    made = copied(ops, mapped, emit.insert)
    return Again(emit, made, [mapped.get(v, v) for v in last.operands])


def copied(
    ops: Sequence[Operation], mapped: dict[SSAValue, SSAValue], insert: Callable[[Operation], object]
) -> list[Operation]:
    """Copies of operations that read `mapped` values, with their locations and the gradients that others write.

    `mapped` then also says what stands for the results.
    """
    made: list[Operation] = []
    standing: dict[Operation, Operation] = {}
    for op in ops:
        copy = op.clone(mapped)
        insert(copy)
        for original, new in zip(op.walk(), copy.walk(), strict=True):
            new.location = original.location
            standing[original] = new
        made.append(copy)
    for original, new in standing.items():
        custom = CUSTOM.get(original)
        if custom is not None and custom.last in standing:
            CUSTOM[new] = _copied_custom(custom, mapped, standing[custom.last])
    return made


def _copied_custom(custom: CustomGradient, mapped: Mapping[SSAValue, SSAValue], last: Operation) -> CustomGradient:
    def write(reverse: Reverse, standing: Mapping[SSAValue, SSAValue]) -> None:
        custom.write(reverse, {**standing, **{v: standing.get(w, w) for v, w in mapped.items()}})

    return CustomGradient([mapped.get(v, v) for v in custom.inputs], last, write, custom.through_emitter)
