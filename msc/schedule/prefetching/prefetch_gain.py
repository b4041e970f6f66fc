"""Whether a prefetch pays: whether its instructions take less time than waiting for the data."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from msc.cost.prediction import KernelCost
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Tree
from msc.targets.machine import Machine


@dataclass(frozen=True)
class PrefetchGain:
    """What a kernel waits for between two calls in a network, when all caches are filled with other data.

    A call finds in L2 what it has read before.
    """

    cost: KernelCost

    @staticmethod
    def of(model: KernelModel, machine: Machine) -> PrefetchGain:
        others = 2 * machine.caches[-1].bytes
        return PrefetchGain(KernelCost(model, machine, far=dict.fromkeys(range(len(model.arrays)), others)))

    def pays(self, tree: Tree, asked: Tree, arrays: Collection[str]) -> bool:
        """Whether the prefetches of some arrays in the tree `asked` take less time than waiting for their lines.

        A core waits for several lines at a time.
        """
        names, machine = array_names(self.cost.model), self.cost.target
        free = tuple(k for k, name in enumerate(names) if name in arrays)
        whole, without = (self.cost.moved(tree, each)[:2][-1].bytes for each in ((), free))
        waiting = (whole - without) / machine.line * machine.levels[-1].latency / machine.ports.misses
        return self.cost.instructions(asked, 1) - self.cost.instructions(tree, 1) <= waiting
