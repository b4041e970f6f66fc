"""Pass `rematerialize`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.bytes import bytes_of
from msc.analysis.kernels import kernels_in
from msc.analysis.patterns import AreaPattern, Pattern, pattern_of
from msc.analysis.per_kernel import per_kernel
from msc.analysis.properties import KERNELS, UNSCHEDULED
from msc.dialects.element_types import dtype_name
from msc.dialects.gk import KernelOp, KernelYieldOp
from msc.dialects.ms.accumulation import NARROW_INTEGERS
from msc.dialects.ms.elementwise import CastOp
from msc.dialects.ms.structure import ConstantOp, GetParameterOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph_kernel.fusion.areas import MOST_OPERATIONS
from msc.graph_kernel.kernel_results import needed_for, only_pad, rebuilt, with_results, without_results
from msc.graph_kernel.kernel_steps import KernelSteps, blocks_of_steps
from msc.ir.contracts import Contract
from msc.ir.entry import entries
from msc.ir.typed import element_type, static_shape
from msc.poly.scalar import OPERATORS

_DEAR = frozenset(f"ms.{tensor}" for operator in OPERATORS.values() if operator.cost for tensor in operator.tensors)
"""Elementwise operations that cost many instructions: they are moved, not repeated."""
AS_MANY = 16
"""A part of so many bytes more or less is not counted."""


@dataclass(frozen=True)
class Rematerialize(ModulePass):
    """Compute again where they are read what elementwise operations made of tensors that are live anyway.

    Takes: kernels. Gives: kernels; of the tensors live at the peak, those go that their later readers compute
    themselves, elementwise, of tensors that are live until then, or of fewer bytes: a normalised image less its mean,
    where a rectifier passed, the parts of an activation's derivative. The readers read no more bytes than before, and
    operations of many instructions are not repeated. No reader gets more operations than `MOST_OPERATIONS`. Kernels of
    entry functions change, and of loops in them.
    What elementwise operations make wide of bytes for a reader alone, that reader computes: bytes are stored.
    Keeps: the meaning up to the rounding of fused multiply-adds.
    """

    name = "rematerialize"
    contract = Contract(
        requires=(KERNELS, UNSCHEDULED),
        runs_after={"cluster-kernels": "kernels read the operands of recomputed values"},
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if has_open_sizes(op):
            return
        for kernel in reversed(list(kernels_in(op))):  # readers first: they are built anew
            _store_narrow(kernel)
        for block in [block for function in entries(op) for block in blocks_of_steps(function)]:
            for _ in range(_ROUNDS):
                if not _Peak(block).lowered():
                    break


def _store_narrow(kernel: KernelOp) -> None:
    """Let the only reader of a result compute it of the bytes of which the kernel makes it."""
    for result in kernel.results:
        value, uses = kernel.terminator.values[result.index], list(result.uses)
        reader = uses[0].operation if len(uses) == 1 else None
        if not isinstance(reader, KernelOp) or not _is_computed(kernel, result) or len(kernel.results) > 1:
            continue
        part = _slice(kernel, [value], lambda v: _is_stored(kernel, v))
        size = sum(bytes_of(v) for v in part.leaves if not isinstance(v, BlockArgument))
        argument = reader.body.block.args[uses[0].index]
        if size * 2 > bytes_of(result) or not all(_is_stored(kernel, v) for v in part.leaves):
            continue
        if may_compute(reader, argument) or _reduces(argument, part.ops):
            _Plan(kernel, {result: value}, {reader: [result]}, [result], part).apply()


def _is_stored(kernel: KernelOp, value: SSAValue) -> bool:
    """Whether a value inside of a kernel is bytes that it computes, or a constant that it reads."""
    if isinstance(value, BlockArgument):
        outer = kernel.inputs[value.index]
        return isinstance(outer, OpResult) and isinstance(outer.owner, GetParameterOp)
    is_narrow = dtype_name(element_type(value)) in NARROW_INTEGERS
    return is_narrow and any(isinstance(use.operation, CastOp) for use in value.uses)


def _reduces(argument: BlockArgument, ops: Sequence[Operation]) -> bool:
    """Whether one reduction reads an argument, and casts alone would compute it, once for each window."""
    (use, *others) = argument.uses
    if others or isinstance(use.operation, KernelYieldOp) or not all(isinstance(op, CastOp) for op in ops):
        return False
    return pattern_of(use.operation).pattern in (Pattern.REDUCE, Pattern.WINDOW)


_ROUNDS = 6
"""How often the peak is looked for: what one tensor's end lowers lets another be the peak."""


