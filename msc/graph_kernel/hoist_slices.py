"""Pass `hoist-slices`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from msc.analysis.kernels import kernels_in
from msc.analysis.properties import KERNELS, UNSCHEDULED
from msc.dialects.gk import KernelOp, KernelYieldOp
from msc.dialects.ms.movement import SliceOp
from msc.dialects.ms.shapes import Shape
from msc.dialects.ms.slices import ExtractSliceOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.emitter import Emitter
from msc.graph.graph_loops import index, number_of
from msc.ir.contracts import Contract
from msc.ir.locations import set_location


@dataclass(frozen=True)
class HoistSlices(ModulePass):
    """Pass kernels the address of the slice that they read of a tensor.

    Takes: kernels with static shapes. Gives: where several kernels read different slices of one tensor, as the steps of
    an unrolled recurrence do, and each slice is contiguous, an `ms.extract_slice` in front of the kernel in place of an
    `ms.slice` in it. Kernels that differ in the place of the slice alone then share a schedule and a function.
    Keeps: the meaning, bit by bit; kernels in loops.
    """

    name = "hoist-slices"
    contract = Contract(
        requires=(KERNELS, UNSCHEDULED),
        runs_after={
            "cluster-kernels": "it decides which slices kernels read",
            "compute-at-consumers": "a block is a part of a whole input",
        },
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if has_open_sizes(op):
            return
        parts: dict[SSAValue, list[_Part]] = {}
        for kernel in kernels_in(op):
            if isinstance(kernel.parent_op(), FuncOp):
                for part in _parts(kernel):
                    parts.setdefault(kernel.operands[part.argument], []).append(part)
        for same in parts.values():
            if len({part.number for part in same}) > 1:
                for part in same:
                    part.hoist()


@dataclass(frozen=True)
class _Part:
    """What a kernel reads of an argument: part `number` of `count` equal ones, as a tensor of `shape`."""

    kernel: KernelOp
    argument: int
    count: int
    number: int
    shape: Shape

    def hoist(self) -> None:
        """Pass the kernel that part."""
        body, emit = self.kernel.body.block, Emitter(self.kernel)
        whole = emit.reshape(self.kernel.operands[self.argument], (self.count, *self.shape))
        part = emit(ExtractSliceOp, whole, number_of(emit, index(emit, self.number)))
        for op in emit.ops:
            set_location(op, self.kernel.location)
        Rewriter.insert_op(emit.ops, InsertPoint.before(self.kernel))
        old, new = body.args[self.argument], body.insert_arg(part.type, self.argument)
        new.name_hint = old.name_hint
        for use in list(old.uses):
            use.operation.results[0].replace_all_uses_with(new)
            body.erase_op(use.operation)
        body.erase_arg(old)
        self.kernel.operands[self.argument] = part


def _parts(kernel: KernelOp) -> Iterator[_Part]:
    """The arguments of which a kernel reads one contiguous slice; none of a kernel that runs block by block."""
    if kernel.materialized:
        return
    for number, argument in enumerate(kernel.body.block.args):
        readers = [use.operation for use in argument.uses]
        slices = [op for op in readers if isinstance(op, SliceOp)]
        if not slices or len(slices) < len(readers) or any(s.ranges() != slices[0].ranges() for s in slices):
            continue
        place = _place(slices[0])
        if place is not None and not any(
            isinstance(use.operation, KernelYieldOp) for s in slices for use in s.result.uses
        ):
            yield _Part(kernel, number, *place, slices[0].result_shape())


def _place(op: SliceOp) -> tuple[int, int] | None:
    """How many equal parts a contiguous slice divides its operand into, and which one it is; None if it does not."""
    shape, places = op.shape(0), op.ranges()
    axis = next((k for k, size in enumerate(shape) if size > 1), None)
    if axis is None or any(places[k] != range(shape[k]) for k in range(len(shape)) if k != axis):
        return None
    taken = places[axis]
    if not taken or taken.step != 1 or len(taken) == shape[axis]:
        return None
    count, start = len(taken), taken.start
    return None if shape[axis] % count or start % count else (shape[axis] // count, start // count)
