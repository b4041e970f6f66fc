"""Transpositions at the border of a kernel that only say how its inputs and outputs lie in memory.

`ms.transpose` of a kernel's input, and one that yields an inner value which is not yielded itself, need no statement: reading and
writing with permuted indices does what they say. So a kernel reads and writes any layout, and the graph can choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import BlockArgument, Operation, SSAValue

from msc.dialects import gk
from msc.dialects.ms.base import BasicOp
from msc.dialects.ms.movement import TransposeOp


@dataclass(frozen=True)
class LayoutViews:
    """`transpositions` that are views; each viewed value, with the value that is stored and how the index goes there.

    With permutation `p` of a value stored as `s`, element `i` of the value is element `(i[p[0]], i[p[1]], ...)` of `s`.
    """

    transpositions: frozenset[Operation]
    views: Mapping[SSAValue, tuple[SSAValue, tuple[int, ...]]]

    @classmethod
    def of(cls, kernel: gk.KernelOp) -> LayoutViews:
        yielded = list(kernel.terminator.values)
        views: dict[SSAValue, tuple[SSAValue, tuple[int, ...]]] = {}
        ops: set[Operation] = set()
        for op in kernel.body.block.ops:
            if not isinstance(op, TransposeOp):
                continue
            source, result, perm = op.operands[0], op.results[0], op.permutation()
            if isinstance(source, BlockArgument) and result not in yielded:
                views[result] = (source, _inverse(perm))
                ops.add(op)
            elif yielded.count(result) == 1 and isinstance(source.owner, BasicOp) and source not in yielded:
                if source not in views and not isinstance(source.owner, TransposeOp):
                    views[source] = (result, perm)
                    ops.add(op)
        return cls(frozenset(ops), views)

    def stored(self, value: SSAValue) -> SSAValue:
        """The value whose array holds the elements of `value`."""
        return self.views[value][0] if value in self.views else value

    def permutation(self, value: SSAValue) -> tuple[int, ...] | None:
        """How an index of `value` becomes one of its array; None for as it is."""
        return self.views[value][1] if value in self.views else None


def _inverse(perm: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(perm.index(k) for k in range(len(perm)))
