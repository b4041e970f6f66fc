"""Pass `insert-sync`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)
from xdsl.passes import ModulePass

from msc.dialects import davinci
from msc.dialects.loop import ForOp
from msc.lowering.ascend.sync_plan import Dependence, PipeAccess, Step, dependences, protected, reduced
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.davinci_isa import Pipe, Space

_SELF_READING = (Pipe.V,)
_REPEAT_BYTES = 256
_MASKS = ("set_mask_count", "set_mask_norm", "set_vector_mask")


@dataclass(frozen=True)
class InsertSync(ModulePass):
    """Order the pipes of `davinci` kernels by flags and barriers, from what their instructions touch.

    Takes kernels without flags and barriers; those that have some are left as they are. Each block is one sequence of
    steps; a loop or a section is one step of the block around it. Where two pipes touch the same buffer and one of them
    writes, a flag orders them: forwards within an iteration, backwards from one iteration to the next, unless other
    flags do so already. What is free at the start of a nest of loops is given once before it and taken back behind it.
    Event ids are given pair by pair of pipes; where all buffers of a loop alternate with it (`%i mod 2`), each flag has
    as many ids as they have places. The vector unit gets a barrier before it reads its own results.

    Raises MSC1023 when a pair of pipes has too few event ids.
    """

    name = "insert-sync"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, davinci.DavinciKernelOp):
                synchronise(kernel)


def synchronise(kernel: davinci.DavinciKernelOp) -> None:
    """Put flags and barriers into a kernel that has none. Raises MSC1023."""
    if not _has_order(kernel):
        _Kernel(kernel).order()


def _has_order(kernel: davinci.DavinciKernelOp) -> bool:
    return any(isinstance(op, davinci.FlagOp | davinci.PipeBarrierOp) for op in kernel.walk())


@dataclass(frozen=True)
class _Turn:
    """The places of a buffer that alternates: `index` mod `count`, over `values`."""

    index: AffineMap
    values: tuple[SSAValue, ...]
    count: int


@dataclass(frozen=True)
class _Settled:
    """Pairs of pipes that flags inside a loop order: `behind` the loop, and when it runs `again`."""

    behind: frozenset[tuple[Pipe, Pipe]] = frozenset()
    again: frozenset[tuple[Pipe, Pipe]] = frozenset()

    def holds(self, d: Dependence) -> bool:
        """Whether a dependence that starts at the loop is settled by what is inside it."""
        pair = (d.source, d.target)
        return pair in self.behind or (d.backward and d.first == d.last and pair in self.again)


@dataclass
class _Kernel:
    kernel: davinci.DavinciKernelOp
    events: dict[tuple[Pipe, Pipe], int] = field(default_factory=dict[tuple[Pipe, Pipe], int])
    sharing: dict[SSAValue, list[SSAValue]] = field(init=False)
    """The buffers that share bytes with each that the kernel allocates, itself included."""

    def __post_init__(self) -> None:
        buffers = [op for op in self.kernel.walk() if isinstance(op, davinci.AllocOp)]
        self.sharing = {own.buffer: [other.buffer for other in buffers if other.shares(own)] for own in buffers}

    def order(self) -> None:
        """Flags for the kernel's body, innermost loops first."""
        self._block(self.kernel.body.block, None)

    def _block(self, block: Block, loop: ForOp | None) -> _Settled:
        """Order a block; what holds behind it."""
        items = [op for op in block.ops if isinstance(op, davinci.QueueOp | ForOp | davinci.SectionOp)]
        settled = [self._inside(item) for item in items]
        steps = [self._touched(item) for item in items]
        wanted = {d for d in dependences(steps, loop is not None) if not settled[d.first].holds(d)}
        kept = protected(reduced(wanted), loop is not None)
        turn = _turn_of(items, loop) if loop is not None else None
        for dependence in kept:
            self._flag(dependence, items, loop, turn)
        self._barriers(items, loop)
        last = {access.pipe: k for k, step in enumerate(steps) for access in step}
        ends = {pair for k, inner in enumerate(settled) for pair in inner.behind if last.get(pair[0]) == k}
        return _Settled(
            frozenset(ends | {(d.source, d.target) for d in kept if not d.backward and d.first == last[d.source]}),
            frozenset(pair for inner in settled for pair in inner.again)
            | frozenset((d.source, d.target) for d in kept if d.backward),
        )

    def _inside(self, item: Operation) -> _Settled:
        if isinstance(item, ForOp):
            return self._block(item.body.block, item)
        return self._block(item.body.block, None) if isinstance(item, davinci.SectionOp) else _Settled()

    def _touched(self, item: Operation) -> Step:
        accesses: set[PipeAccess] = set()
        for op in item.walk():
            if isinstance(op, davinci.QueueOp):
                accesses |= set(self._accesses(op))
        return frozenset(accesses)

    def _accesses(self, op: davinci.QueueOp) -> Iterator[PipeAccess]:
        row = op.instruction
        for k, buffer in enumerate(op.buffers):
            if row.spaces[k] is Space.cc and _hands_over_units(op):
                continue
            for place in self._places(buffer):
                if k > 0 or row.reads_first:
                    yield PipeAccess(row.pipe, place, False)
                if k == 0:
                    yield PipeAccess(row.pipe, place, True)

    def _places(self, buffer: SSAValue) -> list[SSAValue]:
        """The buffers that share bytes with one, itself included."""
        return self.sharing.get(buffer, [buffer])

    def _flag(self, d: Dependence, items: Sequence[Operation], loop: ForOp | None, turn: _Turn | None) -> None:
        count = turn.count if turn is not None else 1
        first = self._events(d, count, items[d.last])
        event, values = _event(turn, first)
        _after(items[d.first], davinci.SetFlagOp(d.source, d.target, event, values))
        _before(items[d.last], davinci.WaitFlagOp(d.source, d.target, event, values))
        if d.backward:
            assert loop is not None
            outermost = _outermost(loop)
            for k in range(count):
                _before(outermost, davinci.SetFlagOp(d.source, d.target, first + k))
                _after(outermost, davinci.WaitFlagOp(d.source, d.target, first + k))

    def _events(self, d: Dependence, count: int, at: Operation) -> int:
        """The first of `count` ids of a pair of pipes that no other flag has. Raises MSC1023 when there are none."""
        pair = (d.source, d.target)
        first = self.events.get(pair, 0)
        machine = self.kernel.machine
        if first + count > machine.queues.event_ids_free:
            message = (
                f"{self.kernel.sym_name.data} needs more than the {machine.queues.event_ids_free} flags "
                f"that {machine.name} has from {d.source.name} to {d.target.name}"
            )
            raise MscError(Diagnostic("MSC1023", message, help=f"exchange fewer buffers around {at.name}"))
        self.events[pair] = first + count
        return first

    def _barriers(self, items: Sequence[Operation], loop: ForOp | None) -> None:
        """A barrier before each instruction that reads what its own queue has written since the last one."""
        for pipe in _SELF_READING:
            written: set[SSAValue] = set()
            again = loop is not None and not (_accumulates_aside(items, loop) or self._changes_in_place(items, loop))
            for turn in range(2 if again else 1):
                for item in items:
                    reads, writes = self._own(item, pipe)
                    if written & reads:
                        if not (isinstance(item.prev_op, davinci.PipeBarrierOp) and item.prev_op.which is pipe):
                            _before(item, davinci.PipeBarrierOp(pipe))
                        written = set()
                    elif turn and isinstance(item.prev_op, davinci.PipeBarrierOp):
                        written = set()
                    written |= writes

    def _own(self, item: Operation, pipe: Pipe) -> tuple[set[SSAValue], set[SSAValue]]:
        reads: set[SSAValue] = set()
        writes: set[SSAValue] = set()
        for op in item.walk():
            if isinstance(op, davinci.QueueOp) and op.instruction.pipe is pipe:
                for k, buffer in enumerate(op.buffers):
                    if k > 0 or op.instruction.reads_first:
                        reads |= set(self._places(buffer))
                    if k == 0:
                        writes |= set(self._places(buffer))
        return reads, writes

    def _changes_in_place(self, items: Sequence[Operation], loop: ForOp) -> bool:
        """Whether a loop is one instruction on a row, which reads what it writes: another row in each iteration."""
        if len(items) != 1 or not isinstance(op := items[0], davinci.QueueOp):
            return False
        count = _mask_count_at(loop)
        names = [p.name for p in op.numbers]
        if count is None or loop.variable not in op.values or "dst_repeat_stride" not in names:
            return False
        place, offsets = [*op.values].index(loop.variable), op.offsets.data.results
        ends = [offsets[0].eval([k if d == place else 0 for d in range(len(op.values))], []) for k in (0, 1, 2)]
        buffer = op.buffers[0].type
        assert isinstance(buffer, davinci.BufferType)
        if ends[2] - ends[1] != ends[1] - ends[0] or (ends[1] - ends[0]) * loop.step.value.data < count:
            return False
        numbers = dict(zip(names, op.parameters.data.results, strict=True))
        words = ["dst", "src"] if len(op.buffers) == 2 else ["dst", "src0", "src1"]
        if not {f"{word}_block_stride" for word in words} <= set(names):
            return False
        shape = [tuple(numbers[f"{word}_{what}_stride"] for what in ("block", "repeat")) for word in words]
        shared = self._places(op.buffers[0])
        return all(
            other not in shared or (other is op.buffers[0] and offset == offsets[0] and strides == shape[0])
            for other, offset, strides in zip(op.buffers[1:], offsets[1:], shape[1:], strict=False)
        )