class _Peak:
    """The tensors that are live where the most bytes are, in the best order of the kernels."""

    def __init__(self, block: Block) -> None:
        self._graph = KernelSteps(block)
        order = self._graph.steps.best_order()
        self._place = {self._graph.ops[number]: place for place, number in enumerate(order)}
        self._live = self._graph.steps.live(order)
        self._peak = self._live.index(max(self._live)) if self._live else 0
        self._last: dict[SSAValue, int] = {}
        for op, place in self._place.items():
            for value in op.operands:
                root = self._graph.root(value)
                self._last[root] = max(place, self._last.get(root, 0))

    def lowered(self) -> bool:
        """Let readers compute what they can, each kernel in one plan at most; whether some tensor went."""
        taken: set[KernelOp] = set()
        for kernel in [op for op in self._place if isinstance(op, KernelOp) and self._place[op] < self._peak]:
            plan = None if kernel in taken else self._first_plan(kernel)
            if plan is not None and taken.isdisjoint(plan.readers):
                taken |= {kernel, *plan.readers}
                plan.apply()
        return bool(taken)

    def _first_plan(self, kernel: KernelOp) -> _Plan | None:
        """The plan for all of a kernel's values at the peak, or else for the first for which one pays."""
        values = [r for r in kernel.results if _is_computed(kernel, r) and self._crosses(r)]
        alike = [[v for v in values if static_shape(v) == static_shape(values[0])]] if len(values) > 1 else []
        groups = [*alike, *([v] for v in values)]
        return next((plan for plan in map(partial(self._plan, kernel), groups) if plan is not None), None)

    def _crosses(self, value: SSAValue) -> bool:
        live = self._last.get(value, -1) >= self._peak
        return live and value in self._graph.buffers and self._late_readers(value) is not None

    def _late_readers(self, value: SSAValue) -> list[KernelOp] | None:
        """The kernels at and behind the peak that read a value; None if something else does, or cannot compute it."""
        readers: list[KernelOp] = []
        for use in value.uses:
            op = use.operation
            if op not in self._place:
                return None
            if self._place[op] >= self._peak and op not in readers:
                if not isinstance(op, KernelOp) or not (may_compute(op, op.body.block.args[use.index]) or only_pad(op)):
                    return None
                readers.append(op)
            elif not isinstance(op, KernelOp):
                return None
        return readers or None

    def _plan(self, kernel: KernelOp, values: Sequence[OpResult]) -> _Plan | None:
        """How the readers compute values, if it pays."""
        inner = {v: kernel.terminator.values[v.index] for v in values}
        readers: dict[KernelOp, list[OpResult]] = {}
        for value in values:
            for reader in self._late_readers(value) or ():
                readers.setdefault(reader, []).append(value)
        last = max(self._place[reader] for reader in readers)
        dropped = [v for v in values if all(u.operation in readers for u in v.uses)]
        part = _slice(kernel, list(inner.values()), lambda v: self._is_live(kernel, v, self._peak))
        if not part.ops or not set(inner.values()).isdisjoint(part.leaves):
            return None
        if any(len(part.ops) + len(reader.body.block.ops) > MOST_OPERATIONS for reader in readers):
            return None
        size = sum(map(bytes_of, values))
        more = sum(bytes_of(v) for v in part.leaves if not self._is_live(kernel, v, self._peak))
        if more >= size or not self._has_room(kernel, part.leaves, size, last):
            return None
        remaining = [v for k, v in enumerate(kernel.terminator.values) if kernel.results[k] not in dropped]
        needed = needed_for([*remaining, *(v for v in part.leaves if isinstance(v, OpResult))])
        dear = [op for op in part.ops if op.name in _DEAR]
        if dear and (len(readers) > 1 or any(op in needed for op in dear)):
            return None
        plan = _Plan(kernel, inner, readers, dropped, part)
        return plan if all(map(plan.reads_no_more, readers)) else None

    def _has_room(self, kernel: KernelOp, leaves: Sequence[SSAValue], size: int, last: int) -> bool:
        """Whether leaves may live until a place: in the room of `size` bytes, of which a sixteenth more is as many.

        Or else without a peak there.
        """
        longer = [v for v in leaves if not self._is_live(kernel, v, last)]
        more = sum(map(bytes_of, longer)) - size
        if more <= size // AS_MANY:
            return True
        first = min(self._end(kernel, v) for v in longer)
        return max(self._live[first + 1 : last + 1]) + more < self._live[self._peak] - size

    def _end(self, kernel: KernelOp, value: SSAValue) -> int:
        """The place where a value inside of a kernel is read last; that of the kernel if nothing else reads it."""
        outer = _outer(kernel, value)
        return self._place[kernel] if outer is None else self._last.get(self._graph.root(outer), self._place[kernel])

    def _is_live(self, kernel: KernelOp, value: SSAValue, place: int) -> bool:
        """Whether a value inside of a kernel is an input or a result that is read at a place or later anyway."""
        outer = _outer(kernel, value)
        if outer is None:
            return False
        root = self._graph.root(outer)
        if isinstance(root, BlockArgument):
            return root not in self._graph.updated.values()
        return isinstance(root.owner, GetParameterOp) or self._last.get(root, -1) >= place


