"""The outermost loops of kernels' functions, over blocks of the tensors between them, as loops over the same blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from xdsl.dialects import func, memref
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.dialects.loop import ForOp, LoopKind
from msc.dialects.loop.accesses import AccessOp
from msc.lowering.cpu.outline.inlined import Inlined, NotOutlined
from msc.lowering.cpu.prefetch.next_panel import counts_from_zero, trips
from msc.poly.affine import LinearForm, bounds, linear_form


@dataclass(frozen=True)
class BlockLoops:
    """Of a kernel's function: the loops over blocks, outermost first, and what stands in front of them."""

    before: Sequence[Operation]
    loops: Sequence[ForOp]

    @classmethod
    def of(cls, function: func.FuncOp, depth: int) -> BlockLoops:
        """Raises NotOutlined where the function does not end with one loop after another, from 0 in steps of 1."""
        *before, last, _ = function.body.block.ops
        loops = [last]
        while len(loops) < depth:
            loops += loops[-1].body.block.ops if isinstance(loops[-1], ForOp) else [last]
        found = [loop for loop in loops if isinstance(loop, ForOp)]
        if len(found) != len(loops) or len(found) != depth or not all(map(counts_from_zero, found)):
            raise NotOutlined("the outermost loops run over no blocks")
        return cls(before, found)

    @property
    def counts(self) -> list[int]:
        """Iterations of each loop."""
        return list(map(trips, self.loops))

    @property
    def is_parallel(self) -> bool:
        """Whether threads share the outermost loop."""
        return self.loops[0].kind.data is LoopKind.PARALLEL

    def check(self, parameter: SSAValue, lengths: Sequence[tuple[int, int]]) -> None:
        """Raise NotOutlined where an access leaves the elements of an iteration.

        `lengths` are the axes that the loops run along, and how many elements they have.
        """
        for loop, (axis, length) in zip(self.loops, lengths, strict=True):
            size, rest = divmod(length, trips(loop))
            if rest or not all(_stays(use.operation, axis, loop, size) for use in parameter.uses):
                raise NotOutlined("a kernel accesses an intermediate outside its block")

    def inline(self, copy: Inlined, numbers: Sequence[SSAValue], counts: Sequence[int], block: Block) -> None:
        """Copy the iterations of the block with some numbers, of as many blocks as `counts`, to the end of `block`."""
        for loop, number, count in zip(self.loops, numbers, counts, strict=True):
            times = trips(loop) // count
            if times == 1:
                copy.values[loop.variable] = number
                continue
            first, label = AffineExpr.dimension(0) * times, loop.label.data if loop.label is not None else None
            part = ForOp(AffineMap(1, 0, (first,)), AffineMap(1, 0, (first + times,)), [number], label=label)
            part.variable.name_hint = loop.variable.name_hint
            copy.values[loop.variable] = part.variable
            block.add_op(part)
            block = part.body.block
        copy.block(self.loops[-1].body.block, block)


def common_counts(nests: Sequence[BlockLoops]) -> list[int]:
    """How many blocks all the loops can run over, the smallest ones: an iteration of some is one, others take several.

    Raises NotOutlined where that is one.
    """
    found = [gcd(*counts) for counts in zip(*(nest.counts for nest in nests), strict=True)]
    if any(nest.counts != found for nest in nests) and 1 in found:
        raise NotOutlined("the loops run over different blocks")
    return found


def _stays(op: Operation, axis: int, loop: ForOp, size: int) -> bool:
    """Whether an access is, along an axis, at one of the `size` elements of an iteration of the loop."""
    match op:
        case AccessOp():
            form = linear_form(op.map.results[axis])
            if form is None or loop.variable not in op.indices:
                return False
            number = list(op.indices).index(loop.variable)
            rest = LinearForm({d: c for d, c in form.coefficients.items() if d != number}, form.constant)
            return form.coefficients.get(number) == size and _is_below(op, axis, rest, size)
        case memref.LoadOp() | memref.StoreOp():
            return size == 1 and op.indices[axis] is loop.variable
        case _:
            return False


def _is_below(op: AccessOp, axis: int, index: LinearForm, size: int) -> bool:
    """Whether an index, with all lanes, is below `size` in all iterations of the loops inside."""
    ranges = {d: _iterations(op.indices[d]) for d in index.coefficients}
    known = {d: found for d, found in ranges.items() if found}
    if len(known) < len(ranges):
        return False
    low, high = bounds(index.expression(), known)
    return low >= 0 and high + op.lane_steps[axis] * (op.touched_lanes - 1) < size


def _iterations(value: SSAValue) -> range | None:
    loop = value.owner.parent_op() if isinstance(value, BlockArgument) else None
    return loop.constant_range if isinstance(loop, ForOp) else None
