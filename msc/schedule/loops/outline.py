"""The parts of a schedule that decisions are about: loops around all nodes, and the nodes that run one after the other.

for n tile 64, m tile 6          the band: loops around all nodes
for m unroll, n vector         a node: loops around some statements, here over the points of the band's axes
run S0
for k, m unroll, n vector      and here with a loop `k` of its own
run S1
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from msc.poly.schedule_tree.moves import chain, only_loop
from msc.poly.schedule_tree.nodes import Axis, Block, Loop, Node, Run, Tree, below, blocks, statements


@dataclass(frozen=True)
class Outline:
    """`band` are the loops around the block of `nodes`, outermost first; `shared` the axes that all nodes run over."""

    tree: Tree
    band: tuple[Loop, ...]
    nodes: tuple[Node, ...]
    shared: tuple[Axis, ...]

    @property
    def vector(self) -> str | None:
        """The shared axis that vectors run along."""
        shared = {axis.name for axis in self.shared}
        marked = (loop.axis for node in self.nodes for loop in chain(node) if loop.mark == "vector")
        return next((name for name in marked if name in shared), None)

    @property
    def sums(self) -> bool:
        """Whether nodes run loops of their own, so that what a tile computes should stay in registers."""
        return any(self.own(node) for node in self.nodes)

    def own(self, node: Node) -> list[Loop]:
        """The loops of a node over axes that not all nodes share."""
        return own_loops_of(node, {axis.name for axis in self.shared})


def loops_around(block: Block, statement: int) -> Iterator[Loop]:
    """The loops around a statement in a block, outermost first, as far as they run to their ends."""
    node = next((n for n in block.nodes if statement in below(n)), None)
    if isinstance(node, Loop):
        yield node
        yield from loops_around(node.body, statement)


def own_loops_of(node: Node, shared: Collection[str]) -> list[Loop]:
    """The loops of a node over axes that are not `shared`."""
    return [loop for loop in chain(node) if loop.axis not in shared]


def outline(tree: Tree) -> Outline:
    """The band and the nodes of a tree without cuts."""
    block, band = tree.body, list[Loop]()
    while (loop := _branching(block)) is not None:
        band.append(loop)
        block = loop.body
    inside = statements(block)
    if len(block.nodes) == 1:
        band += [loop for loop in chain(block.nodes[0]) if loop.mark != "vector"]
    shared = tuple(axis for axis in tree.axes if inside and inside <= axis.dims.keys())
    return Outline(tree, tuple(band), block.nodes, shared)


def _branching(block: Block) -> Loop | None:
    """The last loop of a block in which several nodes run one after the other."""
    return next((node for node in reversed(block.nodes) if isinstance(node, Loop) and _branches(node)), None)


def _branches(node: Node) -> bool:
    return any(len(block.nodes) > 1 or any(map(_branches, block.nodes)) for block in blocks(node))


def own_statements(node: Node) -> tuple[int, ...]:
    """The statements of a node that is loops around one `run`."""
    while isinstance(node, Loop) and only_loop(node) is not None:
        node = node.body.nodes[0]
    last = node.body.nodes[0] if isinstance(node, Loop) and node.body.nodes else node
    return last.statements if isinstance(last, Run) else ()