@dataclass(frozen=True)
class _Part:
    """Operations of a kernel in order, and what they read that is none of them."""

    ops: Sequence[Operation]
    leaves: Sequence[SSAValue]


@dataclass(frozen=True)
class _Plan:
    """Values of a kernel that readers compute again."""

    kernel: KernelOp
    inner: Mapping[OpResult, SSAValue]
    readers: Mapping[KernelOp, Sequence[OpResult]]
    dropped: Sequence[OpResult]
    part: _Part

    def reads_no_more(self, reader: KernelOp) -> bool:
        """Whether a reader reads as many bytes at most as before; a sixteenth more is as many.

        A product or a convolution takes its time for its operands, not for what its epilogue reads.
        """
        if any(pattern_of(op).pattern is Pattern.CONTRACTION for op in reader.body.block.ops if op.results):
            return True
        given = set(reader.inputs)
        new = sum(bytes_of(v) for v in self.part.leaves if _outer(self.kernel, v) not in given)
        old = sum(bytes_of(v) for v in self.readers[reader])
        return new <= old + old // AS_MANY

    def apply(self) -> None:
        kernel, leaves = self.kernel, self.part.leaves
        kernel, results = with_results(kernel, [v for v in leaves if _outer(kernel, v) is None])
        outer: dict[SSAValue, SSAValue] = {
            v: found for v in leaves if (found := results.get(v) or _outer(kernel, v)) is not None
        }
        for reader, values in self.readers.items():
            named = [kernel.results[v.index] for v in values]
            taker = _kernel_in_front(reader) if only_pad(reader) else reader
            self._compute_in(taker, dict(zip(named, (self.inner[v] for v in values), strict=True)), outer)
        without_results(kernel, {v.index for v in self.dropped})

    def _compute_in(
        self, reader: KernelOp, values: Mapping[SSAValue, SSAValue], outer: Mapping[SSAValue, SSAValue]
    ) -> None:
        block = reader.body.block
        inputs = list(reader.inputs)
        mapped: dict[SSAValue, SSAValue] = {}
        for leaf, value in outer.items():
            if value not in inputs:
                inputs.append(value)
                block.insert_arg(leaf.type, len(block.args)).name_hint = value.name_hint
            mapped[leaf] = block.args[inputs.index(value)]
        first = block.first_op
        assert first is not None
        wanted = needed_for(list(values.values()))
        for op in self.part.ops:
            if op in wanted:
                copy = op.clone(mapped)
                copy.location = op.location
                block.insert_op_before(copy, first)
        for value, inner in values.items():
            argument = block.args[inputs.index(value)]
            argument.replace_all_uses_with(mapped[inner])
        kept = [k for k, v in enumerate(inputs) if v not in values]
        for k in reversed(range(len(inputs))):
            if k not in kept:
                block.erase_arg(block.args[k])
        names = ", ".join(
            dict.fromkeys(op.name for op in self.part.ops if not isinstance(op, ConstantOp) and op in wanted)
        )
        rebuilt(reader, [inputs[k] for k in kept], reader.terminator.values, f"computes {names} again")


