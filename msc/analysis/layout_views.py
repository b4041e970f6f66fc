"""Operations at the border of a kernel that only say how its inputs and outputs lie in memory.

`ms.transpose` of a kernel's input (and `ms.reshape` of that which merges neighbouring axes), and `ms.transpose` or
`ms.pad` that make an output of an inner value which is not an output itself, need no statement: reading and writing at
other indices does what they say; a padding has its border to write besides. So a kernel reads and writes any layout,
blocked and padded ones too, and the graph can choose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.dialects import gk
from msc.dialects.ms.base import BasicOp
from msc.dialects.ms.movement import TransposeOp
from msc.dialects.ms.padding import PadOp
from msc.dialects.ms.views import ReshapeOp
from msc.ir.typed import static_shape
from msc.poly.compute import affine_map, dims


@dataclass(frozen=True)
class LayoutViews:
    """`operations` that are views; each viewed value, with the value that is stored and how an index goes there."""

    operations: frozenset[Operation]
    views: Mapping[SSAValue, tuple[SSAValue, AffineMap]]
    borders: Mapping[PadOp, tuple[SSAValue, AffineMap]]
    """Paddings that are views, with where the padded value is stored: their border is still to write."""

    @classmethod
    def of(cls, kernel: gk.KernelOp) -> LayoutViews:
        yielded = list(kernel.terminator.values)
        views: dict[SSAValue, tuple[SSAValue, AffineMap]] = {}
        ops: set[Operation] = set()
        borders: dict[PadOp, tuple[SSAValue, AffineMap]] = {}
        for op in kernel.body.block.ops:
            found = _input_view(op, views, yielded)
            if found is not None:
                views[found[0]] = found[1:]
                ops.add(op)
        for op in reversed(list(kernel.body.block.ops)):
            place = _output_place(op, views, ops, yielded)
            if place is not None:
                ops.add(op)
                views[op.operands[0]] = (place[0], place[1].compose(_written_index(op)))
                if isinstance(op, PadOp):
                    borders[op] = place
        return cls(frozenset(ops), views, borders)

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


def _output_place(
    op: Operation,
    views: Mapping[SSAValue, tuple[SSAValue, AffineMap]],
    ops: set[Operation],
    yielded: Sequence[SSAValue],
) -> tuple[SSAValue, AffineMap] | None:
    """Where the result of a transposition or padding of a computed value is stored, if all of it is an output's."""
    if not isinstance(op, TransposeOp | PadOp) or op in ops:
        return None
    if isinstance(op, PadOp) and op.word("mode") != "constant":
        return None
    source, result = op.operands[0], op.results[0]
    if not isinstance(source.owner, BasicOp) or source.owner in ops or source in yielded:
        return None
    if yielded.count(result) == 1 and not result.uses.get_length() > 1:
        return result, AffineMap.identity(len(static_shape(result)))
    return views.get(result) if result not in yielded and result.uses.get_length() == 1 else None


def _written_index(op: Operation) -> AffineMap:
    """The index into the result of a transposition or padding for an index of its operand."""
    if isinstance(op, PadOp):
        amounts = op.amounts()
        return affine_map(len(amounts), [e + begin for e, (begin, _) in zip(dims(len(amounts)), amounts, strict=True)])
    assert isinstance(op, TransposeOp)
    d = dims(len(op.permutation()))
    return affine_map(len(d), [d[p] for p in op.permutation()])


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
