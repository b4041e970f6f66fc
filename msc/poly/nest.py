"""The loop nest of a schedule tree, as plain data: it runs the instances in the order of isl's schedule (`to_isl`).

Index expressions are affine over the sizes of the call, counts of tiles and the enclosing loops' variables: dimensions
in this order; loops of more than one iteration count, from outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from msc.poly.affine import simplified
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Block, Cut, Loop, Mark, Node, Run, Tree, all_blocks, with_clauses
from msc.poly.schedule_tree.parts import Part, Parts, label, tile_counts
from msc.poly.schedule_tree.ranges import ZERO, Range
from msc.poly.schedule_tree.same_loops import of_loops

_KINDS: Mapping[Mark, str] = {"": "sequential", "pipeline": "sequential", "intrinsic": "sequential"}
"""How loops run of which the mark says something else."""


@dataclass(frozen=True)
class ForLoop:
    """`for (x = lower; x < upper; x += step)`; `kind` is sequential, parallel, vector or unroll.

    A parallel loop is shared where it has `least` iterations or more. A `unit` performs a loop and all below it, if it
    has as many points as the unit takes.
    """

    name: str
    kind: str
    lower: AffineExpr
    upper: AffineExpr
    body: tuple[Nest, ...]
    least: int = 0
    unit: str = ""


@dataclass(frozen=True)
class Body:
    """What runs in block `block` of the tree (`all_blocks`), which says where arrays live or what is prefetched."""

    block: int
    inside: tuple[Nest, ...]


@dataclass(frozen=True)
class Instance:
    """A statement, executed at the point that `index` gives."""

    statement: int
    index: tuple[AffineExpr, ...]


Nest: TypeAlias = ForLoop | Body | Instance


def walk(nests: Sequence[Nest]) -> Iterator[Nest]:
    """All of nests, an outer one before those inside."""
    for nest in nests:
        yield nest
        yield from walk(right_inside(nest))


def right_inside(nest: Nest) -> tuple[Nest, ...]:
    """What a loop or a Body runs."""
    match nest:
        case ForLoop():
            return nest.body
        case Body():
            return nest.inside
        case Instance():
            return ()


def generate(model: KernelModel, tree: Tree) -> tuple[Nest, ...]:
    """The nest of a tree that fits its kernel (`verify`), with a Body for every block that clauses are about."""
    return _with_bodies(nests_at_all_blocks(model, tree), with_clauses(tree))


@of_loops
def nests_at_all_blocks(model: KernelModel, tree: Tree) -> tuple[Nest, ...]:
    """The nest of a tree with a Body for every block: the same whatever clauses the tree has."""
    return _Builder(model, tree).block(tree.body, _At(len(model.sizes) + len(tile_counts(model, tree))))


@dataclass(frozen=True)
class _At:
    """Below some loops: how many dimensions there are, and of axes what is left, and the iteration that it follows."""

    depth: int
    left: Mapping[str, Range] = field(default_factory=dict[str, Range])
    base: Mapping[str, AffineExpr] = field(default_factory=dict[str, AffineExpr])

    def inside(self, axis: str, part: Part, counter: AffineExpr | None = None) -> _At:
        """In a part of an axis, and in the iteration of its loop that `counter` counts."""
        left, base, depth = {**self.left, axis: part.left}, self.base, self.depth
        if part.steps is not None and counter is not None:
            steps = part.steps
            base = {**base, axis: base.get(axis, ZERO) + steps.first + counter * steps.size}
            depth += not isinstance(counter, AffineConstantExpr)
        return _At(depth, left, base)

    def iteration(self, axis: str) -> AffineExpr:
        """The one iteration that is left of an axis."""
        left = self.left.get(axis)
        return self.base.get(axis, ZERO) + (ZERO if left is None else left.low)


class _Builder:
    def __init__(self, model: KernelModel, tree: Tree) -> None:
        self._parts = Parts(model, tree)
        self._numbers = {id(block): k for k, block in enumerate(all_blocks(tree.body))}
        names = {(s, d): axis.name for axis in tree.axes for s, d in axis.dims.items()}
        self._axes = {
            s: [names.get((s, d), "") for d in range(len(each.extents))] for s, each in enumerate(model.statements)
        }

    def block(self, block: Block, at: _At) -> tuple[Nest, ...]:
        return (Body(self._numbers[id(block)], tuple(nest for node in block.nodes for nest in self._node(node, at))),)

    def _node(self, node: Node, at: _At) -> tuple[Nest, ...]:
        if isinstance(node, Run):
            return tuple(self._instance(s, at) for s in node.statements)
        return tuple(nest for part in self._parts.of(node, at.left) for nest in self._part(node, part, at))

    def _part(self, node: Loop | Cut, part: Part, at: _At) -> tuple[Nest, ...]:
        if part.steps is None or isinstance(node, Cut):
            return self.block(part.body, at.inside(node.axis, part))
        lower, upper = part.steps.lower, part.steps.upper
        if upper - lower == AffineConstantExpr(1):
            return self.block(part.body, at.inside(node.axis, part, lower))
        body = self.block(part.body, at.inside(node.axis, part, AffineExpr.dimension(at.depth)))
        is_shared = node.mark != "parallel" or not part.is_tail
        kind = _KINDS.get(node.mark, node.mark) if is_shared else "sequential"
        return (ForLoop(label(node.axis), kind, lower, upper, body, 0 if part.is_tail else node.least, node.unit),)

    def _instance(self, statement: int, at: _At) -> Instance:
        return Instance(statement, tuple(simplified(at.iteration(axis)) for axis in self._axes[statement]))


def _with_bodies(nests: Sequence[Nest], blocks: frozenset[int]) -> tuple[Nest, ...]:
    """The nest with a Body only for some blocks."""
    found: list[Nest] = []
    for nest in nests:
        match nest:
            case ForLoop():
                found.append(replace(nest, body=_with_bodies(nest.body, blocks)))
            case Body():
                inside = _with_bodies(nest.inside, blocks)
                found += [Body(nest.block, inside)] if nest.block in blocks else inside
            case Instance():
                found.append(nest)
    return tuple(found)
