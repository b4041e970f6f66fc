"""Pass `verify-memory-plan`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.bytes import byte_size
from msc.analysis.index_ranges import runs
from msc.analysis.kernel_signature import kernel_signatures
from msc.analysis.properties import BUFFERS
from msc.analysis.target import target_of
from msc.dialects.ms.attributes import MS_ROLE
from msc.ir.contracts import Contract
from msc.ir.control_flow import integer_constant
from msc.ir.donation import STATE
from msc.ir.entry import entries
from msc.lowering.cpu.buffer_types import root_buffer
from msc.lowering.cpu.failure import refuse
from msc.lowering.cpu.memory.compact_open_tensors import check_compact, functions_of
from msc.lowering.cpu.memory.in_place import is_part
from msc.lowering.cpu.memory.trailing import trailing_distances
from msc.support.diagnostics import MscError


@dataclass(frozen=True)
class VerifyMemoryPlan(ModulePass):
    """Check that no live buffer is overwritten, by following the bytes.

    The program is run on an abstract memory that knows, for every buffer, whether its bytes are still what was last
    written into it: writing a buffer, or an entry of it, spoils all others that overlap it. Checked at every step:
    what is read is whole; outputs and scratch of a call overlap nothing else of the call, except where the kernel
    allows it (`loop.in_place`) or, on microcontrollers, reads an input before it writes there; weights are never
    written, nor inputs but the states that the function updates; every view lies in its space, at a multiple of the
    machine's `align`. Branches are both followed; after them only what both left whole is.
    What is `ms.compact` is so in the entry function and in all kernels that take it.
    A loop's body is followed from what its first and its later iterations find. Changes nothing. Raises MSC0404 at
    the first operation that breaks a rule.
    """

    name = "verify-memory-plan"
    contract = Contract(requires=(BUFFERS,))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check the entry functions."""
        for entry in entries(op):
            _Run(op, entry).follow(entry.body.block)
            check_compact(entry, functions_of(op))


@dataclass(frozen=True)
class _Place:
    """Bytes of a space: the workspace, the weights, or a buffer that is an argument."""

    space: SSAValue
    offset: int
    bytes: int

    def overlaps(self, other: _Place) -> bool:
        if self.space is not other.space or not self.bytes or not other.bytes:
            return False
        return self.offset < other.offset + other.bytes and other.offset < self.offset + self.bytes


