"""Buffers that share an offset because a kernel may write its result over an input that is not read afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce

from xdsl.dialects import func, memref
from xdsl.ir import Operation, SSAValue

from msc.analysis.bytes import byte_size
from msc.analysis.kernel_signature import KernelSignature
from msc.dialects.loop import BufferSliceOp
from msc.lowering.cpu.buffer_types import root_buffer
from msc.lowering.cpu.memory.arena import Distances, Interval
from msc.lowering.cpu.memory.buffer_liveness import BufferLiveness, loops_around
from msc.lowering.cpu.memory.trailing import trailing_distances, turn_around


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

    def overlaps(self, functions: Mapping[str, func.FuncOp]) -> dict[tuple[memref.AllocOp, memref.AllocOp], Distances]:
        """Pairs of groups, an output and an input that dies at its call, with the distances at which they may overlap.

        Kernels whose result is larger than such an input are turned around.
        """
        pairs = [pair for step, op in enumerate(self.liveness.steps) for pair in self._pairs_at(op, step)]
        grows = {name for name, (output, source), _ in pairs if byte_size(output.memref) > byte_size(source.memref)}
        for name in sorted(grows):
            turn_around(functions[name])
        found = dict[tuple[memref.AllocOp, memref.AllocOp], Distances]()
        for name, pair, places in pairs:
            distances = [trailing_distances(functions[name], *each) for each in places]
            if None not in distances:
                found[pair] = reduce(Distances.both, filter(None, distances))
        return found

    def _pairs_at(
        self, call: Operation, step: int
    ) -> Iterator[tuple[str, tuple[memref.AllocOp, memref.AllocOp], list[tuple[int, int]]]]:
        """The kernel, an output and an input, and the positions of both among the arguments."""
        name = call.callee.string_value() if isinstance(call, func.CallOp) else ""
        if not isinstance(call, func.CallOp) or name not in self.kernels:
            return
        groups, inputs = [self._group(argument) for argument in call.arguments], self.kernels[name].inputs
        for output in self.kernels[name].output_range:
            target = groups[output]
            for source in dict.fromkeys(groups[:inputs]):
                places = [(output, i) for i, group in enumerate(groups) if group is source]
                if source is None or target is None or groups.count(target) > 1 or places[-1][1] >= inputs:
                    continue
                is_whole = not any(is_part(call.arguments[i]) for i in (output, *(i for _, i in places)))
                if is_whole and self._ends_here(target, source, call, step):
                    yield name, (target, source), places

    def _share(self, call: func.CallOp, step: int) -> None:
        signature = self.kernels.get(call.callee.string_value())
        if signature is None:
            return
        for pair in sorted(signature.in_place):
            output, input_ = (self._group(call.arguments[i]) for i in (signature.inputs + pair[0], pair[1]))
            if output is None or input_ is None or output is input_:
                continue
            if any(is_part(call.arguments[i]) for i in (signature.inputs + pair[0], pair[1])):
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
        return byte_size(output.memref) == byte_size(input_.memref) and self._ends_here(output, input_, call, step)

    def _ends_here(self, output: memref.AllocOp, input_: memref.AllocOp, call: func.CallOp, step: int) -> bool:
        """Whether a call is the last to touch the input and the first to touch the output, of the same iteration."""
        if not self.live[input_].last == step == self.live[output].first:
            return False
        return not any(any(loops_around(call, op.parent_block())) for op in (output, input_))

    def _is_safe(self, call: func.CallOp, signature: KernelSignature, output: int, group: memref.AllocOp) -> bool:
        """Whether every argument with the group's bytes is an input that `output` may overwrite."""
        places = [i for i, argument in enumerate(call.arguments) if self._group(argument) is group]
        return all((output, i) in signature.in_place for i in places)

    def _merge(self, output: memref.AllocOp, input_: memref.AllocOp) -> None:
        self._leader[output] = input_
        self.live[input_] = Interval(self.live[input_].first, self.live.pop(output).last)


def is_part(argument: SSAValue) -> bool:
    """Whether an argument is an entry of a buffer rather than the whole."""
    while isinstance(argument.owner, memref.ReinterpretCastOp):
        argument = argument.owner.source
    return isinstance(argument.owner, BufferSliceOp)
