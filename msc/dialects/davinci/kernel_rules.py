"""What must hold of a whole kernel: its cores have what it uses, buffers lie apart, and no index can wrap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from msc.dialects.davinci.buffers import AllocOp
from msc.dialects.davinci.gathers import LoadIndexOp
from msc.dialects.davinci.index_ops import BlockIdxOp, MaxOp, MinOp, SectionOp, SubBlockOp
from msc.dialects.davinci.order_ops import CrossCoreSyncOp, FlagOp, PipeBarrierOp, WaitFlagDevOp
from msc.dialects.davinci.queue_ops import QueueOp
from msc.dialects.loop import ApplyOp, ForOp
from msc.ir.errors import CodedVerifyException
from msc.poly.intervals import interval, magnitude
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import INSTRUCTIONS, Pipe, Space


class KernelRuleError(CodedVerifyException):
    """What no core of the machine can do, at an operation of a kernel."""

    code = "MSC1032"


INDEX_LIMIT = 1 << 50
"""What no part of an index reaches: so far below 64 bits that neither bytes nor addresses of arguments wrap."""

SEPARATE_KINDS = ("cube", "vector")

PIPES_OF: Mapping[str, frozenset[Pipe]] = {
    kind: frozenset({Pipe.S, Pipe.ALL, *(row.pipe for row in INSTRUCTIONS.values() if row.core == kind)})
    for kind in SEPARATE_KINDS
}
"""The queues of each kind of core: those that it has instructions for."""


def kinds_of(kind: str, machine: DavinciTarget) -> frozenset[str]:
    """The kinds of separate cores that a kernel runs on; none where each core has a cube and a vector unit."""
    if machine.cores.coupled:
        return frozenset()
    return frozenset(SEPARATE_KINDS if kind == "mix" else (kind,))


OPERATIONS = (
    AllocOp, ApplyOp, BlockIdxOp, CrossCoreSyncOp, FlagOp, ForOp, LoadIndexOp, MaxOp, MinOp, PipeBarrierOp, QueueOp,
    SectionOp, SubBlockOp, WaitFlagDevOp,
)  # fmt: skip
"""What a kernel consists of."""


def verify_operations(ops: Sequence[Operation]) -> None:
    """Raise KernelRuleError for an operation that is none of a kernel."""
    for op in ops:
        if not isinstance(op, OPERATIONS):
            raise KernelRuleError(f"{op.name} is no operation of a davinci.kernel", operation=op)


def verify_cores(block: Block, kinds: frozenset[str], machine: DavinciTarget) -> None:
    """Raise KernelRuleError where a core that runs an instruction, or a flag's queues, does not have it."""
    for op in block.ops:
        for kind in sorted(kinds):
            _verify_core(op, kind, machine, alone=len(kinds) == 1)
        inner = kinds & {op.kind.data} if isinstance(op, SectionOp) else kinds
        for region in op.regions:
            for nested in region.blocks:
                verify_cores(nested, inner, machine)


def _verify_core(op: Operation, kind: str, machine: DavinciTarget, *, alone: bool) -> None:
    advice = "" if alone else f"; put it into a davinci.section {'vector' if kind == 'cube' else 'cube'}"
    if isinstance(op, QueueOp) and op.instruction.core not in ("", kind):
        raise KernelRuleError(
            f"{op.name} runs on {op.instruction.core} cores; the {kind} cores of {machine.name} have no such "
            f"instruction{advice}",
            operation=op,
        )
    pipes: tuple[Pipe, ...] = ()
    if isinstance(op, FlagOp):
        pipes = op.pipes
    elif isinstance(op, PipeBarrierOp | CrossCoreSyncOp):
        pipes = (op.which,)
    for pipe in pipes:
        if pipe not in PIPES_OF[kind]:
            raise KernelRuleError(
                f"{op.name}: the {kind} cores of {machine.name} have no {pipe.name}{advice}", operation=op
            )


