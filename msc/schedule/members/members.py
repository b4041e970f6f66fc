"""The members of a kernel with a compute_at producer, each as a kernel of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from msc.poly.alignment import aligned, is_along
from msc.poly.model import ArrayKind, KernelModel, KernelStatement, renumber
from msc.poly.scalar import reads
from msc.poly.schedule_tree.nodes import Axis
from msc.schedule.tiles.packing import packing_copies

_KINDS: tuple[ArrayKind, ...] = ("input", "output", "internal")
"""In the order in which a kernel has them."""


@dataclass(frozen=True)
class Member:
    """`statements` of a kernel, of which the last one reads or the first one writes what is materialized."""

    kernel: KernelModel
    statements: Sequence[int]

    @cached_property
    def arrays(self) -> list[int]:
        """The arrays of the kernel that the member touches, in its own order."""
        own = [self.kernel.statements[s] for s in self.statements]
        touched = {s.target for s in own} | {r.operand for s in own for r in reads(s.body)}
        return sorted(touched, key=lambda array: (_KINDS.index(self._kind(array)), array))

    @cached_property
    def model(self) -> KernelModel:
        """The member alone: what the one before it computes is an input, what the next one reads an output."""
        arrays = tuple(replace(self.kernel.arrays[k], kind=self._kind(k)) for k in self.arrays)
        numbers = {array: k for k, array in enumerate(self.arrays)}
        positions = [numbers.get(k, 0) for k in range(len(self.kernel.arrays))]
        statements = tuple(self._statement(self.kernel.statements[s], positions) for s in self.statements)
        return replace(self.kernel, arrays=arrays, statements=statements, materialized=())

    def _kind(self, array: int) -> ArrayKind:
        if all(array != each.array for each in self.kernel.materialized):
            return self.kernel.arrays[array].kind
        return "output" if any(self.kernel.statements[s].target == array for s in self.statements) else "input"

    def _statement(self, statement: KernelStatement, positions: Sequence[int]) -> KernelStatement:
        body = renumber(statement.body, positions)
        return replace(statement, target=positions[statement.target], body=body)

    def numbered(self, axis: Axis) -> Axis:
        """An axis of the member alone, by the numbers of its statements in the kernel."""
        return replace(axis, dims={self.statements[s]: d for s, d in axis.dims.items()})

    @cached_property
    def first(self) -> list[int]:
        """Statements that fill a part of an output with a constant, beside others that compute: they run first, alone.

        Where a block of the output is all that exists, they run for each.
        """
        model = self.model
        between = {self.arrays.index(m.array) for m in self.kernel.materialized if m.array in self.arrays}
        updated = {s.target for s in model.statements if s.combine} | between
        fills = [
            k
            for k, s in enumerate(model.statements)
            if model.arrays[s.target].kind == "output" and s.target not in updated and not any(reads(s.body))
        ]
        return fills if len(fills) < len(model.statements) else []

    @cached_property
    def copies(self) -> list[int]:
        """Statements that pack operands of reductions."""
        return packing_copies(self.model)

    @cached_property
    def others(self) -> list[int]:
        """The statements that share loops."""
        return [k for k in range(len(self.statements)) if k not in self.first and k not in self.copies]


@dataclass(frozen=True)
class BlockLoop:
    """A loop over blocks: the dimension of each statement of the kernel that has one.

    `is_numbered`: each iteration is a block; else several neighbours are.
    """

    dims: Mapping[int, int]
    is_numbered: bool

    def of(self, member: Member) -> Mapping[int, int]:
        """The dimensions of a member's own statements, by their numbers in it."""
        return {k: self.dims[s] for k, s in enumerate(member.statements) if s in self.dims}


def members_of(model: KernelModel) -> list[Member]:
    """The members of a kernel; it is the only one where nothing is materialized."""
    return [Member(model, statements) for statements in model.members]


def block_loops(model: KernelModel, members: Sequence[Member]) -> list[BlockLoop]:
    """The loops over blocks, outermost first; none where not all members share them."""
    sharing = [member.statements[k] for member in members for k in member.others]
    alignment, found = aligned(model, sharing), list[BlockLoop]()
    for depth in range(max((len(each.axes) for each in model.materialized), default=0)):
        places = [(each.array, each.axes[depth]) for each in model.materialized if depth < len(each.axes)]
        fits = (loop for loop in (*alignment.loops, *alignment.by_digits) if _is_along_all(model, loop, places))
        loop = next(fits, None)
        if loop is None:
            return []
        found.append(BlockLoop(loop, _is_numbered(model)))
    return found


def _is_along_all(model: KernelModel, loop: Mapping[int, int], places: Sequence[tuple[int, int]]) -> bool:
    return all(is_along(model, loop, array, axis) for array, axis in places)


def _is_numbered(model: KernelModel) -> bool:
    """Whether an iteration is all of a contiguous part of what is materialized first: its axes are in front."""
    first = model.materialized[0]
    return first.axes == tuple(range(len(first.axes))) and len(first.axes) < len(model.arrays[first.array].shape)
