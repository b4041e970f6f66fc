"""The prefetches of a schedule: data that the caches do not hold, requested ahead of its use."""

from __future__ import annotations

from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Tree
from msc.schedule.prefetching.epilogue_prefetches import with_epilogue_prefetches
from msc.schedule.prefetching.row_prefetches import with_row_prefetches
from msc.schedule.prefetching.tile_prefetches import with_tile_prefetches
from msc.targets.machine import Machine


def with_prefetches(model: KernelModel, tree: Tree, machine: Machine) -> Tree:
    """The tree with prefetches of rows that are read again, and of what register tiles read. Takes one with places."""
    for with_some in (with_row_prefetches, with_tile_prefetches, with_epilogue_prefetches):
        tree = with_some(model, tree, machine)
    return tree
