"""Transpositions at the border of a kernel that only say how its inputs and outputs lie in memory.

`ms.transpose` of a kernel's input (and `ms.reshape` of that which merges neighbouring axes), and an `ms.transpose`
that yields an inner value
which is not yielded itself, need no statement: reading and writing at other indices does what they say. So a
kernel reads and writes any layout, blocked ones too, and the graph can choose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.dialects import gk
from msc.dialects.ms.base import BasicOp
from msc.dialects.ms.movement import TransposeOp
from msc.dialects.ms.views import ReshapeOp
from msc.ir.typed import static_shape
from msc.poly.compute import affine_map, dims


@dataclass(frozen=True)
class LayoutViews:
    """`operations` that are views; each viewed value, with the value that is stored and how an index goes there."""

    operations: frozenset[Operation]
    views: Mapping[SSAValue, tuple[SSAValue, AffineMap]]

    @classmethod
    def of(cls, kernel: gk.KernelOp) -> LayoutViews:
        yielded = list(kernel.terminator.values)
        views: dict[SSAValue, tuple[SSAValue, AffineMap]] = {}
        ops: set[Operation] = set()
        for op in kernel.body.block.ops:
            found = _input_view(op, views, yielded) or _output_view(op, views, yielded)
            if found is not None:
                views[found[0]] = found[1:]
                ops.add(op)
        return cls(frozenset(ops), views)

    def stored(self, value: SSAValue) -> SSAValue:
        """The value whose array holds the elements of `value`."""
        return self.views[value][0] if value in self.views else value

    def index_map(self, value: SSAValue) -> AffineMap | None:
        """How an index of `value` becomes one of its array; None for as it is."""
        return self.views[value][1] if value in self.views else None


def _input_view(
    op: Operation, views: Mapping[SSAValue, tuple[SSAValue, AffineMap]], yielded: Sequence[SSAValue]
) -> tuple[SSAValue, SSAValue, AffineMap] | None:
    """A view of an input: the viewed value, the input, and the index into it."""
    if not isinstance(op, TransposeOp | ReshapeOp) or op.results[0] in yielded:
        return None
    source = op.operands[0]
    before = views.get(source)
    if before is None and not isinstance(source, BlockArgument):
        return None
    if before is not None and not isinstance(before[0], BlockArgument):
        return None
    step = _transposed_index(op) if isinstance(op, TransposeOp) else _merged_index(op)
    if step is None:
        return None
    stored, map_ = before if before is not None else (source, AffineMap.identity(step.num_dims))
    return op.results[0], stored, step if before is None else map_.compose(step)


def _output_view(
    op: Operation, views: Mapping[SSAValue, tuple[SSAValue, AffineMap]], yielded: Sequence[SSAValue]
) -> tuple[SSAValue, SSAValue, AffineMap] | None:
    """A yielded transposition of a computed value: the computed value, the yielded one, and the index into it."""
    if not isinstance(op, TransposeOp) or yielded.count(op.results[0]) != 1:
        return None
    source = op.operands[0]
    computed = isinstance(source.owner, BasicOp) and not isinstance(source.owner, TransposeOp)
    if not computed or source in yielded or source in views:
        return None
    d = dims(len(op.permutation()))
    return source, op.results[0], affine_map(len(d), [d[p] for p in op.permutation()])


def _transposed_index(op: TransposeOp) -> AffineMap:
    perm = op.permutation()
    d = dims(len(perm))
    return affine_map(len(perm), [d[perm.index(k)] for k in range(len(perm))])


def _merged_index(op: ReshapeOp) -> AffineMap | None:
    """The index into the source where each axis of the result is some neighbouring axes of it.

    None for other reshapes.
    """
    source, result = static_shape(op.operands[0]), static_shape(op.results[0])
    d, exprs, axis = dims(len(result)), list[AffineExpr](), 0
    for k, size in enumerate(result):
        group: list[int] = []
        product = 1
        while axis < len(source) and (product < size or (product == size and source[axis] == 1 and size == 1)):
            group.append(source[axis])
            product *= source[axis]
            axis += 1
        if product != size:
            return None
        exprs += _split(d[k], group)
    return affine_map(len(result), exprs) if axis == len(source) else None


def _split(index: AffineExpr, sizes: Sequence[int]) -> list[AffineExpr]:
    """The index of an axis as indices of the axes that it merges."""
    exprs: list[AffineExpr] = []
    for k, size in enumerate(sizes):
        inner = 1
        for later in sizes[k + 1 :]:
            inner *= later
        expr = index // inner if inner > 1 else index
        exprs.append(expr % size if k > 0 else expr)
    return exprs