class _Run:
    def __init__(self, module: ModuleOp, function: func.FuncOp) -> None:
        self._kernels, self._functions = kernel_signatures(module), functions_of(module)
        self._machine = target_of(module).machine
        arguments = function.body.block.args
        self._roles: dict[SSAValue, str] = dict(zip(arguments, _roles(function), strict=True))
        buffers = [a for a in arguments if self._roles[a] != "size"]
        self._places: dict[SSAValue, _Place] = {a: _Place(a, 0, byte_size(a)) for a in buffers}
        self._whole: set[SSAValue] = {a for a, role in self._roles.items() if role in ("input", STATE)}

    def follow(self, block: Block) -> None:
        """Run the operations of a block."""
        for op in block.ops:
            match op:
                case memref.ViewOp():
                    self._view(op)
                case func.CallOp():
                    self._call(op)
                case memref.CopyOp():
                    self._access(op, reads=[op.source], writes=[op.destination])
                case memref.LoadOp():
                    self._access(op, reads=[op.memref], writes=[])
                case memref.StoreOp():
                    self._access(op, reads=[], writes=[op.memref])
                case scf.IfOp():
                    self._branches(op.regions)
                case scf.ForOp():
                    self._loop([op.body], runs=runs(op))
                case scf.WhileOp():
                    self._loop([op.before_region, op.after_region])
                case _:
                    pass

    def _view(self, op: memref.ViewOp) -> None:
        offset = integer_constant(op.byte_shift)
        if offset is None:
            raise self._error(op, "a view's offset is not a constant")
        place = _Place(op.source, offset, byte_size(op.result))
        space = byte_size(op.source)
        if offset < 0 or offset % self._machine.align or offset + place.bytes > space:
            raise self._error(op, f"bytes {offset} to {offset + place.bytes} are misaligned or outside of {space}")
        self._places[op.result] = place

    def _call(self, op: func.CallOp) -> None:
        name = op.callee.string_value()
        signature = self._kernels.get(name)
        if signature is None:
            raise self._error(op, f"@{name} is not a kernel's function")
        inputs, written = op.arguments[: signature.inputs], op.arguments[signature.inputs : len(signature.types)]
        for j, target in enumerate(written):
            for i, source in enumerate(inputs):
                if not self._trails(name, op, signature.inputs + j, i):
                    self._check_apart(op, target, source, may_coincide=(j, i) in signature.in_place)
            for other in written[:j]:
                self._check_apart(op, target, other, may_coincide=False)
        self._access(op, inputs, written)

    def _trails(self, name: str, op: func.CallOp, output: int, source: int) -> bool:
        """Whether an output lies so beside an input that the kernel writes where it has read."""
        a, b = self._place(op.arguments[output]), self._place(op.arguments[source])
        if not self._machine.is_bare or not a.overlaps(b) or any(is_part(op.arguments[i]) for i in (output, source)):
            return False
        distances = trailing_distances(self._functions[name], output, source)
        return distances is not None and b.offset - a.offset in distances

    def _check_apart(self, op: Operation, written: SSAValue, other: SSAValue, *, may_coincide: bool) -> None:
        a, b = self._place(written), self._place(other)
        if a.overlaps(b) and not (may_coincide and a == b):
            raise self._error(op, f"{_name(written)} is written over {_name(other)}, which the call uses too")

    def _access(self, op: Operation, reads: Sequence[SSAValue], writes: Sequence[SSAValue]) -> None:
        for buffer in reads:
            if not self._is_whole(root_buffer(buffer)):
                raise self._error(op, f"{_name(buffer)} is read, but its bytes are undefined or overwritten")
        for buffer in writes:
            self._write(op, root_buffer(buffer))

    def _is_whole(self, root: SSAValue) -> bool:
        place = self._places.get(root)
        return root in self._whole or (place is not None and self._roles.get(place.space) == "weights")

    def _write(self, op: Operation, root: SSAValue) -> None:
        place = self._place(root)
        if self._roles.get(place.space) in ("input", "weights"):
            raise self._error(op, f"{_name(root)} is written, but may only be read")
        self._whole -= {other for other in self._whole if self._places[other].overlaps(place)}
        self._whole.add(root)

    def _branches(self, regions: Sequence[Region]) -> None:
        """Follow each region from here; what is whole after all of them is whole."""
        before = self._whole
        after: list[set[SSAValue]] = []
        for region in regions:
            self._whole = set(before)
            self._follow_region(region)
            after.append(self._whole)
        self._whole = {buffer for buffer in after[0] if all(buffer in whole for whole in after)}

    def _loop(self, regions: Sequence[Region], *, runs: bool = False) -> None:
        """Follow an iteration from here, then one from what the first and the later iterations find alike.

        After a loop that `runs` once at least, what an iteration leaves whole is whole.
        """
        before = set(self._whole)
        for region in regions:
            self._follow_region(region)
        self._whole &= before
        always = set(self._whole)
        self._follow_region(regions[0])
        if len(regions) == 1:
            if not runs:
                self._whole &= always
            return
        at_exit = set(self._whole)
        self._follow_region(regions[1])
        self._whole = at_exit

    def _follow_region(self, region: Region) -> None:
        for block in region.blocks:
            self.follow(block)

    def _place(self, buffer: SSAValue) -> _Place:
        return self._places[root_buffer(buffer)]

    def _error(self, op: Operation, reason: str) -> MscError:
        return refuse(VerifyMemoryPlan.name, op, reason)


def _roles(function: func.FuncOp) -> list[str]:
    """What each argument is; an input where nothing is said."""
    given = [attributes.data.get(MS_ROLE) for attributes in function.arg_attrs or ()]
    roles = [role.data if isinstance(role, StringAttr) else "input" for role in given]
    return roles or ["input"] * len(function.body.block.args)


def _name(buffer: SSAValue) -> str:
    return f"%{buffer.name_hint}" if buffer.name_hint else f"a {buffer.type}"
