"""The order in which a schedule adds the terms of each float sum, which determines its rounding.

Loops over dimensions other than those of the sum, and the storage of sums between two loops, do not matter. What counts
is, for each run of a statement, the loops over its sum, the lanes of vectors along them, and the starts of partial
sums. A loop over tiles of a dimension and a loop directly inside it over their points count as one. The number of
threads does not matter: programs for any number of threads add in the order of the schedule for one thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from msc.dialects.element_types import is_float
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Block, Cut, Loop, Run, Tree

ROUNDED = ("add", "mul")
"""Combiners whose order decides how the result rounds; a maximum does not round."""


@dataclass(frozen=True)
class SumLoop:
    """A loop over a sum, in steps of `size` iterations of a dimension of its statement.

    `vector`: iterations are lanes with a sum each. `partial`: each step begins partial sums.
    """

    dim: int
    size: int
    vector: bool = False
    partial: bool = False


@dataclass(frozen=True)
class Region:
    """A part of a statement's iterations: those below a bound in a dimension, or from it on (`tail`)."""

    dim: int
    at: int
    tail: bool


Order: TypeAlias = tuple[tuple[Region, ...], tuple[SumLoop, ...]]
"""The place where a statement runs, and the loops over its sum there, outermost first."""
Orders: TypeAlias = Mapping[int, Sequence[Order]]
"""The steps of each statement that sums, for each place where it runs."""


def sum_orders(model: KernelModel, tree: Tree) -> Orders:
    """How a tree adds up each sum of floats."""
    found = dict[int, Sequence[Order]]()
    for number, statement in enumerate(model.statements):
        if statement.combine in ROUNDED and statement.reduced and is_float(model.arrays[statement.target].dtype):
            name = array_names(model)[statement.target]
            found[number] = tuple(_Walk(tree, number, statement.reduced, name).orders(tree.body, (), ()))
    return found


def roundings(model: KernelModel, tree: Tree) -> Sequence[object]:
    """How a tree adds up each sum of floats, whatever the other dimensions of its statements are.

    Equal results round alike.
    """
    found = list[object]()
    for number, orders in sum_orders(model, tree).items():
        reduced = model.statements[number].reduced
        steps = {tuple(replace(step, dim=reduced.index(step.dim)) for step in order[1]) for order in orders}
        found.append(steps if len(steps) == 1 else orders)
    return found


def partial_step(order: Order) -> SumLoop | None:
    """The step of an order that begins partial sums, if one does."""
    return next((step for step in order[1] if step.partial), None)


@dataclass(frozen=True)
class _Walk:
    """The search for the loops around a statement that reduces some dimensions into an array of a `name`."""

    tree: Tree
    number: int
    reduced: Sequence[int]
    name: str

    def orders(self, block: Block, regions: tuple[Region, ...], steps: tuple[SumLoop, ...]) -> Iterator[Order]:
        """The orders of the statement where it runs in a block; `regions` and `steps` are around that."""
        if steps and any(place.partial and place.array == self.name for place in block.places):
            steps = (*steps[:-1], replace(steps[-1], partial=True))
        for node in block.nodes:
            match node:
                case Loop():
                    yield from self.orders(node.body, regions, (*steps, *self._step(node)))
                case Cut():
                    dim = self.tree.axis(node.axis).dims.get(self.number, -1)
                    for part, tail in ((node.head, False), (node.tail, True)):
                        yield from self.orders(part, (*regions, Region(dim, node.at, tail)), steps)
                case Run():
                    if self.number in node.statements:
                        yield regions, _joined(steps)

    def _step(self, loop: Loop) -> Iterator[SumLoop]:
        dim = self.tree.axis(loop.axis).dims.get(self.number, -1)
        if dim in self.reduced:
            yield SumLoop(dim, loop.tile or 1, loop.mark == "vector")


def _joined(steps: Sequence[SumLoop]) -> tuple[SumLoop, ...]:
    """The steps without loops over tiles that do not change the order of additions."""
    found = list[SumLoop]()
    for step in reversed(steps):
        inner = found[-1] if found else None
        is_cut = inner is not None and inner.dim == step.dim and not inner.vector and step.size % inner.size == 0
        if step.partial or not is_cut:
            found.append(step)
    return tuple(reversed(found))
