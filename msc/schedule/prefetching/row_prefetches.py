"""Rows that several loops read, one after the other: the last loop prefetches the next row.

The first loop over a row waits for memory; the later ones find the row in L1 and leave memory idle. A softmax
is such a kernel: the maximum, then the sum of the exponentials. A loop that reduces a row and a loop that stores one do
not count together: stores use the memory bandwidth themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from msc.dialects.element_types import BYTES
from msc.poly.affine import linear_form, simplified
from msc.poly.buffers import compose
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.nest import Body, ForLoop, Instance, Nest, nests_at_all_blocks
from msc.poly.scalar import reads
from msc.poly.schedule_tree.moves import prefetch
from msc.poly.schedule_tree.nodes import Prefetch, Run, Tree, all_blocks
from msc.poly.schedule_tree.prefetches import whole_in_memory
from msc.poly.storage import Around, outermost, within
from msc.schedule.prefetching.prefetch_gain import PrefetchGain
from msc.targets.machine import Machine


def with_row_prefetches(model: KernelModel, tree: Tree, machine: Machine) -> Tree:
    """The tree with prefetches of the next rows of what L2 does not hold, where that saves time.

    Takes a tree with places.
    """
    arrays = dict(zip(array_names(model), model.arrays, strict=True))
    large = {
        name: memory
        for name, memory in whole_in_memory(model, tree).items()
        if prod(arrays[memory].shape) * BYTES[arrays[memory].dtype] > machine.l2
    }
    if not large:
        return tree
    around = outermost(model, tree)
    search, gain = _Search(model, tree, machine, large), PrefetchGain.of(model, machine)
    for block, new in dict.fromkeys(search.prefetches(nests_at_all_blocks(model, tree), around)):
        target = list(all_blocks(tree.body))[block]
        if all(isinstance(node, Run) for node in target.nodes):
            asked = prefetch(tree, target, new)
            tree = asked if gain.pays(tree, asked, (large[new.array],)) else tree
    return tree


@dataclass(frozen=True)
class _At:
    """A statement in a loop over rows: the loops from that one on, its block, and its vector loop."""

    around: Around
    depths: tuple[int, ...] = ()
    block: int = 0
    vector: ForLoop | None = None

    def inside(self, loop: ForLoop) -> _At:
        vector = loop if loop.kind == "vector" else None
        return replace(self, around=self.around.inside(loop), depths=(*self.depths, self.around.depth), vector=vector)


@dataclass(frozen=True)
class _Search:
    model: KernelModel
    tree: Tree
    machine: Machine
    large: Mapping[str, str]

    def prefetches(self, nests: Sequence[Nest], around: Around) -> Iterator[tuple[int, Prefetch]]:
        """The number of a block and what it prefetches, for each loop over rows that are read again."""
        for nest, place in within(nests, around):
            if isinstance(nest, ForLoop):
                yield from self._of_rows(nest, _At(place).inside(nest))

    def _of_rows(self, rows: ForLoop, at: _At) -> Iterator[tuple[int, Prefetch]]:
        """What the last loop over each part of a row prefetches, if one before it reads the part as well."""
        seen, last = set[object](), dict[object, tuple[int, Prefetch]]()
        for inner in _loops(rows.body):
            found = dict(self._readings(inner, rows, at))
            last |= {key: each for key, each in found.items() if key in seen}
            seen |= found.keys()
        yield from last.values()

    def _readings(self, inner: ForLoop, rows: ForLoop, at: _At) -> Iterator[tuple[object, tuple[int, Prefetch]]]:
        """The parts of a row that a loop reads as vectors, with the prefetch of the same part of the next row."""
        names = array_names(self.model)
        for instance, place in _instances((inner,), at):
            for read in reads(self.model.statements[instance.statement].body):
                name = names[read.operand]
                index = [simplified(e, place.around.ranges) for e in compose(read.index, instance.index)]
                new = self._next_row(name, instance, rows, at.depths[0])
                whole = not read.indirect and self._is_vector(read.operand, place) and _moves_with(index, place.depths)
                if name in self.large and whole and new is not None:
                    key = self.large[name], *index, inner.lower, inner.upper, self._sums(place)
                    yield key, (place.block, new)

    def _is_vector(self, array: int, at: _At) -> bool:
        """Whether a statement runs as several vectors, one after the other."""
        length = 0 if at.vector is None else _length(at.vector)
        return length >= 2 * self.machine.lanes(BYTES[self.model.arrays[array].dtype])

    def _sums(self, at: _At) -> bool:
        """Whether lanes of the vector loop are summed."""
        return at.vector is not None and any(
            statement.combine is not None
            and not any(at.depths[-1] in e.used_dims() for e in compose(statement.write, each.index))
            for each, _ in _instances(at.vector.body, at)
            for statement in (self.model.statements[each.statement],)
        )

    def _next_row(self, array: str, instance: Instance, rows: ForLoop, depth: int) -> Prefetch | None:
        """The prefetch of what a statement reads an iteration of the rows later; None where several axes move."""
        moved = [d for d, expr in enumerate(instance.index) if depth in expr.used_dims()]
        form = linear_form(instance.index[moved[0]]) if len(moved) == 1 else None
        ahead = form.coefficients.get(depth, 0) if form is not None else 0
        axes = [axis.name for axis in self.tree.axes if axis.dims.get(instance.statement) in moved]
        return Prefetch(array, ahead, axes[0]) if ahead > 0 else None


def _loops(nests: Sequence[Nest]) -> Iterator[ForLoop]:
    """The loops right inside, of a number of iterations that is known."""
    for nest in nests:
        if isinstance(nest, Body):
            yield from _loops(nest.inside)
        elif isinstance(nest, ForLoop) and _length(nest):
            yield nest


def _length(loop: ForLoop) -> int:
    """The iterations of a loop; 0 where they are not known."""
    extent = simplified(loop.upper + loop.lower * -1)
    return extent.value if isinstance(extent, AffineConstantExpr) else 0


def _instances(nests: Sequence[Nest], at: _At) -> Iterator[tuple[Instance, _At]]:
    """The statements of a nest, those in loops of a vector loop left out."""
    for nest in nests:
        match nest:
            case Body():
                yield from _instances(nest.inside, replace(at, block=nest.block))
            case ForLoop():
                yield from _instances(nest.body, at.inside(nest)) if at.vector is None else ()
            case Instance():
                yield nest, at


def _moves_with(index: Sequence[AffineExpr], depths: Sequence[int]) -> bool:
    """Whether an index is linear, and another one in each iteration of all these loops."""
    forms = [linear_form(e) for e in index]
    moved = {d for form in forms if form is not None for d in form.coefficients}
    return None not in forms and moved.issuperset(depths)
