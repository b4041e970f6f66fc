"""What a chain of kernels costs, one after the other and as one kernel that runs a block of each at a time.

Both are compared as parts of a network: what the chain reads from elsewhere and writes lies as far away in both, as if
all that the chain touches passed between two accesses to it. What a kernel hands to the next one is half as far away
as what both of them touch: what it writes last the next one may read first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import Block, SSAValue

from msc.analysis.bytes import bytes_of, traffic
from msc.analysis.constancy import is_constant
from msc.analysis.kernel_model import kernel_dependences, kernel_model, output_positions
from msc.dialects.gk import KernelOp
from msc.graph_kernel.chains import Chain
from msc.graph_kernel.merged_kernels import merge
from msc.poly.schedule_tree.proof import violated
from msc.poly.schedule_tree.to_isl import to_isl
from msc.schedule.kernel_cycles import KernelCycles, arrays_of
from msc.schedule.sums.sum_order import roundings


@dataclass(frozen=True)
class ChainCost:
    """The predicted cycles of a chain, in a network whose constants have so many bytes."""

    chain: Chain
    cycles: KernelCycles
    constants: int

    @cached_property
    def apart(self) -> float:
        """Of the kernels one after the other."""
        return sum(self._apart(kernel, is_free=False) for kernel in self.chain.kernels)

    @cached_property
    def least(self) -> float:
        """Of the kernels one after the other, if moving their results took no time: one kernel takes no less."""
        return sum(self._apart(kernel, is_free=True) for kernel in self.chain.kernels)

    def may_gain(self, part: float) -> bool:
        """Whether one kernel can come to a part of the time of the kernels apart: if not, it need not be looked at."""
        return self.least < part * self.apart

    @cached_property
    def merged(self) -> float:
        """Of one kernel in the place of all."""
        made, values = self._made
        return self.cycles.one(made, self._far(made, values))

    @cached_property
    def adds_alike(self) -> bool:
        """Whether one kernel adds up each sum in the order of the kernels apart, of which the first one alone sums."""
        first, (made, _) = self.chain.kernels[0], self._made
        return roundings(kernel_model(first), self.cycles.tree(first)) == roundings(
            kernel_model(made), self.cycles.tree(made)
        )

    @cached_property
    def is_legal(self) -> bool:
        """Whether the blocks of all kernels can run in turn: no loop reads what a later iteration writes."""
        made, _ = self._made
        schedule = to_isl(kernel_model(made), self.cycles.tree(made)).schedule
        return violated(schedule, kernel_dependences(made)).is_empty()

    @cached_property
    def _made(self) -> tuple[KernelOp, Sequence[SSAValue]]:
        """One kernel in the place of copies of all, and the values that it reads."""
        values = list(dict.fromkeys(v for kernel in self.chain.kernels for v in kernel.inputs))
        block = Block(arg_types=[value.type for value in values])
        known: dict[SSAValue, SSAValue] = dict(zip(values, block.args, strict=True))
        copies = list[KernelOp]()
        for kernel in self.chain.kernels:
            copies.append(kernel.clone(known))
            block.add_op(copies[-1])
            known |= zip(kernel.results, copies[-1].results, strict=True)
        made = merge(copies, [[axis] for axis in self.chain.axes])
        values_of: dict[SSAValue, SSAValue] = dict(zip(block.args, values, strict=True))
        return made, [values_of[value] for value in made.inputs]

    def _apart(self, kernel: KernelOp, *, is_free: bool) -> float:
        free = arrays_of(kernel, self._between) if is_free else frozenset[int]()
        return self.cycles.one(kernel, self._far(kernel, list(kernel.inputs)), free)

    @cached_property
    def _between(self) -> set[SSAValue]:
        return {kernel.results[0] for kernel in self.chain.kernels[:-1]}

    @cached_property
    def _all(self) -> int:
        """Bytes of all that the chain touches."""
        kernels = self.chain.kernels
        touched = dict.fromkeys(value for kernel in kernels for value in (*kernel.inputs, *kernel.results))
        return sum(map(bytes_of, touched))

    def _far(self, kernel: KernelOp, values: Sequence[SSAValue]) -> dict[int, int]:
        """The bytes that pass between two accesses to the arrays of a kernel, beside what it touches itself."""
        others = max(0, self._all - traffic(kernel))
        far = dict.fromkeys(output_positions(kernel), others)
        for k, value in enumerate(values):
            if value in self._between and isinstance(value.owner, KernelOp):
                far[k] = max(0, traffic(value.owner) - traffic(kernel)) // 2
            else:
                far[k] = max(others, self.constants if is_constant(value) else 0)
        return far
