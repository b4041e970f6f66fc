"""Predicted cycles of kernels with the schedules that they would get, before anything is scheduled."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import TypeAlias, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from msc.analysis.constancy import is_constant
from msc.analysis.flops import flops
from msc.analysis.kernel_model import kernel_dependences, kernel_model, output_positions
from msc.analysis.target import Target, target_of
from msc.cost.prediction import KernelCost
from msc.dialects.gk import KernelOp
from msc.poly.schedule_tree.nodes import Tree
from msc.schedule.known_loops import KnownLoops

_Key: TypeAlias = tuple[str, frozenset[int], tuple[tuple[int, int], ...]]
"""The structure of a kernel's model, the arrays that are free, and how far which ones are."""


@dataclass(frozen=True)
class KernelCycles:
    """The cycles of kernels on a target, each asked once. The `loops` that this takes are kept."""

    target: Target
    loops: KnownLoops
    _known: dict[_Key, float] = field(default_factory=dict[_Key, float])

    @staticmethod
    def on_one_thread(module: ModuleOp) -> KernelCycles:
        """Cycles on one thread of a module's target, for choices that change how sums round: no number of threads may.

        The loops that an earlier pass attached to the module are known.
        """
        target = replace(target_of(module), threads=1)
        return KernelCycles(target, KnownLoops.taken(module, target.machine, 1))

    def of(
        self, kernels: Sequence[KernelOp], between: int, most: float = inf, free: Collection[SSAValue] = ()
    ) -> float:
        """The cycles of all kernels together. The sum ends when it reaches `most`.

        Between two calls of a kernel that reads a constant, other kernels access `between` bytes. Moving `free` values
        is not counted.
        """
        total = 0.0
        for kernel in sorted(kernels, key=flops, reverse=True):
            if total >= most:
                break
            far = {k: between for k, value in enumerate(kernel.inputs) if is_constant(value)}
            total += self.one(kernel, far, arrays_of(kernel, free))
        return total

    def one(self, kernel: KernelOp, far: Mapping[int, int], free: frozenset[int] = frozenset()) -> float:
        """The cycles of a kernel. `far` gives for arrays the bytes that others access between two calls of the kernel.
        Moving `free` arrays is not counted.
        """
        model = kernel_model(kernel)
        key = model.structure, free, tuple(far.items())
        if key not in self._known:
            cost, tree = KernelCost(model, self.target.machine, far=far), self.tree(kernel)
            moved = cost.moved(tree, free) if free else None
            self._known[key] = cost.prediction(tree, self.target.threads, moved).cycles
        return self._known[key]

    def __len__(self) -> int:
        return len(self._known)

    def written(self, first: int) -> list[str]:
        """What was asked from a number on, as texts for another process."""
        return [
            text
            for (structure, free, far), cycles in list(self._known.items())[first:]
            for text in (structure, json.dumps([list(free), far, cycles]))
        ]

    def read(self, texts: Sequence[str]) -> None:
        """Take what `written` gave in another process."""
        for structure, text in zip(texts[::2], texts[1::2], strict=True):
            free, far, cycles = cast("tuple[list[int], list[tuple[int, int]], float]", json.loads(text))
            self._known[structure, frozenset(free), tuple((array, bytes_) for array, bytes_ in far)] = cycles

    def tree(self, kernel: KernelOp) -> Tree:
        """The loops that a kernel would get."""
        return self.loops.decided(kernel_model(kernel), lambda: kernel_dependences(kernel)).tree


def arrays_of(kernel: KernelOp, values: Collection[SSAValue]) -> frozenset[int]:
    """The arrays of a kernel's model that hold some of its inputs and results."""
    outputs = zip(output_positions(kernel), kernel.results, strict=True)
    return frozenset(k for k, value in (*enumerate(kernel.inputs), *outputs) if value in values)
