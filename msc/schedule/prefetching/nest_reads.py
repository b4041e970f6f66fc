"""The reads of the statements in a schedule's loops, for the modules that prefetch them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from xdsl.ir.affine import AffineConstantExpr

from msc.dialects.element_types import BYTES
from msc.poly.affine import linear_form
from msc.poly.buffers import compose, iterations
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.nest import Body, ForLoop, Instance, Nest, nests_at_all_blocks, walk
from msc.poly.scalar import reads
from msc.poly.schedule_tree.nodes import Block, Loop, Prefetch, Tree, all_blocks
from msc.poly.schedule_tree.nodes import loops as loops_of
from msc.poly.schedule_tree.prefetches import whole_in_memory
from msc.poly.storage import Around, outermost
from msc.targets.machine import Machine

TILE = ("unroll", "vector")
"""The kinds of the loops of a register tile."""


@dataclass(frozen=True)
class NestLoop:
    """A loop of the nest with its variable, its iterations and the block of the tree that is its body."""

    loop: ForLoop
    depth: int
    iterations: range
    block: int

    @property
    def trips(self) -> int:
        return len(self.iterations)

    @property
    def is_plain(self) -> bool:
        """Whether it runs over a known number of iterations one after the other, from 0 on."""
        ends = isinstance(self.loop.lower, AffineConstantExpr) and isinstance(self.loop.upper, AffineConstantExpr)
        return self.loop.kind == "sequential" and ends and self.iterations.start == 0

    @property
    def is_tile(self) -> bool:
        return self.loop.kind in TILE


@dataclass(frozen=True)
class NestRead:
    """A read below loops: `moves` are elements between what two iterations of a loop read, by the loop's variable."""

    array: int
    loops: tuple[NestLoop, ...]
    moves: Mapping[int, int]
    size: int

    def distance(self, step: NestLoop) -> int:
        return self.moves.get(step.depth, 0)

    @property
    def tile(self) -> tuple[NestLoop, ...]:
        """The unrolled and vector loops right around it."""
        first = next((k for k, step in enumerate(reversed(self.loops)) if not step.is_tile), len(self.loops))
        return self.loops[len(self.loops) - first :]

    @property
    def outer(self) -> tuple[NestLoop, ...]:
        return self.loops[: len(self.loops) - len(self.tile)]

    @property
    def lanes(self) -> int:
        """How many elements a row of vectors reads; 1 for an element."""
        last = self.loops[-1] if self.loops else None
        return last.trips if last is not None and last.loop.kind == "vector" and self.distance(last) else 1

    @property
    def elements(self) -> int:
        """What an iteration of the loop around the tile reads."""
        return prod(step.trips for step in self.tile if self.distance(step))


@dataclass(frozen=True)
class ReadsOfNest:
    """The loops of a tree with places, and their reads."""

    model: KernelModel
    tree: Tree
    machine: Machine

    @cached_property
    def nests(self) -> tuple[Nest, ...]:
        return nests_at_all_blocks(self.model, self.tree)

    @cached_property
    def around(self) -> Around:
        """What all loops are inside of."""
        return outermost(self.model, self.tree)

    def reads(self, nests: Sequence[Nest], around: Around, steps: tuple[NestLoop, ...] = ()) -> Iterator[NestRead]:
        """The reads in nests, below some loops, at indices that are linear."""
        for nest in nests:
            match nest:
                case Body():
                    yield from self.reads(nest.inside, around, steps)
                case ForLoop():
                    yield from self.reads(nest.body, around.inside(nest), (*steps, step_of(nest, around)))
                case Instance():
                    yield from self._of_instance(nest, around, steps)

    def _of_instance(self, instance: Instance, around: Around, steps: tuple[NestLoop, ...]) -> Iterator[NestRead]:
        for read in reads(self.model.statements[instance.statement].body):
            array, moves = self.model.arrays[read.operand], dict[int, int]()
            index = [linear_form(e, around.ranges) for e in compose(read.index, instance.index)]
            for axis, form in enumerate(index):
                for depth, factor in form.coefficients.items() if form is not None else ():
                    moves[depth] = moves.get(depth, 0) + factor * prod(array.shape[axis + 1 :])
            if None not in index and not read.indirect:
                yield NestRead(read.operand, steps, moves, BYTES[array.dtype])

    def written(self, nests: Sequence[Nest]) -> set[int]:
        """The arrays that nests write."""
        return {self.model.statements[n.statement].target for n in walk(nests) if isinstance(n, Instance)}

    def request(self, read: NestRead, block: int, later: int) -> Prefetch:
        """The request of what a loop, of which a block is the body, reads some iterations later."""
        loop = self.loops[block]
        return Prefetch(self._names[read.array], later * (loop.tile or 1), loop.axis)

    def is_large(self, read: NestRead) -> bool:
        """Whether L2 does not hold an array, which lies in memory whole."""
        large = prod(self.model.arrays[read.array].shape) * read.size > self.machine.l2
        return large and self._names[read.array] in self._whole

    def outlives(self, read: NestRead, block: int) -> bool:
        """Whether an array lies in memory for longer than for one run of a block."""
        name = self._names[read.array]
        inside = any(place.array == name for each in all_blocks(self.blocks[block]) for place in each.places)
        return not inside and name not in self._in_registers

    @cached_property
    def loops(self) -> dict[int, Loop]:
        """The loops of the tree by the numbers of their bodies."""
        numbers = {id(block): k for k, block in enumerate(self.blocks)}
        return {numbers[id(loop.body)]: loop for loop in loops_of(self.tree)}

    @cached_property
    def blocks(self) -> list[Block]:
        return list(all_blocks(self.tree.body))

    @cached_property
    def _names(self) -> Sequence[str]:
        return array_names(self.model)

    @cached_property
    def _whole(self) -> Collection[str]:
        return whole_in_memory(self.model, self.tree)

    @cached_property
    def _in_registers(self) -> Collection[str]:
        return {place.array for block in self.blocks for place in block.places if place.scope == "register"}


def step_of(loop: ForLoop, around: Around) -> NestLoop:
    """A loop of a nest, and what it runs over."""
    (body,) = loop.body
    assert isinstance(body, Body)
    return NestLoop(loop, around.depth, iterations(loop, around.ranges), body.block)
