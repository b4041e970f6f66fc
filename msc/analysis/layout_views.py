"""Operations at the border of a kernel, or of a member, that only say how its inputs and outputs lie in memory.

`ms.transpose` of a kernel's input (and of that `ms.windows`, `ms.slice`, `ms.reverse`, and `ms.reshape` which merges or
splits axes), and `ms.transpose`, `ms.pad` or `ms.reshape` (merging axes, or splitting padded ones) that make an output
of an inner value which is not an output itself, need no statement: reading and writing at other indices does what they
say; a padding has its border to write besides. So a kernel reads and writes any layout, blocked and padded ones too,
and the graph can choose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.analysis.per_kernel import per_kernel
from msc.dialects import gk
from msc.dialects.ms.axis_transforms import WindowsOp
from msc.dialects.ms.base import BasicOp
from msc.dialects.ms.movement import ReverseOp, SliceOp, TransposeOp
from msc.dialects.ms.padding import PadOp
from msc.dialects.ms.views import ReshapeOp
from msc.ir.typed import static_shape
from msc.poly.compute import affine_map, dims

INPUT_VIEWS = (TransposeOp, ReshapeOp, WindowsOp, SliceOp, ReverseOp)
"""What may be a view of a kernel's input."""


@dataclass(frozen=True)
class LayoutViews:
    """`operations` that are views; each viewed value, with the value that is stored and how an index goes there."""

    operations: frozenset[Operation]
    views: Mapping[SSAValue, tuple[SSAValue, AffineMap]]
    borders: Mapping[PadOp, tuple[SSAValue, AffineMap]]
    """Paddings that are views, with where the padded value is stored: their border is still to write."""

    @staticmethod
    @per_kernel
    def of(kernel: gk.KernelOp) -> LayoutViews:
        between = [op.value for op in kernel.materialized]
        yielded = [*kernel.terminator.values, *between]
        views: dict[SSAValue, tuple[SSAValue, AffineMap]] = {}
        ops: set[Operation] = set()
        borders: dict[PadOp, tuple[SSAValue, AffineMap]] = {}
        for op in kernel.body.block.ops:
            found = _input_view(op, views, yielded, between)
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
        return LayoutViews(frozenset(ops), views, borders)

    def stored(self, value: SSAValue) -> SSAValue:
        """The value whose array holds the elements of `value`."""
        return self.views[value][0] if value in self.views else _in_memory(value)

    def index_map(self, value: SSAValue) -> AffineMap | None:
        """How an index of `value` becomes one of its array; None for as it is."""
        return self.views[value][1] if value in self.views else None


def _in_memory(value: SSAValue) -> SSAValue:
    """The value that lies in memory where one member gives it to the next."""
    return value.owner.value if isinstance(value.owner, gk.MaterializeOp) else value


def _input_view(
    op: Operation,
    views: Mapping[SSAValue, tuple[SSAValue, AffineMap]],
    yielded: Sequence[SSAValue],
    between: Sequence[SSAValue],
) -> tuple[SSAValue, SSAValue, AffineMap] | None:
    """A view of an input, or of what lies `between` members: the viewed value, what it is of, and the index into it."""
    if not isinstance(op, INPUT_VIEWS) or op.results[0] in yielded:
        return None
    before = views.get(op.operands[0])
    stored = _in_memory(op.operands[0]) if before is None else before[0]
    if not isinstance(stored, BlockArgument) and stored not in between:
        return None
    step = _read_index(op)
    if step is None:
        return None
    return op.results[0], stored, step if before is None else before[1].compose(step)


def _read_index(op: TransposeOp | ReshapeOp | WindowsOp | SliceOp | ReverseOp) -> AffineMap | None:
    """The index into the operand for an index of the result; None where it is not affine."""
    match op:
        case TransposeOp():
            return _transposed_index(op)
        case WindowsOp():
            index = op.source_index()
            return affine_map(len(op.result_shape()), index)
        case SliceOp():
            return _sliced_index(op)
        case ReverseOp():
            return affine_map(len(op.result_shape()), op.source_index())
        case _:
            return _reshaped_index(static_shape(op.results[0]), static_shape(op.operands[0]))


