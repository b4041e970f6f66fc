"""Pass `fuse-blocks`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.bytes import stack_bytes
from msc.analysis.kernel_signature import KernelSignature, kernel_signatures
from msc.analysis.properties import BUFFERS, UNPLACED, VECTORS
from msc.analysis.target import target_of
from msc.ir.contracts import Contract
from msc.ir.entry import entries
from msc.ir.typed import memref_type
from msc.lowering.cpu.buffer_types import root_buffer
from msc.lowering.cpu.memory.buffer_liveness import STEPS, users_through_views
from msc.lowering.cpu.outline.block_function import BlockFunction, CallChain, blocked_axes
from msc.lowering.cpu.outline.inlined import NotOutlined
from msc.lowering.cpu.outline.kernel_functions import KernelFunctions
from msc.targets.machine import Machine


@dataclass(frozen=True)
class FuseBlocks(ModulePass):
    """Make one function of kernels that are computed at a loop of their consumer.

    Before: `bufferize`'s @main with calls of kernels' functions, some of which say (`loop.blocks`) along which axes
    of their result the next call reads it block by block. After: where the outermost loops of each of these functions
    run along these axes, and an iteration accesses its own elements of the intermediate only, one call stands for
    all. Its function has these loops once, around what stood in them, and of each intermediate one block exists at
    a time: for each thread that shares the loop, which then takes neighbouring blocks. An iteration of one loop may
    be several of another. Blocks are local arrays where these take a sixteenth of L2 at most: a stack
    lies in small pages, which slow larger ones down; others are scratch. Left alone: functions with other loops, a
    last one that writes where one before it reads, and those whose local arrays do not fit on a stack together. Those
    that are no longer called are gone. The stack and the threads are those of the target. Keeps:
    all results, bit by bit.
    """

    name = "fuse-blocks"
    contract = Contract(
        requires=(VECTORS, BUFFERS, UNPLACED),
        runs_after={
            "prefetch-streams": "streams are measured inside a kernel",
            "block-sums": "sums are cut inside a kernel",
        },
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fuse what can be in the entry functions."""
        target = target_of(op)
        fusion = _Fusion(KernelFunctions(op), kernel_signatures(op), target.team, target.machine)
        for entry in entries(op):
            fusion.run(entry)


@dataclass
class _Fusion:
    functions: KernelFunctions
    signatures: Mapping[str, KernelSignature]
    threads: int
    target: Machine
    made: dict[object, func.FuncOp] = field(default_factory=dict[object, func.FuncOp])
    """By what they stand for: calls of the same kernels, one after the other, share a function."""

    def run(self, entry: func.FuncOp) -> None:
        """Fuse every chain of calls of an entry function, and erase the functions that nothing calls then."""
        fused: set[str] = set()
        for first in [op for op in entry.walk() if isinstance(op, func.CallOp)]:
            chain = list(self._chain(first))
            if first.parent is not None and len(chain) > 1 and self._fuse(chain):
                fused |= {call.callee.string_value() for call in chain}
        self.functions.erase_uncalled(fused)

    def _chain(self, call: func.CallOp) -> Iterator[func.CallOp]:
        """A call and those after it, as long as the next one reads blocks of its result and nothing else does."""
        yield call
        after = _next_step(call)
        if blocked_axes(call) and isinstance(after, func.CallOp) and self._is_producer_of(call, after):
            yield from self._chain(after)

    def _is_producer_of(self, call: func.CallOp, after: func.CallOp) -> bool:
        signature = self.signatures.get(call.callee.string_value())
        reader = self.signatures.get(after.callee.string_value())
        if signature is None or reader is None or signature.outputs != 1 or signature.sizes or reader.sizes:
            return False
        given = call.arguments[signature.inputs]
        buffer = root_buffer(given)
        own = isinstance(buffer.owner, memref.AllocOp) and set(users_through_views(buffer)) == {call, after}
        return own and list(after.arguments).count(given) == 1

    def _fuse(self, chain: Sequence[func.CallOp]) -> bool:
        """Put one call in the place of a chain, if that can be done."""
        calls = CallChain(chain, self.signatures)
        if calls.overwrites:
            return False
        if calls.key not in self.made:
            function = self._function(calls)
            if function is None:
                return False
            self.functions.place(function, chain[-1].callee.string_value().partition("_")[2])
            self.made[calls.key] = function
        self._call(self.made[calls.key], calls)
        return True

    def _function(self, calls: CallChain) -> func.FuncOp | None:
        """The function of a chain, with small blocks on the stack; None if there can be none."""
        for is_local, most in ((True, min(self.target.stack, self.target.l2 // 16)), (False, self.target.stack)):
            try:
                function = BlockFunction(calls, self.functions.by_name, self.threads, is_local).build()
            except NotOutlined:
                return None
            if stack_bytes(function) <= most:
                return function
        return None

    def _call(self, function: func.FuncOp, calls: CallChain) -> None:
        last = calls.chain[-1]
        block = last.parent
        assert block is not None
        arguments: list[SSAValue] = list(calls.arguments)
        for type_ in function.function_type.inputs.data[len(arguments) :]:
            scratch = memref.AllocOp.get(memref_type(type_).element_type, shape=memref_type(type_).get_shape())
            scratch.memref.name_hint = "block"
            block.insert_op_before(scratch, last)
            arguments.append(scratch.memref)
        new = func.CallOp(function.sym_name.data, arguments, [])
        new.location = last.location
        block.insert_op_before(new, last)
        for call in calls.chain:
            block.erase_op(call)


def _next_step(op: Operation) -> Operation | None:
    """The next operation in the block that is no view, allocation or number."""
    after = op.next_op
    while after is not None and not isinstance(after, STEPS) and not after.regions:
        after = after.next_op
    return after
