"""Buffers that share an offset because a kernel may write its result over an input that is not read afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import func, memref
from xdsl.ir import SSAValue

from msc.analysis.bytes import byte_size
from msc.analysis.kernel_signature import KernelSignature
from msc.dialects.loop import BufferSliceOp
from msc.lowering.cpu.buffer_types import root_buffer
from msc.lowering.cpu.memory.arena import Interval
from msc.lowering.cpu.memory.buffer_liveness import BufferLiveness, loops_around


@dataclass
class SharedPlaces:
    """Groups of buffers in one place, each group represented by its first buffer, with the group's lifetime.

    A pair (output, input) of `loop.in_place` is used if both are buffers of the same size, the input's group dies at
    the call, the output's begins there, and no other argument of the call shows the same bytes. A call in a loop is
    the last to read a buffer from outside the loop in one iteration only, so that both must be of the same iteration.
    """

    liveness: BufferLiveness
    kernels: Mapping[str, KernelSignature]
    live: dict[memref.AllocOp, Interval] = field(init=False)
    predecessor: dict[memref.AllocOp, memref.AllocOp] = field(default_factory=dict[memref.AllocOp, memref.AllocOp])
    _leader: dict[memref.AllocOp, memref.AllocOp] = field(init=False)
    _allocations: dict[SSAValue, memref.AllocOp | None] = field(default_factory=dict[SSAValue, "memref.AllocOp | None"])

    def __post_init__(self) -> None:
        self.live = dict(self.liveness.intervals)
        self._leader = {allocation: allocation for allocation in self.live}
        for step, op in enumerate(self.liveness.steps):
            if isinstance(op, func.CallOp):
                self._share(op, step)

    def leader(self, allocation: memref.AllocOp) -> memref.AllocOp:
        """The buffer that stands for the group of `allocation`."""
        while self._leader[allocation] is not allocation:
            allocation = self._leader[allocation]
        return allocation

    def _share(self, call: func.CallOp, step: int) -> None:
        signature = self.kernels.get(call.callee.string_value())
        if signature is None:
            return
        for pair in sorted(signature.in_place):
            output, input_ = (self._group(call.arguments[i]) for i in (signature.inputs + pair[0], pair[1]))
            if output is None or input_ is None or output is input_:
                continue
            if any(_is_part(call.arguments[i]) for i in (signature.inputs + pair[0], pair[1])):
                continue
            if self._fits(output, input_, call, step) and self._is_safe(call, signature, pair[0], input_):
                self.predecessor[output] = self._allocation(call.arguments[pair[1]]) or input_
                self._merge(output, input_)

    def _group(self, argument: SSAValue) -> memref.AllocOp | None:
        allocation = self._allocation(argument)
        return self.leader(allocation) if allocation is not None and allocation in self._leader else None

    def _allocation(self, argument: SSAValue) -> memref.AllocOp | None:
        """What allocates the buffer that an argument shows."""
        if argument not in self._allocations:
            owner = root_buffer(argument).owner
            self._allocations[argument] = owner if isinstance(owner, memref.AllocOp) else None
        return self._allocations[argument]

    def _fits(self, output: memref.AllocOp, input_: memref.AllocOp, call: func.CallOp, step: int) -> bool:
        if not self.live[input_].last == step == self.live[output].first:
            return False
        same_size = byte_size(output.memref) == byte_size(input_.memref)
        return same_size and not any(any(loops_around(call, op.parent_block())) for op in (output, input_))

    def _is_safe(self, call: func.CallOp, signature: KernelSignature, output: int, group: memref.AllocOp) -> bool:
        """Whether every argument with the group's bytes is an input that `output` may overwrite."""
        places = [i for i, argument in enumerate(call.arguments) if self._group(argument) is group]
        return all((output, i) in signature.in_place for i in places)

    def _merge(self, output: memref.AllocOp, input_: memref.AllocOp) -> None:
        self._leader[output] = input_
        self.live[input_] = Interval(self.live[input_].first, self.live.pop(output).last)


def _is_part(argument: SSAValue) -> bool:
    """Whether an argument is an entry of a buffer rather than the whole."""
    while isinstance(argument.owner, memref.ReinterpretCastOp):
        argument = argument.owner.source
    return isinstance(argument.owner, BufferSliceOp)