def verify_events(ops: Sequence[Operation], machine: DavinciTarget) -> None:
    """Raise KernelRuleError for event ids that the machine's own software keeps."""
    free = machine.queues.event_ids_free
    for op in ops:
        if not isinstance(op, FlagOp):
            continue
        expr = op.event.data.results[0]
        if isinstance(expr, AffineConstantExpr) and not 0 <= expr.value < free:
            kept = "" if expr.value >= machine.queues.event_ids else f"; {machine.name} reserves the others"
            raise KernelRuleError(f"{op.name}: event id {expr.value}; there are 0 to {free - 1}{kept}", operation=op)


def verify_apart(ops: Sequence[Operation]) -> None:
    """Raise KernelRuleError for two buffers that share bytes, unless one of them says so."""
    placed: dict[Space, list[AllocOp]] = {}
    for op in ops:
        if isinstance(op, AllocOp):
            placed.setdefault(op.type.memory, []).append(op)
    for space, allocs in placed.items():
        plain: AllocOp | None = None
        for op in sorted((op for op in allocs if not op.is_overlapping), key=lambda op: op.address.value.data):
            if plain is not None and op.address.value.data < plain.end:
                raise KernelRuleError(
                    f"{op.name}: bytes {op.address.value.data} to {op.end} of {space.name} lie in another buffer, "
                    f"bytes {plain.address.value.data} to {plain.end}; 'overlapping' allows it",
                    operation=op,
                )
            plain = op if plain is None or op.end > plain.end else plain


def verify_indices(block: Block, ranges: dict[SSAValue, tuple[int, int]], blocks: int) -> None:
    """Raise KernelRuleError where a part of an index may reach INDEX_LIMIT: 64 bits would wrap beyond.

    `ranges` are the values that index values take at most; those of the block's operations are added.
    """
    for op in block.ops:
        values = [operand for operand in op.operands if operand in ranges]
        dims = [ranges[value] for value in values]
        for expr in _expressions(op):
            if magnitude(expr, dims) >= INDEX_LIMIT:
                raise KernelRuleError(
                    f"{op.name}: '{expr}' may reach {INDEX_LIMIT}; indices have to stay below", operation=op
                )
        found = _range_of(op, dims, blocks)
        if isinstance(op, ForOp):
            ranges[op.variable] = found
        elif op.results and found != _NO_RANGE:
            ranges[op.results[0]] = found
        for region in op.regions:
            for nested in region.blocks:
                verify_indices(nested, ranges, blocks)


_NO_RANGE = (1, 0)


def _expressions(op: Operation) -> Iterator[AffineExpr]:
    match op:
        case QueueOp():
            yield from op.offsets.data.results
            bits = [p.bits for p in op.numbers]
            yield from (e for e, is_bits in zip(op.parameters.data.results, bits, strict=True) if not is_bits)
        case FlagOp():
            yield from op.event.data.results
        case ForOp():
            yield from (*op.lower.data.results, *op.upper.data.results, AffineExpr.constant(op.step.value.data))
        case LoadIndexOp():
            yield from (*op.offset.data.results, AffineExpr.constant(op.below.value.data))
        case ApplyOp() | MinOp() | MaxOp():
            yield from op.map.data.results
        case _:
            pass


def _range_of(op: Operation, dims: Sequence[tuple[int, int]], blocks: int) -> tuple[int, int]:
    """The values of an operation's result, or of a loop's variable; empty for one without."""

    def least_and_most(exprs: Sequence[AffineExpr]) -> tuple[list[int], list[int]]:
        found = [interval(expr, dims) or (-INDEX_LIMIT, INDEX_LIMIT) for expr in exprs]
        return [low for low, _ in found], [high for _, high in found]

    match op:
        case ForOp():
            start = max(least_and_most(op.lower.data.results)[0])
            return start, max(start, min(least_and_most(op.upper.data.results)[1]) - 1)
        case LoadIndexOp():
            return 0, op.below.value.data - 1
        case ApplyOp() | MinOp() | MaxOp():
            lows, highs = least_and_most(op.map.data.results)
            chosen = max if isinstance(op, MaxOp) else min
            return chosen(lows), chosen(highs)
        case BlockIdxOp():
            return 0, blocks - 1
        case SubBlockOp():
            return 0, 1
        case _:
            return _NO_RANGE
