"""Moves: named transformations of a schedule tree. Each returns a tree, or raises ScheduleError if it does not apply.

A move preserves the instances that a tree runs: every statement, once for each of its iterations. isl decides later
whether the new order is legal (`proof`). Moves of loops do not move places: they take trees without places
(`without_places`), to which `cache_read` and `cache_write` add them. docs/schedules.md has an example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import is_

from msc.poly.schedule_tree.nodes import (
    Block,
    Cut,
    Loop,
    Mark,
    Node,
    Place,
    Prefetch,
    Run,
    ScheduleError,
    Tree,
    below,
    walk,
)


def find(tree: Tree, name: str, statement: int | None = None) -> Loop:
    """The outermost loop that a schedule calls `m`, or `m tile 6`: around a statement, if one is given."""
    for node in walk(tree.body):
        if isinstance(node, Loop) and name_of(node) == name and (statement is None or statement in below(node)):
            return node
    raise ScheduleError(f"there is no loop 'for {name}'" + ("" if statement is None else f" around S{statement}"))


def name_of(loop: Loop) -> str:
    """What a schedule calls a loop, whatever its mark: `m` over points, `m tile 6` over tiles."""
    return loop.axis if loop.tile is None else f"{loop.axis} tile {loop.tile}"


def split(tree: Tree, loop: Loop, size: int) -> Tree:
    """`for m` becomes `for m tile N` and, right inside, `for m`. (Halide, TVM: split; MLIR: tile.)"""
    if loop.mark != "parallel":
        return put(tree, loop, Loop(loop.axis, Block((loop,)), size))
    inner = replace(loop, mark="", least=0, cores=0)
    return put(tree, loop, replace(loop, body=Block((inner,)), tile=size, least=-(-loop.least // size)))


def fuse(tree: Tree, axis: str) -> Tree:
    """The inverse of `split` and `sink`: one loop over all points of an axis, where its tiles are or, without these,
    around all that runs it. (Halide, TVM: fuse.)
    """
    tiles = next((n for n in walk(tree.body) if isinstance(n, Loop) and n.axis == axis and n.tile is not None), None)
    if tiles is not None:
        least = tiles.least * (tiles.tile or 1)
        return put(tree, tiles, replace(tiles, body=_without(tiles.body, axis), tile=None, least=least))
    if axis not in {each.name for each in tree.axes}:
        raise ScheduleError(f"there is no axis {axis}: there are {', '.join(each.name for each in tree.axes)}")
    inside = frozenset(s for s in tree.axis(axis).dims)

    def around(block: Block) -> Block:
        node = next((n for n in block.nodes if inside <= below(n)), None)
        if isinstance(node, Loop) and node.axis != axis:
            new: Node = replace(node, body=around(node.body))
            return replace(block, nodes=tuple(new if n is node else n for n in block.nodes))
        touched = [n for n in block.nodes if inside & below(n)]
        first = block.nodes.index(touched[0])
        loop = Loop(axis, _without(Block(tuple(touched)), axis))
        return replace(block, nodes=(*block.nodes[:first], loop, *(n for n in block.nodes[first:] if n not in touched)))

    return replace(tree, body=around(tree.body))


def _without(block: Block, axis: str) -> Block:
    """A block in which the bodies of the loops over an axis take the places of these loops."""
    return _rebuilt(block, lambda node: node.body.nodes if isinstance(node, Loop) and node.axis == axis else (node,))


def sink(tree: Tree, loop: Loop) -> Tree:
    """The loop moves as far inside as possible: directly around the statements, or around their vector loop.

    Where several nodes run in it, each gets a loop of its own. (Loop distribution; the tiles of a register tile.)
    """

    def inside(block: Block) -> Block:
        return replace(block, nodes=tuple(map(_sunk, block.nodes)))

    def _sunk(node: Node) -> Node:
        if isinstance(node, Loop) and not (node.mark == "vector" and _only_runs(node.body)):
            return replace(node, body=inside(node.body))
        if isinstance(node, Cut):
            return replace(node, head=inside(node.head), tail=inside(node.tail))
        return replace(loop, body=Block((node,)))

    sunk = inside(loop.body)
    return replace_nodes(tree, loop, sunk.nodes)


def _only_runs(block: Block) -> bool:
    return all(isinstance(node, Run) for node in block.nodes)


def interchange(tree: Tree, outer: Loop) -> Tree:
    """A loop and the one right inside it change places. (Halide, TVM: reorder.)"""
    inner = only_loop(outer)
    if inner is None:
        raise ScheduleError(f"the loop over {outer.axis} has no single loop right inside", outer.line)
    if inner.axis == outer.axis:
        raise ScheduleError(f"the loop over points of {outer.axis} is inside that over its tiles", outer.line)
    return put(tree, outer, replace(inner, body=Block((replace(outer, body=inner.body),))))


def only_loop(loop: Loop) -> Loop | None:
    """The loop right inside another, if nothing else stands there."""
    nodes = loop.body.nodes
    return nodes[0] if len(nodes) == 1 and isinstance(nodes[0], Loop) else None


def outermost(tree: Tree, loop: Loop) -> Tree:
    """The loop around all others that it can change places with."""
    while (around := _right_around(tree, loop)) is not None and around.axis != loop.axis:
        moved = replace(loop, body=Block((replace(around, body=loop.body),)))
        tree, loop = put(tree, around, moved), moved
    return tree


def _right_around(tree: Tree, loop: Loop) -> Loop | None:
    return next((n for n in walk(tree.body) if isinstance(n, Loop) and only_loop(n) is loop), None)


def parallelise(tree: Tree, loop: Loop) -> Tree:
    """The loop shared by threads, around all others that it can change places with. (Halide, TVM: parallel.)"""
    shared = replace(loop, mark="parallel", least=0, cores=0)
    return outermost(put(tree, loop, shared), shared)


def mark(tree: Tree, loop: Loop, how: Mark) -> Tree:
    """The loop `vector`, `unroll`, `parallel`, or none of these."""
    return put(tree, loop, replace(loop, mark=how, least=0, cores=0))


def vectorise(tree: Tree, loop: Loop) -> Tree:
    """The points of the loop as lanes. (Halide, TVM: vectorize.)"""
    return mark(tree, loop, "vector")


def unroll(tree: Tree, loop: Loop) -> Tree:
    """The iterations of the loop one after the other. (Halide, TVM: unroll.)"""
    return mark(tree, loop, "unroll")


def pipeline(tree: Tree, loop: Loop, buffers: int = 2) -> Tree:
    """Several buffers of each array that is placed right below the loop. (TVM: software_pipeline.)"""
    return put(tree, loop, replace(loop, mark="pipeline", buffers=buffers))


def tensorise(tree: Tree, loop: Loop, unit: str) -> Tree:
    """The loop and all below it as one instruction of a unit of the machine. (TVM: tensorize.)"""
    return put(tree, loop, replace(loop, mark="intrinsic", unit=unit))


def cache_read(tree: Tree, array: str, loop: Loop, scope: str) -> Tree:
    """A copy of the elements of an input that an iteration of the loop reads. (TVM: cache_read; BLIS: packing.)"""
    return _placed(tree, Place(array, scope), loop)


def cache_write(tree: Tree, array: str, loop: Loop, scope: str) -> Tree:
    """A scope for the elements of an intermediate that an iteration computes. (TVM: cache_write; Halide: store_at.)"""
    return _placed(tree, Place(array, scope), loop)


def _placed(tree: Tree, place: Place, loop: Loop) -> Tree:
    return put(tree, loop, replace(loop, body=replace(loop.body, places=(*loop.body.places, place))))


def uncut(tree: Tree) -> Tree:
    """The tree without cuts: the heads alone, which then run over the whole axes."""
    return replace(tree, body=_rebuilt(tree.body, lambda node: node.head.nodes if isinstance(node, Cut) else (node,)))


def without_places(tree: Tree) -> Tree:
    """The loops alone, without places and prefetches."""
    return with_blocks(tree, lambda block: Block(block.nodes))


def chain(node: Node) -> Iterator[Loop]:
    """A loop, the one right inside it, and so on."""
    while isinstance(node, Loop):
        yield node
        inner = only_loop(node)
        if inner is None:
            return
        node = inner


def nested(loops: Sequence[Loop], body: Block) -> Block:
    """Loops in each other, the first outermost, around a body: their own is left out."""
    for loop in reversed(loops):
        body = Block((replace(loop, body=body),))
    return body


def put(tree: Tree, old: Node, new: Node) -> Tree:
    """The tree with another node in the place of one."""
    return replace_nodes(tree, old, (new,))


def replace_nodes(tree: Tree, old: Node, new: Sequence[Node]) -> Tree:
    """The tree with others in the place of a node, which is told by its identity and must be in the tree."""
    body = _with_nodes(tree.body, old, new)
    if body is tree.body and tuple(new) != (old,):
        raise _foreign(f"loop 'for {name_of(old)}'" if isinstance(old, Loop) else "node")
    return Tree(tree.axes, body)


def _with_nodes(block: Block, old: Node, new: Sequence[Node]) -> Block:
    """The same block if the node is not in it."""
    return _rebuilt(block, lambda node: new if node is old else (node,))


def _foreign(what: str) -> ScheduleError:
    return ScheduleError(f"this {what} is not in the tree: a move takes parts of the tree that the last move returned")


def mapped(tree: Tree, change: Callable[[Node], Node]) -> Tree:
    """The tree with every node changed, those below a node before it."""
    return replace(tree, body=_rebuilt(tree.body, lambda node: (change(node),)))


def with_blocks(tree: Tree, change: Callable[[Block], Block]) -> Tree:
    """The tree with every block changed, in the order of the text."""

    def changed(block: Block) -> Block:
        new = change(block)
        nodes = tuple(_below(node, changed) for node in new.nodes)
        return new if all(map(is_, nodes, new.nodes)) else replace(new, nodes=nodes)

    return replace(tree, body=changed(tree.body))


def _rebuilt(block: Block, change: Callable[[Node], Sequence[Node]]) -> Block:
    """A block with others in the place of each node, those below a node before it; the same one if none is another."""
    nodes = [new for node in block.nodes for new in change(_below(node, lambda inner: _rebuilt(inner, change)))]
    unchanged = len(nodes) == len(block.nodes) and all(map(is_, nodes, block.nodes))
    return block if unchanged else replace(block, nodes=tuple(nodes))


def _below(node: Node, inside: Callable[[Block], Block]) -> Node:
    """A node with the blocks below it changed; the same one if none is another."""
    match node:
        case Loop():
            body = inside(node.body)
            return node if body is node.body else replace(node, body=body)
        case Cut():
            head, tail = inside(node.head), inside(node.tail)
            return node if head is node.head and tail is node.tail else replace(node, head=head, tail=tail)
        case Run():
            return node


def enclose(tree: Tree, axis: str) -> Tree:
    """A loop over all points of an axis around all others."""
    return replace(tree, body=Block((Loop(axis, tree.body),)))


def reorder(tree: Tree, names: Sequence[str], outer: Loop | None = None) -> Tree:
    """The outermost loops, right in each other, in another order: the first named is outermost. (Halide, TVM: reorder.)

    Or the loop `outer` and those right in it. The axes are listed in that order, too.
    """
    if not names:
        return tree
    tree = listed(tree, list(dict.fromkeys(name.partition(" ")[0] for name in names)))
    first = outer or tree.body.nodes[0]
    loops = {name_of(loop): loop for loop in list(chain(first))[: len(names)]}
    if loops.keys() != set(names):
        raise ScheduleError(f"the {'' if outer else 'outermost '}loops are {', '.join(loops)}, not {', '.join(names)}")
    (new,) = nested([loops[name] for name in names], list(loops.values())[-1].body).nodes
    return put(tree, first, new)


def listed(tree: Tree, first: Sequence[str]) -> Tree:
    """The same tree with some axes listed first."""
    rank = {name: k for k, name in enumerate(first)}
    return replace(tree, axes=tuple(sorted(tree.axes, key=lambda axis: rank.get(axis.name, len(rank)))))


def shared_loop(tree: Tree, axis: str) -> Loop | None:
    """The loop of an axis around what runs last: over its tiles, or its points where it has none."""
    nodes = tree.body.nodes
    while nodes and isinstance(loop := nodes[-1], Loop) and loop.mark not in ("vector", "unroll"):
        if loop.axis == axis:
            return loop
        nodes = loop.body.nodes
    return None


def prefetch(tree: Tree, block: Block, new: Prefetch) -> Tree:
    """The statements of a block prefetch what they read later. (Halide: prefetch.)

    Another distance along the same axis replaces the old one.
    """
    others = tuple(p for p in block.prefetches if (p.array, p.axis) != (new.array, new.axis))
    asked = replace(block, prefetches=(*others, new))
    changed = with_blocks(tree, lambda each: asked if each is block else each)
    if changed.body is tree.body:
        raise _foreign("block")
    return changed


def without_prefetches(tree: Tree) -> Tree:
    """The tree without prefetches, and without tile loops that existed only to prefetch once a tile."""

    def whole(node: Node) -> Node:
        inner = only_loop(node) if isinstance(node, Loop) and node.body.prefetches and not node.body.places else None
        return inner if inner is not None and isinstance(node, Loop) and inner.axis == node.axis else node

    return with_blocks(mapped(tree, whole), lambda block: replace(block, prefetches=()) if block.prefetches else block)


def compute_at(tree: Tree, node: Node, loop: Loop | None) -> Tree:
    """A node in front of all else in each iteration of a loop; without a loop once. (Halide, TVM: compute_at.)

    Where the node is a part of the tree already, it moves there.
    """
    if loop is None:
        body = _with_nodes(tree.body, node, ())
        return Tree(tree.axes, replace(body, nodes=(node, *body.nodes)))
    if any(inner is loop for inner in walk(Block((node,)))):
        raise ScheduleError(f"'for {name_of(loop)}' is inside the node that would be computed at it")
    others = _with_nodes(loop.body, node, ())
    if others is loop.body:
        tree = Tree(tree.axes, _with_nodes(tree.body, node, ()))
    return put(tree, loop, replace(loop, body=replace(others, nodes=(node, *others.nodes))))
