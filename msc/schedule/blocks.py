"""Loops at which producers are computed: outermost in all kernels of a chain, they become one (`fuse-blocks`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from msc.analysis.kernel_model import output_positions
from msc.dialects.gk import KernelOp, blocked_axes, blocks_of
from msc.poly.alignment import is_along
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.moves import join, listed, outermost, shared_loop
from msc.poly.schedule_tree.nodes import Axis, Tree
from msc.schedule.outline import outline
from msc.schedule.register_tiles import retiled

_ELEMENT_BYTES = 4


@dataclass(frozen=True)
class Blocked:
    """An array of a kernel's model, and the axes along which it is computed in blocks, the outermost first.

    `is_numbered`: an index along them is the number of a block; else one of several elements of a block.
    """

    array: int
    axes: tuple[int, ...]
    is_numbered: bool

    @classmethod
    def of(cls, array: int, value: SSAValue) -> Blocked:
        """The array that a kernel's model has for a value."""
        return cls(array, blocked_axes(value), blocks_of(value) > 0)


def blocked_arrays(kernel: KernelOp) -> tuple[Blocked, ...]:
    """What a kernel takes and gives block by block."""
    inputs = [Blocked.of(k, value) for k, value in enumerate(kernel.inputs)]
    positions = zip(output_positions(kernel), kernel.results, strict=True)
    results = [Blocked.of(array, value) for array, value in positions]
    return tuple(found for found in (*inputs, *results) if found.axes)


def numbered_loops(model: KernelModel, band: Sequence[Axis], blocked: Sequence[Blocked]) -> list[Axis]:
    """Those of `loops_over_blocks` with a block an iteration, which leaves nothing of them for vectors and tiles."""
    return loops_over_blocks(model, band, [found for found in blocked if found.is_numbered])


def loops_over_blocks(model: KernelModel, band: Sequence[Axis], blocked: Sequence[Blocked]) -> list[Axis]:
    """The loops of the band over the blocks, outermost first; empty where one of them is none of the band."""
    loops: list[Axis] = []
    for depth in range(max((len(found.axes) for found in blocked), default=0)):
        places = [(found.array, found.axes[depth]) for found in blocked if depth < len(found.axes)]
        matching = [m for m in band if all(is_along(model, m.dims, array, axis) for array, axis in places)]
        loops += matching[:1]
        if not matching:
            return []
    return loops


def with_blocks_outermost(
    model: KernelModel, tree: Tree, names: Sequence[str], blocked: Sequence[Blocked], lanes: int, pair: int
) -> Tree:
    """The tree with its loops over blocks around all others.

    Where nothing is reduced, tiles of vectors are as wide as a pair of lines, of `pair` bytes, if that divides their
    loop.
    """
    axes = loops_over_blocks(model, [tree.axis(name) for name in names], blocked)
    columns = outline(tree).vector
    for axis in reversed(axes):
        if axis.name == columns and not any(s.combine for s in model.statements):
            wide = max(lanes, pair // _ELEMENT_BYTES)
            width = lanes if axis.extent % wide else wide
            tree = retiled(model, join(tree, axis.name), axis.name, width, "vector")
        loop = shared_loop(tree, axis.name)
        tree = tree if loop is None else outermost(tree, loop)
    return listed(tree, [axis.name for axis in axes])


def is_blocked(array: int, blocked: Collection[Blocked]) -> bool:
    """Whether an array is one of those."""
    return any(found.array == array for found in blocked)