def _accumulates_aside(items: Sequence[Operation], loop: ForOp) -> bool:
    """Whether a loop is one instruction that accumulates in 256 bytes, in others in each iteration."""
    if len(items) != 1 or not isinstance(op := items[0], davinci.QueueOp) or len(op.buffers) != 3:
        return False
    names = [p.name for p in op.numbers]
    if "dst_repeat_stride" not in names:
        return False
    numbers = dict(zip(names, op.parameters.data.results, strict=True))
    words = ("dst",) if op.instruction.reads_first else ("dst", "src1")
    still = all(numbers[f"{word}_repeat_stride"] == AffineExpr.constant(0) for word in words)
    dense = all(numbers[f"{word}_block_stride"] == AffineExpr.constant(1) for word in words)
    offsets = op.offsets.data.results
    again = op.instruction.reads_first or (op.buffers[0] is op.buffers[2] and offsets[0] == offsets[2])
    same = again and all(op.buffers[0] is not source for source in op.buffers[1 : 4 - len(words)])
    if not (still and dense and same) or loop.variable not in op.values:
        return False
    place = [*op.values].index(loop.variable)
    at = [offsets[0].eval([k if d == place else 0 for d in range(len(op.values))], []) for k in (0, 1, 2)]
    buffer = op.buffers[0].type
    assert isinstance(buffer, davinci.BufferType)
    size = buffer.bytes // buffer.elements.data
    return at[2] - at[1] == at[1] - at[0] and (at[1] - at[0]) * size * loop.step.value.data >= _REPEAT_BYTES


