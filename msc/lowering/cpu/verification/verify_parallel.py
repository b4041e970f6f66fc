"""Pass `verify-parallel`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr
from xdsl.passes import ModulePass

from msc.analysis.kernel_signature import KernelSignature
from msc.dialects import loop
from msc.ir.locations import source_location
from msc.ir.typed import static_shape
from msc.lowering.cpu.buffer_types import root_buffer
from msc.lowering.cpu.verification.verify_bounds import Nest, within_loop
from msc.poly.access_bounds import Undecided, VectorAccess
from msc.poly.independence import Touch, are_disjoint, conflict
from msc.support.diagnostics import Diagnostic, raise_any


@dataclass(frozen=True)
class VerifyParallel(ModulePass):
    """Prove that the iterations of a parallel loop do not disturb each other. Changes nothing.

    Threads run them in any order and at the same time: no iteration may write an element of a buffer from outside that
    another one reads or writes. Buffers that a kernel may be given as one (`loop.in_place`) are one. Ranges settle most
    loops, isl decides the rest exactly; an index that is data is any number of its range. What is not proved is
    refused: MSC0404, with two iterations that touch one element.
    """

    name = "verify-parallel"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check every kernel; all that is wrong is reported at once."""
        raise_any(parallel_diagnostics(op))


def parallel_diagnostics(module: ModuleOp) -> Iterator[Diagnostic]:
    """An error for every parallel loop whose iterations may disturb each other."""
    for function in module.body.block.ops:
        if isinstance(function, func.FuncOp):
            yield from _Search(_shared(function)).check(function.body.block.ops, Nest.of(function))


def _shared(function: func.FuncOp) -> Mapping[SSAValue, SSAValue]:
    """The input that an output may overwrite, by the output."""
    signature = KernelSignature.of(function)
    return {function.args[signature.inputs + output]: function.args[number] for output, number in signature.in_place}


@dataclass(frozen=True)
class _Search:
    shared: Mapping[SSAValue, SSAValue]

    def check(self, ops: Iterable[Operation], nest: Nest) -> Iterator[Diagnostic]:
        """Look for parallel loops among operations."""
        for op in ops:
            nest = _defining(op, nest)
            match op:
                case loop.ForOp() if op.kind.data is loop.LoopKind.PARALLEL:
                    yield from self._check_loop(op, nest)
                case loop.ForOp():
                    yield from self.check(op.body.block.ops, within_loop(op, nest))
                case _:
                    for region in op.regions:
                        for block in region.blocks:
                            yield from self.check(block.ops, nest)

    def _check_loop(self, op: loop.ForOp, nest: Nest) -> Iterator[Diagnostic]:
        inner = within_loop(op, nest)
        place = len(inner.names) - 1
        touches: dict[SSAValue, list[Touch]] = {}
        for buffer, touch in _touches(op.body.block.ops, inner):
            root = root_buffer(buffer)
            if root is not buffer:  # a view: its indices are not those of the buffer, of which any element may be meant
                touch = replace(touch, access=VectorAccess((), (), (), 1))
            if not _is_inside(root, op):
                touches.setdefault(self.shared.get(root, root), []).append(touch)
        for buffer, found in touches.items():
            if any(t.is_write for t in found) and not are_disjoint(found, place):
                yield from _decided(op, buffer, found, place)


def _decided(op: loop.ForOp, buffer: SSAValue, touches: Sequence[Touch], place: int) -> Iterator[Diagnostic]:
    name = f"%{buffer.name_hint}" if buffer.name_hint else "a buffer"
    try:
        pair = conflict(touches, place)
    except Undecided:
        message = f"that iterations of a parallel loop access different elements of {name} is too hard to prove"
        yield _wrong(op, message)
        return
    if pair is not None:
        yield _wrong(
            op, f"iterations {pair[0]} and {pair[1]} of a parallel loop access one element of {name}, and one writes it"
        )


def _wrong(op: loop.ForOp, message: str) -> Diagnostic:
    help_ = "remove `parallel`: the loop then runs in order"
    return Diagnostic("MSC0404", f"{VerifyParallel.name}: {message}", source_location(op), help=help_)


def _touches(ops: Iterable[Operation], nest: Nest) -> Iterator[tuple[SSAValue, Touch]]:
    """Every access below a loop."""
    for op in ops:
        nest = _defining(op, nest)
        match op:
            case loop.ForOp():
                yield from _touches(op.body.block.ops, within_loop(op, nest))
            case loop.LoadOp() | loop.StoreOp():
                nest = nest.knowing(op.indices)
                index = nest.expressions(op.map.results, op.indices)
                access = VectorAccess(index, static_shape(op.buffer), tuple(op.lane_steps), op.touched_lanes)
                yield op.buffer, Touch(access, nest.loops, nest.ranges, isinstance(op, loop.StoreOp))
            case memref.LoadOp() | memref.StoreOp():
                nest = nest.knowing(op.indices)
                index = tuple(nest.known[value] for value in op.indices)
                access = VectorAccess(index, static_shape(op.memref), (0,) * len(index), 1)
                yield op.memref, Touch(access, nest.loops, nest.ranges, isinstance(op, memref.StoreOp))
            case loop.CallRowsOp():  # rows, of which any element may be meant
                anything = VectorAccess((), (), (), 1)
                for k, buffer in enumerate(op.buffers):
                    yield buffer, Touch(anything, nest.loops, nest.ranges, k >= len(op.read))
            case _:
                for region in op.regions:
                    for block in region.blocks:
                        yield from _touches(block.ops, nest)


def _defining(op: Operation, nest: Nest) -> Nest:
    """The nest that knows what an operation computes of indices."""
    match op:
        case loop.ApplyOp():
            nest = nest.knowing(op.values)
            return nest.defining(op.result, nest.expressions(op.map.data.results, op.values)[0])
        case arith.ConstantOp() if isinstance(op.result.type, IndexType) and isinstance(op.value, IntegerAttr):
            return nest.defining(op.result, AffineConstantExpr(op.value.value.data))
        case _:
            return nest


def _is_inside(buffer: SSAValue, op: loop.ForOp) -> bool:
    """Whether a buffer is made anew in each iteration."""
    inner = buffer.owner if isinstance(buffer.owner, Operation) else buffer.owner.parent_op()
    while inner is not None and inner is not op:
        inner = inner.parent_op()
    return inner is op