def _outer(kernel: KernelOp, value: SSAValue) -> SSAValue | None:
    """What a value inside of a kernel is called outside: an input or a result."""
    if isinstance(value, BlockArgument):
        return kernel.inputs[value.index]
    given = list(kernel.terminator.values)
    return kernel.results[given.index(value)] if value in given else None


def _kernel_in_front(reader: KernelOp) -> KernelOp:
    """A new kernel that gives a padding what it reads: `fuse-pads` makes one kernel of both, with what is computed."""
    (value,) = reader.inputs
    body = Block(arg_types=[value.type])
    body.add_op(KernelYieldOp(body.args[0]))
    kernel = KernelOp(reader.label.data, [value], [value.type], Region(body))
    kernel.location = reader.location
    assert reader.parent is not None
    reader.parent.insert_op_before(kernel, reader)
    reader.operands[0] = kernel.results[0]
    return kernel


def _is_computed(kernel: KernelOp, result: OpResult) -> bool:
    """Whether an elementwise operation of a kernel computes a result."""
    return _is_elementwise(kernel.terminator.values[result.index].owner, static_shape(result))


def may_compute(kernel: KernelOp, argument: BlockArgument) -> bool:
    """Whether a kernel may compute an argument itself: elementwise operations on the shape of its loops read it."""
    readers = [use.operation for use in argument.uses]
    patterns = _patterns(kernel)
    if any(op not in patterns or patterns[op].pattern not in _ELEMENTWISE for op in readers):
        return False
    anchors = [p for p in patterns.values() if p.pattern not in _ELEMENTWISE]
    return all(p.domain == static_shape(argument) and p.pattern is not Pattern.OPAQUE for p in anchors)


@per_kernel
def _patterns(kernel: KernelOp) -> Mapping[Operation, AreaPattern]:
    """Of all that a kernel computes."""
    return {op: pattern_of(op) for op in kernel.body.block.ops if not isinstance(op, KernelYieldOp | ConstantOp)}


_ELEMENTWISE = (Pattern.ELEMENTWISE, Pattern.BROADCAST)


def _slice(kernel: KernelOp, values: Sequence[SSAValue], is_live: Callable[[SSAValue], bool]) -> _Part:
    """The elementwise operations, on the shape of the values, that compute them of what is there."""
    shape = static_shape(values[0])
    wanted = set(values)
    ops: set[Operation] = set()
    leaves: dict[SSAValue, None] = {}
    pending = list(values)
    while pending:
        value = pending.pop()
        op = value.owner
        if isinstance(op, ConstantOp):
            ops.add(op)
        elif (value not in wanted and is_live(value)) or not _is_elementwise(op, shape):
            leaves[value] = None
        elif isinstance(op, Operation) and op not in ops:
            ops.add(op)
            pending.extend(op.operands)
    for leaf in list(leaves):
        _raise_leaf(leaf, ops, leaves, is_live)
    used = [v for v in leaves if any(use.operation in ops for use in v.uses) or v in wanted]
    order = [op for op in kernel.body.block.ops if op in ops]
    return _Part(order, used)


def _raise_leaf(
    leaf: SSAValue, ops: set[Operation], leaves: dict[SSAValue, None], is_live: Callable[[SSAValue], bool]
) -> None:
    """Keep what is made of a value instead of the value, as long as one operation of the same size reads it."""
    while isinstance(leaf, OpResult) and not is_live(leaf) and leaf.has_one_use():
        user = next(iter(leaf.uses)).operation
        if user not in ops or bytes_of(user.results[0]) > bytes_of(leaf):
            return
        ops.remove(user)
        del leaves[leaf]
        leaf = user.results[0]
        leaves[leaf] = None


def _is_elementwise(op: Operation | Block, shape: tuple[int, ...]) -> bool:
    if not isinstance(op, Operation) or pattern_of(op).pattern not in _ELEMENTWISE:
        return False
    return static_shape(op.results[0]) == shape
