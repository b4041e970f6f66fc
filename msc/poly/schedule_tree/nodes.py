"""The nodes of a schedule tree.

A tree declares axes, each a dimension of one or several statements, and nests loops over them:

    axis m 1000: S0.0 S1.0 S2.0
    axis n 64: S0.1 S1.1 S2.1
    axis k 512: S1.2
    for m tile 6 parallel
      place t0 in register
      for m unroll, n vector
        run S0
      for k, m unroll, n vector
        run S1
      for m unroll, n vector
        run S2

`for m tile 6` is a loop over the tiles of an axis, `for m` over the remaining points. An axis has any number of tile
levels. If a tile does not divide its extent, the tail runs the same subtree with a smaller tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from msc.poly.remembered import remembered

Mark: TypeAlias = Literal["", "parallel", "vector", "unroll", "pipeline", "intrinsic"]
MARKS: tuple[Mark, ...] = ("parallel", "vector", "unroll")
"""The marks that are one word."""


COPIED_TO = ("register", "stack")
"""Scopes that take a copy of a part of an array, which goes back when their block ends."""


@dataclass(frozen=True)
class Axis:
    """A dimension that statements share: `dims[k]` is the one of statement k, of `extent` iterations."""

    name: str
    extent: int
    dims: Mapping[int, int] = field(hash=False)
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Place:
    """Array `array` is stored in `scope` while its block runs: in a memory of the target, or in that of an output.

    `partial` sums start from zero when the block begins, and are added to those of the block around at its end.
    (Halide, TVM: rfactor.)
    """

    array: str
    scope: str
    partial: bool = False
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Prefetch:
    """A block prefetches what the innermost enclosing loop over `axis` reads of `array` `ahead` iterations later: all
    of it, or, where other loops lie between, a share in each of their iterations. (Halide: prefetch.)
    """

    array: str
    ahead: int
    axis: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Run:
    """Statements, one after the other, at one point."""

    statements: tuple[int, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Loop:
    """A loop over the tiles of an axis, of `tile` iterations each, or over the points that are left.

    A `pipeline` has `buffers` of each array that is placed below it: one is filled while another is used. Of an
    `intrinsic`, `unit` performs the loop and all below it as one instruction. Where a call decides how many iterations
    a parallel loop has, threads share it from `least` on. `cores` of an accelerator share it, and parallel loops below;
    0: the machine says how many.
    """

    axis: str
    body: Block
    tile: int | None = None
    mark: Mark = ""
    line: int = field(default=0, compare=False)
    buffers: int = 1
    unit: str = ""
    least: int = 0
    cores: int = 0


@dataclass(frozen=True)
class Cut:
    """Iterations of an axis below `at` run `head`, those from there on `tail`, which comes after it."""

    axis: str
    at: int
    head: Block
    tail: Block
    line: int = field(default=0, compare=False)


Node: TypeAlias = Loop | Cut | Run


@dataclass(frozen=True)
class Block:
    """Nodes that run one after the other, the arrays that are stored meanwhile, and what these nodes prefetch."""

    nodes: tuple[Node, ...] = ()
    places: tuple[Place, ...] = ()
    prefetches: tuple[Prefetch, ...] = ()

    @property
    def clauses(self) -> tuple[Place | Prefetch, ...]:
        """What stands in front of the nodes."""
        return (*self.places, *self.prefetches)


@dataclass(frozen=True)
class Tree:
    """The schedule of a kernel."""

    axes: tuple[Axis, ...]
    body: Block

    def axis(self, name: str) -> Axis:
        """The axis of that name. Raises KeyError."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Axis]:
        return {axis.name: axis for axis in reversed(self.axes)}


class ScheduleError(ValueError):
    """A clause that does not fit its kernel: `line` of the tree's text, 0 for a tree without text."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.line = line


def blocks(node: Node) -> tuple[Block, ...]:
    """The blocks below a node."""
    match node:
        case Loop():
            return (node.body,)
        case Cut():
            return (node.head, node.tail)
        case Run():
            return ()


def walk(block: Block) -> Iterator[Node]:
    """All nodes below a block, a node before those below it."""
    for node in block.nodes:
        yield node
        for below in blocks(node):
            yield from walk(below)


def all_blocks(block: Block) -> Iterator[Block]:
    """A block and all below it, in the order of the text."""
    yield block
    for node in block.nodes:
        for below in blocks(node):
            yield from all_blocks(below)


def with_clauses(tree: Tree) -> frozenset[int]:
    """The numbers of the blocks (`all_blocks`) with places or prefetches, and of bodies of loops that these name."""
    found = list(all_blocks(tree.body))
    along = {prefetch.axis for block in found for prefetch in block.prefetches}
    bodies = {id(loop.body) for loop in loops(tree) if loop.axis in along and not loop.unit}
    return frozenset(number for number, block in enumerate(found) if block.clauses or id(block) in bodies)


def copies(tree: Tree) -> frozenset[int]:
    """The identities of places that hold a copy of what a block around places: a tile of it, near what uses it."""
    found = set[int]()

    def visit(block: Block, around: frozenset[str]) -> None:
        found.update(id(place) for place in block.places if place.array in around and place.scope in COPIED_TO)
        inner = around | {place.array for place in block.places}
        for node in block.nodes:
            for each in blocks(node):
                visit(each, inner)

    visit(tree.body, frozenset())
    return frozenset(found)


@remembered
def statements(block: Block) -> frozenset[int]:
    """The statements that run below a block."""
    return frozenset[int]().union(*map(below, block.nodes))


def below(node: Node) -> frozenset[int]:
    """The statements that a node runs."""
    if isinstance(node, Run):
        return frozenset(node.statements)
    return frozenset[int]().union(*map(statements, blocks(node)))


def loops(tree: Tree) -> Iterator[Loop]:
    """All loops of a tree, in the order of its text."""
    return (node for node in walk(tree.body) if isinstance(node, Loop))
