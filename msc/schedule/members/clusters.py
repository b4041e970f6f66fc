"""One tree of the trees of members: loops over blocks outermost, in them what each member runs of a block.

for n tile 32
place t0 in stack          a block of what the first member computes (storage)
...                        the first member's nodes
...                        the second member's nodes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from msc.poly.schedule_tree.moves import chain, mapped, nested
from msc.poly.schedule_tree.nodes import Axis, Block, Cut, Loop, Node, Run, Tree
from msc.schedule.loops.sharing import declared
from msc.schedule.members.members import BlockLoop, Member


@dataclass(frozen=True)
class _Part:
    """What a member runs: `before` all blocks, and in its `loops` over them, which the `body` stands in."""

    before: tuple[Node, ...]
    loops: tuple[Loop, ...]
    body: Block

    @classmethod
    def of(cls, tree: Tree, depth: int) -> _Part:
        """The parts of a tree with its `depth` loops over blocks around what runs last."""
        *before, last = tree.body.nodes
        loops, body = list[Loop](), Block((last,))
        for _ in range(depth):
            (loop,) = body.nodes
            assert isinstance(loop, Loop)
            loops.append(loop)
            body = loop.body
        return cls(tuple(before), tuple(loops), body)

    def inside(self, sizes: Sequence[int]) -> tuple[Node, ...]:
        """The nodes of one block, of some sizes: loops over several tiles of it stay."""
        kept = [loop for loop, size in zip(self.loops, sizes, strict=True) if (loop.tile or 1) != size]
        return nested(kept, self.body).nodes


def composed(members: Sequence[Member], trees: Sequence[Tree], loops: Sequence[BlockLoop]) -> Tree:
    """The tree of a kernel: the trees of its members, whose loops over blocks are outermost, in loops over blocks.

    Where no blocks of one size are tiles of all of them, members run one after the other.
    """
    if not all(_stand_outermost(*each, loops) for each in zip(members, trees, strict=True)):
        loops = ()
    tree, renamed = _axes(members, trees, loops)
    sizes = _sizes(renamed, loops)
    parts = [_Part.of(each, len(loops) if sizes else 0) for each in renamed]
    before = tuple(node for part in parts for node in part.before)
    inside = Block(tuple(node for part in parts for node in part.inside(sizes)))
    around = [_over(axis, size) for axis, size in zip(tree.axes, sizes, strict=False)]
    return replace(tree, body=Block((*before, *nested(around, inside).nodes)))


def _stand_outermost(member: Member, tree: Tree, loops: Sequence[BlockLoop]) -> bool:
    """Whether the loops over blocks are the outermost ones around what a member runs last."""
    found = list(chain(tree.body.nodes[-1]))[: len(loops)]
    axes = [tree.axis(loop.axis) for loop in found]
    return len(axes) == len(loops) and all(
        loop.of(member).items() <= axis.dims.items() for loop, axis in zip(loops, axes, strict=True)
    )


def _over(axis: Axis, size: int) -> Loop:
    return Loop(axis.name, Block(), size if size > 1 else None)


def _sizes(trees: Sequence[Tree], loops: Sequence[BlockLoop]) -> list[int]:
    """Iterations of each loop in a block: the least that are whole tiles of all members; none where that is all."""
    sizes = list[int]()
    for depth in range(len(loops)):
        tiles = [_Part.of(tree, depth + 1).loops[-1] for tree in trees]
        extent = trees[0].axis(tiles[0].axis).extent
        count = gcd(*(extent // (loop.tile or 1) for loop in tiles))
        if count == 1 or any(extent % (loop.tile or 1) for loop in tiles):
            return []
        sizes.append(extent // count)
    return sizes


def _axes(members: Sequence[Member], trees: Sequence[Tree], loops: Sequence[BlockLoop]) -> tuple[Tree, list[Tree]]:
    """A tree of the axes of all members, those of blocks first, and theirs with its axes and statements."""
    whole, renamed = Tree((), Block()), list[Tree]()
    over: list[str] = []
    for loop in loops:
        own = [member.numbered(_axis_of(member, tree, loop)) for member, tree in zip(members, trees, strict=True)]
        dims = {s: d for axis in own for s, d in axis.dims.items()}  # fills of borders among them, which run before
        whole, name = declared(whole, replace(own[-1], dims=dims))
        over.append(name)
    for member, tree in zip(members, trees, strict=True):
        known = {_axis_of(member, tree, loop).name: name for loop, name in zip(loops, over, strict=True)}
        names = dict[str, str]()
        for axis in tree.axes:
            if axis.name in known:
                names[axis.name] = known[axis.name]
            else:
                whole, names[axis.name] = declared(whole, member.numbered(axis))
        renamed.append(_renamed(tree, names, member.statements))
    return whole, [replace(each, axes=whole.axes) for each in renamed]


def _axis_of(member: Member, tree: Tree, loop: BlockLoop) -> Axis:
    """The axis of a member's tree that a loop over blocks runs over."""
    wanted = loop.of(member).items()
    return next(axis for axis in tree.axes if wanted <= axis.dims.items())


def _renamed(tree: Tree, names: Mapping[str, str], statements: Sequence[int]) -> Tree:
    def change(node: Node) -> Node:
        match node:
            case Loop() | Cut():
                return replace(node, axis=names[node.axis])
            case Run():
                return replace(node, statements=tuple(statements[s] for s in node.statements))

    return mapped(tree, change)
