"""Proofs that kernels share whose schedules differ only in how far loops run, or in tiles that no dependence sees.

Layers of a network often differ in their channels alone. What no dependence breaks in larger boxes, none breaks in
smaller ones: there are fewer dependences. So a schedule is first proved for loops of very many iterations, once
for all kernels of a kind, and for the kernel itself only where that fails.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from msc.poly.dependences import Dependences, domain, inside
from msc.poly.model import Array, KernelModel
from msc.poly.remembered import remembered
from msc.poly.scalar import Constant
from msc.poly.schedule_tree.moves import mapped
from msc.poly.schedule_tree.nodes import Axis, Cut, Loop, Node, Tree, loops, walk
from msc.poly.schedule_tree.proof import broken, prove
from msc.poly.schedule_tree.to_isl import to_isl

_TILES = 1 << 20
"""The tiles, or iterations, of a loop whose end does not matter."""
_TILE = 1 << 12
"""The iterations of a tile whose size does not matter."""


def prove_kind(model: KernelModel, deps: Dependences, tree: Tree) -> None:
    """Raise ScheduleError for the first clause of a tree that breaks a dependence, as `prove`."""
    if not _holds_for_kind(model, deps, tree):
        prove(model, deps, tree, to_isl(model, tree))


def _holds_for_kind(model: KernelModel, deps: Dependences, tree: Tree) -> bool:
    """Whether the schedule is proved for all kernels of the kind."""
    if model.sizes or deps.anywhere is None:
        return False
    kind, schedule = _kind(model, tree)
    known = _known(deps.anywhere)
    if (kind, schedule) not in known:
        pairs = inside(deps.anywhere, domain(kind))
        known[kind, schedule] = not any(True for _ in broken(kind, pairs, schedule, to_isl(kind, schedule)))
    return known[kind, schedule]


@remembered
def _known(deps: Dependences) -> dict[tuple[KernelModel, Tree], bool]:
    """Of kernels with the same dependences, but for where these end, what is proved, or is not."""
    del deps
    return {}


def _kind(model: KernelModel, tree: Tree) -> tuple[KernelModel, Tree]:
    """What a proof reads of a kernel and its schedule, with very many iterations of loops that end with a tile."""
    sizes = {axis.name: sorted({n.tile for n in loops(tree) if n.axis == axis.name and n.tile}) for axis in tree.axes}
    cut = {node.axis for node in walk(tree.body) if isinstance(node, Cut)}
    tiles = {a.name: tile for a in tree.axes if a.name not in cut and (tile := _tile(model, a, sizes[a.name]))}

    def retiled(node: Node) -> Node:
        is_any = isinstance(node, Loop) and node.tile and tiles.get(node.axis) == _TILE
        return replace(node, tile=_TILE) if is_any else node

    axes = tuple(replace(a, extent=tiles[a.name] * _TILES) if a.name in tiles else a for a in tree.axes)
    return _endless(model, axes), Tree(axes, mapped(tree, retiled).body)


def _tile(model: KernelModel, axis: Axis, sizes: list[int]) -> int:
    """The largest tile of an axis if it and all smaller ones end where it ends; 0 if not.

    Where no dependence sees the axis, one tile is as good as another.
    """
    if any(whole % part for part, whole in pairwise([*sizes, axis.extent])):
        return 0
    return _TILE if len(sizes) == 1 and sizes[0] <= _TILE and _is_unseen(model, axis) else max(sizes, default=1)


def _is_unseen(model: KernelModel, axis: Axis) -> bool:
    """Whether no access to what the kernel writes moves along an axis."""
    written = {s.target for s in model.statements}
    return not any(
        array in written and dim in index.used_dims()
        for statement, dim in axis.dims.items()
        for array, index in model.statements[statement].accesses()
    )


def _endless(model: KernelModel, axes: tuple[Axis, ...]) -> KernelModel:
    """What a proof reads of a kernel, as far as axes run."""
    extents = [list(statement.extents) for statement in model.statements]
    for axis in axes:
        for statement, dim in axis.dims.items():
            extents[statement][dim] = axis.extent
    statements = (
        replace(s, extents=tuple(ends), names=(), body=Constant(0, "f32"), operation=0)
        for s, ends in zip(model.statements, extents, strict=True)
    )
    return KernelModel(tuple(Array((), a.dtype, a.kind) for a in model.arrays), tuple(statements), ())
