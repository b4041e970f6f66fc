"""What kernels will cost with the schedules that they would get: the cost model, asked before anything is scheduled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from msc.analysis.bytes import bytes_of
from msc.analysis.constancy import is_constant
from msc.analysis.flops import flops
from msc.analysis.kernel_model import kernel_dependences, kernel_model
from msc.analysis.target import Target
from msc.cost.prediction import KernelCost
from msc.dialects.gk import KernelOp
from msc.schedule.known_loops import KnownLoops


@dataclass(frozen=True)
class KernelCycles:
    """The cycles of kernels on a target, each asked once; between two calls of one `weights` bytes pass by.

    The `loops` that this takes are kept.
    """

    target: Target
    weights: int
    loops: KnownLoops
    _known: dict[tuple[str, frozenset[int]], float] = field(default_factory=dict[tuple[str, frozenset[int]], float])

    @staticmethod
    def among(kernels: Sequence[KernelOp], target: Target) -> KernelCycles:
        """Of kernels that run one after the other, among them these."""
        constants = {v for kernel in kernels for v in kernel.inputs if is_constant(v)}
        return KernelCycles(target, sum(map(bytes_of, constants)), KnownLoops(target.machine, target.threads))

    def of(self, kernels: Sequence[KernelOp], most: float = inf) -> float:
        """All of them, one after the other; of what takes `most` and more, a part that takes as long."""
        total = 0.0
        for kernel in sorted(kernels, key=flops, reverse=True):
            if total >= most:
                break
            total += self._one(kernel)
        return total

    def _one(self, kernel: KernelOp) -> float:
        model = kernel_model(kernel)
        constants = frozenset(k for k, value in enumerate(kernel.inputs) if is_constant(value))
        key = model.structure, constants
        if key not in self._known:
            machine, threads = self.target.machine, self.target.threads
            tree = self.loops.decided(model, kernel_dependences(kernel)).tree
            cost = KernelCost(model, machine, far=dict.fromkeys(constants, self.weights))
            self._known[key] = cost.prediction(tree, threads).cycles
        return self._known[key]
