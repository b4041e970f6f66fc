"""Packing of an operand of a reduction: each part is copied in front of the loops that read it repeatedly.

A product of large matrices reads its right operand in panels of columns. The rows of a panel are a row of the matrix
apart, each on its own page and in few sets of a cache. A packed copy of one panel is made directly before its use,
stays in L2, and is overwritten by the next panel. `pack-operands` decides which products have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from xdsl.ir.affine import AffineDimExpr

from msc.poly.model import KernelModel
from msc.poly.scalar import Read, reads
from msc.poly.schedule_tree.moves import chain, compute_at, listed, nested, outermost, shared_loop
from msc.poly.schedule_tree.nodes import Loop, Node, Tree, walk
from msc.schedule.loops.sharing import Group, grouped_node, own_loops
from msc.schedule.tiles.register_tiles import is_crossed


def packing_copies(model: KernelModel) -> list[int]:
    """Statements that copy operands of reductions to an internal array, which is read more often than written."""
    return [k for k in range(len(model.statements)) if _is_packing(model, k)]


def _is_packing(model: KernelModel, number: int) -> bool:
    statement = model.statements[number]
    array = statement.target
    body = statement.body
    if not isinstance(body, Read) or body.indirect or statement.combine or model.arrays[array].kind != "internal":
        return False
    readers = _readers(model, array)
    again = all(model.statements[r].combine and _repeats(model, r, array) for r in readers)
    return bool(readers) and again and sum(s.target == array for s in model.statements) == 1


def _readers(model: KernelModel, array: int) -> list[int]:
    return [k for k, s in enumerate(model.statements) if any(r.operand == array for r in reads(s.body))]


def _repeats(model: KernelModel, reader: int, array: int) -> bool:
    """Whether a loop of the reader over its results reads the same elements again."""
    statement = model.statements[reader]
    moved = _dims(model, reader, array).values()
    return any(d not in moved and statement.extents[d] > 1 for d in statement.write.used_dims())


def _dims(model: KernelModel, number: int, array: int) -> dict[int, int]:
    """The dimension of a statement that indexes each axis of an array, where one does."""
    accesses = model.statements[number].accesses()
    maps = [map_ for k, (a, map_) in enumerate(accesses) if a == array and (k or model.statements[number].target == a)]
    return {axis: e.position for axis, e in enumerate(maps[0].results) if isinstance(e, AffineDimExpr)}


def copied_dimension(model: KernelModel, number: int, reader: int, dim: int) -> int | None:
    """The dimension of a copy that indexes the array as a dimension of its reader does; None if there is none."""
    array = model.statements[number].target
    if reader not in _readers(model, array):
        return None
    axis = next((axis for axis, read in _dims(model, reader, array).items() if read == dim), None)
    return None if axis is None else _dims(model, number, array).get(axis)


def with_packing(
    model: KernelModel, tree: Tree, names: Sequence[str], copies: Sequence[int], lanes: int, reasons: list[str]
) -> Tree:
    """The tree of all other statements with each copy computed at the innermost loop of the band that it moves along.

    These loops are outermost, so that all iterations of the others read one copy. A copy that transposes runs over
    tiles of a vector along both axes, whose lines stay in L1 while the tile is read.
    """
    for number in copies:
        tree = _with_copy(model, tree, names, number, lanes, reasons)
    return tree


def _with_copy(
    model: KernelModel, tree: Tree, names: Sequence[str], number: int, lanes: int, reasons: list[str]
) -> Tree:
    array = model.statements[number].target
    reader = _readers(model, array)[0]
    band = [axis for axis in tree.axes if axis.name in names]
    moved = {axis.name: copied_dimension(model, number, reader, axis.dims[reader]) for axis in band}
    along = {name: dim for name, dim in moved.items() if dim is not None}
    tree = _along(tree, along, number)
    for name in reversed(along):
        loop = shared_loop(tree, name)
        tree = tree if loop is None else outermost(tree, loop)
    tree = listed(tree, list(along))
    own = own_loops(model, number, [tree.axis(name) for name in along])
    tree, node = grouped_node(tree, Group((number,), own), _points(tree, along), len(names))
    node = _in_tiles(model, tree, node, lanes)
    around = [loop for name in along if (loop := shared_loop(tree, name)) is not None]
    if along:
        name = model.operations[model.statements[number].operation]
        others = ", ".join(axis.name for axis in band if axis.name not in along)
        reasons.append(f"{name} packed by parts, once for all {others}")
    return compute_at(tree, node, around[-1] if around else None)


def _in_tiles(model: KernelModel, tree: Tree, node: Node, lanes: int) -> Node:
    """A copy whose vectors have lanes from different rows, in tiles of as many rows and columns as lanes."""
    loops = list(chain(node))
    if len(loops) < 2 or loops[-2].mark or loops[-1].mark != "vector":
        return node
    *around, row, columns = loops
    if not is_crossed(model, tree.axis(row.axis), tree.axis(columns.axis)):
        return node
    tiles = [replace(columns, mark="", tile=lanes)] if _width(tree, columns.axis) > lanes else []
    tiles += [replace(row, tile=lanes)] if tree.axis(row.axis).extent > lanes else []
    return nested([*around, *tiles, replace(row, mark="unroll"), columns], columns.body).nodes[0]


def _width(tree: Tree, name: str) -> int:
    """The iterations of an axis in its tiles; all without tiles."""
    sizes = [node.tile for node in walk(tree.body) if isinstance(node, Loop) and node.axis == name and node.tile]
    return min([*sizes, tree.axis(name).extent])


def _along(tree: Tree, dims: Mapping[str, int], number: int) -> Tree:
    """The tree whose axes also run over these dimensions of a statement."""
    axes = (replace(a, dims={**a.dims, number: dims[a.name]}) if a.name in dims else a for a in tree.axes)
    return replace(tree, axes=tuple(axes))


def _points(tree: Tree, names: Iterable[str]) -> list[Loop]:
    """Loops over the points of the tiles of some axes, vectors innermost."""
    marked = [node for node in walk(tree.body) if isinstance(node, Loop) and node.mark in ("vector", "unroll")]
    first = {loop.axis: loop for loop in reversed(marked) if loop.axis in names}
    return sorted((first[name] for name in names if name in first), key=lambda loop: loop.mark == "vector")