def _output_place(
    op: Operation,
    views: Mapping[SSAValue, tuple[SSAValue, AffineMap]],
    ops: set[Operation],
    yielded: Sequence[SSAValue],
) -> tuple[SSAValue, AffineMap] | None:
    """Where the result of a view of a computed value is stored, if all of it is an output's."""
    if op in ops or not _is_output_view(op):
        return None
    source, result = op.operands[0], op.results[0]
    if not isinstance(source.owner, BasicOp | ReshapeOp) or source.owner in ops or source in yielded:
        return None
    if yielded.count(result) == 1 and not result.uses.get_length() > 1:
        return result, AffineMap.identity(len(static_shape(result)))
    return views.get(result) if result not in yielded and result.uses.get_length() == 1 else None


def _is_output_view(op: Operation) -> bool:
    """A transposition, a padding with a constant, or a reshape that merges axes; or splits them, of what is padded."""
    match op:
        case PadOp():
            return op.word("mode") == "constant"
        case ReshapeOp():
            groups = equal_groups(static_shape(op.operands[0]), static_shape(op.results[0]))
            merges = groups is not None and all(len(after) == 1 for _, after in groups)
            return merges or (groups is not None and isinstance(op.operands[0].owner, PadOp))
        case _:
            return isinstance(op, TransposeOp)


def _written_index(op: Operation) -> AffineMap:
    """The index into the result of a view for an index of its operand."""
    if isinstance(op, PadOp):
        amounts = op.amounts()
        return affine_map(len(amounts), [e + begin for e, (begin, _) in zip(dims(len(amounts)), amounts, strict=True)])
    if isinstance(op, ReshapeOp):
        moved = _reshaped_index(static_shape(op.operands[0]), static_shape(op.results[0]))
        assert moved is not None
        return moved
    assert isinstance(op, TransposeOp)
    d = dims(len(op.permutation()))
    return affine_map(len(d), [d[p] for p in op.permutation()])


def _sliced_index(op: SliceOp) -> AffineMap | None:
    places = [r for r in op.ranges() if r is not None]
    d = dims(len(op.result_shape()))
    if len(places) < len(d):
        return None
    return affine_map(len(d), [e * r.step + r.start for e, r in zip(d, places, strict=True)])


def _transposed_index(op: TransposeOp) -> AffineMap:
    perm = op.permutation()
    d = dims(len(perm))
    return affine_map(len(perm), [d[perm.index(k)] for k in range(len(perm))])


def _reshaped_index(here: Sequence[int], there: Sequence[int]) -> AffineMap | None:
    """The index into shape `there` for an index of shape `here`, of which it is a reshape.

    Neighbouring axes may become one, and one axis several; None for other reshapes.
    """
    d, exprs = dims(len(here)), dict[int, AffineExpr]()
    groups = equal_groups(here, there)
    if groups is None:
        return None
    for before, after in groups:
        linear: AffineExpr = d[before[0]]
        for axis in before[1:]:
            linear = linear * here[axis] + d[axis]
        exprs |= zip(after, _split(linear, [there[axis] for axis in after]), strict=True)
    return affine_map(len(here), [exprs.get(axis, AffineExpr.constant(0)) for axis in range(len(there))])


def equal_groups(a: Sequence[int], b: Sequence[int]) -> list[tuple[list[int], list[int]]] | None:
    """Neighbouring axes of two shapes that hold the same elements, one axis on one side; axes of size 1 in none."""
    left, right = ([axis for axis, size in enumerate(shape) if size != 1] for shape in (a, b))
    groups: list[tuple[list[int], list[int]]] = []
    while left and right:
        first, second = [left.pop(0)], [right.pop(0)]
        while (p := prod(a[k] for k in first)) != (q := prod(b[k] for k in second)):
            shorter, rest = (first, left) if p < q else (second, right)
            if not rest:
                return None
            shorter.append(rest.pop(0))
        if len(first) > 1 and len(second) > 1:
            return None
        groups.append((first, second))
    return groups


def _split(index: AffineExpr, sizes: Sequence[int]) -> list[AffineExpr]:
    """The index of an axis as indices of the axes that it merges."""
    exprs: list[AffineExpr] = []
    for k, size in enumerate(sizes):
        inner = prod(sizes[k + 1 :])
        expr = index // inner if inner > 1 else index
        exprs.append(expr % size if k > 0 else expr)
    return exprs
