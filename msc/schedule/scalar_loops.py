"""The schedules of kernels of the scalar unit, which runs plain loops: right for all kernels, and slow.

Cores share one dimension of the results, where no core needs what another one writes:

    axis i0 96: S0.0 S1.0
    axis i1 64: S0.1
    axis i1_2 64: S1.1
    for i0 tile 2 parallel
      for i0, i1
        run S0
      for i0, i1_2
        run S1
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from xdsl.ir.affine import AffineDimExpr

from msc.dialects.arrays import numpy_dtype
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.scalar import Apply, Cast, Scalar, reads
from msc.poly.schedule_tree.nodes import Axis, Block, Loop, Node, Run, Tree
from msc.poly.schedule_tree.text import to_lines
from msc.schedule.forms import Unlike
from msc.support.naming import unique
from msc.targets.davinci import DavinciTarget


@dataclass(frozen=True)
class Share:
    """`cores` run the loops; the busiest does `part` of all points. Each takes `size` of a dimension of each statement.

    `dims` are these dimensions by statement; without any, one core runs all.
    """

    cores: int
    part: float
    size: int = 1
    dims: Mapping[int, int] = field(default_factory=dict[int, int])


@dataclass(frozen=True)
class ScalarLoops:
    """A kernel as loops."""

    model: KernelModel
    target: DavinciTarget

    @cached_property
    def cycles(self) -> float:
        """The cycles of one core that runs all."""
        each = self.target.scalar.cycles_per_element
        return sum(statement_cycles(s, each) * s.points for s in self.model.statements)

    def trees(self) -> Iterator[Tree]:
        """The tree with which the kernel ends first."""
        yield _tree_of(self.model, share_of(self.model, self.cycles, self.target))

    def neighbours(self) -> Iterator[Tree]:
        """None: what the scalar unit runs is timed on no simulator."""
        return iter(())

    def reasons(self, tree: Tree) -> Sequence[str]:
        """How many cores share the loops."""
        return [f"loops on the scalar units of {self.share(tree).cores} of {self.target.cores.vector} cores"]

    def share(self, tree: Tree) -> Share:
        """The share that a tree says. Raises Unlike."""
        model, target = self.model, self.target
        found, loop = Share(1, 1.0), tree.body.nodes[0] if len(tree.body.nodes) == 1 else None
        if isinstance(loop, Loop) and loop.mark == "parallel" and loop.tile is not None:
            axis, parts = tree.axis(loop.axis), None
            for split in _splits(model):
                parts = split if _dims(model, split) == dict(axis.dims) else parts
            if parts is None:
                raise Unlike(f"cores cannot share {loop.axis}: one would need what another one writes")
            if not all(_whole_lines(model.arrays[a], d, loop.tile, target.scalar.line) for a, d in parts.items()):
                raise Unlike(f"two cores would write into one cache line of {target.scalar.line} bytes")
            cores = -(-axis.extent // loop.tile)
            if cores > target.cores.vector:
                raise Unlike(f"{cores} cores would share {loop.axis}, and there are {target.cores.vector}")
            found = Share(cores, loop.tile / axis.extent, loop.tile, axis.dims)
        meant = _tree_of(model, found, {pair: axis.name for axis in tree.axes for pair in axis.dims.items()})
        if meant.body != tree.body:
            raise Unlike("it runs each statement in loops of its own, with no place and no vector", to_lines(meant))
        return found


def _tree_of(model: KernelModel, share: Share, known: Mapping[tuple[int, int], str] | None = None) -> Tree:
    """The tree of a share, with names of dimensions that are `known`."""
    names, axes = dict(known or {}), dict[str, Axis]()
    for number, statement in enumerate(model.statements):
        for d, extent in enumerate(statement.extents):
            shared = share.dims.get(number) == d
            if extent == 1 and (number, d) not in names:
                continue
            first = next(iter(share.dims.items())) if shared else (number, d)
            name = names.get(first) or unique(statement.names[d], axes)
            names[first] = names[number, d] = name
            dims = {**axes[name].dims, number: d} if name in axes else {number: d}
            axes[name] = Axis(name, extent, dims)
    nodes = list[Node]()
    for number, statement in enumerate(model.statements):
        node: Node = Run((number,))
        for d in reversed(range(len(statement.extents))):
            node = Loop(names[number, d], Block((node,))) if statement.extents[d] > 1 else node
        nodes.append(node)
    body = Block(tuple(nodes))
    if share.dims:
        body = Block((Loop(names[next(iter(share.dims.items()))], body, share.size, "parallel"),))
    return Tree(tuple(axes.values()), body)


def statement_cycles(statement: KernelStatement, each: float) -> float:
    """Cycles of one point of a statement on the scalar unit, where `each` loads, operates and stores an element."""
    accesses = 1 + sum(1 for _ in reads(statement.body)) + int(statement.combine is not None)
    return each * max(accesses / 2, _operations(statement.body) / 2)


def _operations(body: Scalar) -> int:
    match body:
        case Apply():
            return 1 + sum(map(_operations, body.args))
        case Cast():
            return 1 + _operations(body.arg)
        case _:
            return 0


def share_of(model: KernelModel, cycles: float, target: DavinciTarget) -> Share:
    """The share with which a kernel of so many cycles ends first: each core more starts later than the one before."""
    start = target.cores.launch_us * target.clock.mhz
    found = [Share(1, 1.0)]
    for split in _splits(model):
        found += _shares(model, split, _extent(model, split), target)
    return min(found, key=lambda share: (share.part * cycles + (share.cores - 1) * start, share.cores))


def _splits(model: KernelModel) -> Iterator[dict[int, int]]:
    """The ways to share the results: for each array that is written, a dimension."""
    for array, written in enumerate(model.arrays):
        for dimension, extent in enumerate(written.shape):
            split = _split(model, array, dimension) if written.kind == "output" and extent > 1 else None
            if split is not None:
                yield split


def _dims(model: KernelModel, split: Mapping[int, int]) -> dict[int, int]:
    """The dimension of each statement that runs over what cores share."""
    indices = [statement.write.results[split[statement.target]] for statement in model.statements]
    return {number: index.position for number, index in enumerate(indices) if isinstance(index, AffineDimExpr)}


def _shares(model: KernelModel, split: dict[int, int], extent: int, target: DavinciTarget) -> list[Share]:
    most, line = target.cores.vector, target.scalar.line
    sizes = {-(-extent // cores) for cores in range(2, most + 1)}
    sizes |= {1 << k for k in range(extent.bit_length())}
    return [
        Share(-(-extent // size), size / extent, size, _dims(model, split))
        for size in sorted(sizes)
        if 2 <= -(-extent // size) <= most
        and all(_whole_lines(model.arrays[a], d, size, line) for a, d in split.items())
    ]


def _whole_lines(array: Array, dimension: int, size: int, line: int) -> bool:
    """Whether parts of `size` of a dimension begin at cache lines. Two cores never write into one line."""
    step = array.strides[dimension] * numpy_dtype(array.dtype).itemsize
    outer = prod(array.shape[:dimension])
    return size * step % line == 0 and (outer == 1 or array.shape[dimension] * step % line == 0)


def _split(model: KernelModel, array: int, dimension: int) -> dict[int, int] | None:
    """The dimension of each array that is written along which cores share, if no core needs what another writes.

    Every statement then runs over the part of one of its dimensions, and finds that dimension as the index of what it
    writes, and of what it reads that another statement writes. None where one does not.
    """
    found = {array: dimension}
    written = {statement.target for statement in model.statements}
    left = list(range(len(model.statements)))
    while left:
        ready = [k for k in left if any(a in found for a, _ in model.statements[k].accesses())]
        if not ready:
            return None
        for k in ready:
            if not _follows(model, k, found, written):
                return None
            left.remove(k)
    return found


def _follows(model: KernelModel, number: int, found: dict[int, int], written: set[int]) -> bool:
    """Whether a statement can be shared along what is found; what it adds goes into `found`."""
    statement, extent = model.statements[number], _extent(model, found)
    if any(read.indirect and read.operand in written for read in reads(statement.body)):
        return False
    accesses = [(a, index) for a, index in statement.accesses() if a in written]
    known = {index.results[found[a]] for a, index in accesses if a in found}
    if len(known) != 1 or not isinstance(shared := next(iter(known)), AffineDimExpr):
        return False
    if statement.extents[shared.position] != extent:
        return False
    for a, index in accesses:
        places = [d for d, expr in enumerate(index.results) if expr == shared]
        if a not in found and places and model.arrays[a].shape[places[0]] == extent:
            found[a] = places[0]
    return all(a in found and index.results[found[a]] == shared for a, index in accesses)


def _extent(model: KernelModel, found: dict[int, int]) -> int:
    array, dimension = next(iter(found.items()))
    return model.arrays[array].shape[dimension]