def _mask_count_at(loop: ForOp) -> int | None:
    """How many elements the mask before a loop counts; None where that is not a number, or no count."""
    before = loop.prev_op
    while before is not None:
        inside = [op for op in before.walk() if isinstance(op, davinci.QueueOp) and op.instruction.name in _MASKS]
        if inside and before is not inside[0]:
            return None
        if inside:
            [expr] = inside[0].parameters.data.results if inside[0].instruction.name == "set_mask_count" else [None]
            return expr.value if isinstance(expr, AffineConstantExpr) else None
        before = before.prev_op
    return None


def _outermost(loop: ForOp) -> ForOp:
    """The loop around a loop that no other is around: what is free at its start is given once, not time and again."""
    parent = loop.parent_op()
    return _outermost(parent) if isinstance(parent, ForOp) else loop


def _before(item: Operation, op: Operation) -> None:
    assert item.parent is not None
    item.parent.insert_ops_before([op], item)


def _after(item: Operation, op: Operation) -> None:
    assert item.parent is not None
    item.parent.insert_ops_after([op], item)


def _hands_over_units(op: davinci.QueueOp) -> bool:
    """Whether Mmad and Fixpipe hand L0C over by their unit flags."""
    names = [p.name for p in op.numbers]
    if "unit_flag" not in names:
        return False
    flag = op.parameters.data.results[names.index("unit_flag")]
    return not (isinstance(flag, AffineConstantExpr) and flag.value == 0)


def _event(turn: _Turn | None, first: int) -> tuple[AffineMap, tuple[SSAValue, ...]]:
    if turn is None:
        return AffineMap(0, 0, (AffineExpr.constant(first),)), ()
    [index] = turn.index.results
    event = index % turn.count
    return AffineMap(turn.index.num_dims, 0, (event + first if first else event,)), turn.values


def _turn_of(items: Sequence[Operation], loop: ForOp) -> _Turn | None:
    """How the buffers of a loop's body alternate with it, if all that pipes hand over do, and all in one way.

    The index has to step by one with the loop. A loop within it may only hold instructions of one pipe: what it hands
    over would need ids of its own.
    """
    found: set[_Turn | None] = set()
    for item in items:
        inside = [op for op in item.walk() if isinstance(op, davinci.QueueOp)]
        if len({op.instruction.pipe for op in inside}) != 1:
            return None
        for op in inside:
            for buffer, offset in zip(op.buffers, op.offsets.data.results, strict=True):
                if not isinstance(buffer, BlockArgument):
                    found.add(_turn_in(op, offset, loop))
    return found.pop() if len(found) == 1 else None


def _moves_with(op: davinci.QueueOp, offset: AffineExpr, loop: ForOp) -> bool:
    return any(isinstance(e, AffineDimExpr) and op.values[e.position] is loop.variable for e in offset.dfs())


def _turn_in(op: davinci.QueueOp, offset: AffineExpr, loop: ForOp) -> _Turn | None:
    """`(index mod n) * stride`, where the index is the loop's variable by its step; another place of it may follow."""
    match offset:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, first, more) if not _moves_with(op, more, loop):
            return _turn_in(op, first, loop)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, turning, AffineConstantExpr()):
            pass
        case _:
            turning = offset
    match turning:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mod, index, AffineConstantExpr(count)):
            pass
        case _:
            return None
    step = loop.step.value.data
    scaled = index if step == 1 else getattr(index, "lhs", None)
    whole = step == 1 or (
        isinstance(index, AffineBinaryOpExpr)
        and index.kind is AffineBinaryOpKind.FloorDiv
        and index.rhs == AffineExpr.constant(step)
    )
    position = getattr(scaled, "position", None)
    if not whole or position is None or op.values[position] is not loop.variable:
        return None
    used = AffineExpr.dimension(0)
    mapped = used if step == 1 else used // step
    return _Turn(AffineMap(1, 0, (mapped,)), (loop.variable,), count)
