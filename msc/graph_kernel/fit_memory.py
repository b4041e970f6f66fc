"""Pass `fit-memory`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.bytes import bytes_of, traffic
from msc.analysis.flops import flops
from msc.analysis.properties import KERNELS, UNSCHEDULED
from msc.dialects.gk import KernelOp
from msc.dialects.ms.base import ViewOp
from msc.dialects.ms.structure import GetParameterOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph_kernel.kernel_results import add_reason, without_results
from msc.graph_kernel.kernel_steps import KernelSteps
from msc.graph_kernel.order_kernels import put_in_order
from msc.ir.contracts import Contract
from msc.ir.donation import updates
from msc.ir.entry import entries
from msc.ir.typed import is_tensor

_SLACK = 16
"""One in so many bytes is left for gaps between buffers, and for what later stages copy; so small is what is kept."""
_LONGEST = 12
"""Kernels and views in a row that are computed again for one tensor."""


@dataclass(frozen=True)
class FitMemory(ModulePass):
    """Compute kernels again where their results are read late, until a call needs no more memory than a limit.

    Takes: kernels. Gives: the same kernels; if weights, inputs, outputs and the most bytes that are live at a time
    exceed `limit` bytes, copies of kernels, products and convolutions among them, stand in front of readers behind the
    peak, which read them in place of results that lay in memory until there. Of all results at the peak, the one goes
    that frees most for the least work; that is told as a reason of the copy. Nothing changes without a limit, or where
    all fits. Keeps: the meaning, bit by bit. (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016; the
    choice is that of Kirisame et al., "Dynamic Tensor Rematerialization", 2021.)
    """

    name = "fit-memory"
    contract = Contract(
        requires=(KERNELS, UNSCHEDULED),
        runs_after={
            "rematerialize": "cheap values need no kernel of their own",
            "pack-operands": "packed operands also take memory",
            "compute-at-consumers": "values between members take no buffer",
        },
    )
    limit: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.limit and not has_open_sizes(op):
            for function in entries(op):
                room = self.limit - _outside(function)
                _fit(function, room - room // _SLACK)


def _outside(function: FuncOp) -> int:
    """The bytes of weights, inputs and outputs, those counted once that are updated."""
    block = function.body.block
    last = block.last_op
    assert last is not None
    weights = {op.symbol: op.results[0] for op in function.walk() if isinstance(op, GetParameterOp)}
    updated = updates(function)
    outputs = [value for k, value in enumerate(last.operands) if k not in updated]
    return sum(bytes_of(v) for v in (*weights.values(), *block.args, *outputs) if is_tensor(v.type))


def _fit(function: FuncOp, room: int) -> None:
    if sum(KernelSteps(function.body.block).steps.bytes) <= room:
        return
    _split_views(function)
    for _ in range(len(function.body.block.ops)):
        put_in_order(function.body.block)
        lives = _Lives(function)
        best = max(lives.candidates(), key=lambda c: c.freed / c.work, default=None)
        if lives.peak_bytes <= room or best is None:
            return
        best.apply()


def _split_views(function: FuncOp) -> None:
    """Give each reader of a view a view of its own, which stands in front of it: so late readers can read another."""
    block = function.body.block
    for op in reversed([op for op in block.ops if isinstance(op, ViewOp)]):
        for use in list(op.results[0].uses)[1:]:
            reader = block.find_ancestor_op_in_block(use.operation)
            assert reader is not None
            copy = op.clone()
            block.insert_op_before(copy, reader)
            use.operation.operands[use.index] = copy.results[0]


@dataclass(frozen=True)
class _Candidate:
    """A result of a kernel, the operations behind the peak that read it, and what its end frees there for what work.

    `again` are the kernels and views that compute it, in their order; the last makes it.
    """

    value: OpResult
    late: Sequence[Operation]
    again: Sequence[Operation]
    freed: int
    work: int

    def apply(self) -> None:
        """Let the late readers read the result of copies of the kernels in front of the first of them."""
        block = self.value.op.parent
        assert block is not None
        mapped: dict[SSAValue, SSAValue] = {}
        for op in self.again:
            block.insert_op_before(op.clone(mapped), self.late[0])
        made = mapped[self.value]
        self.value.replace_uses_with_if(made, lambda use: use.operation in self.late)
        text = f"recomputed: {self.work} operations and bytes moved free {self.freed} bytes at the peak"
        for copy in dict.fromkeys(mapped[result].owner for op in self.again for result in op.results):
            if isinstance(copy, KernelOp):
                add_reason(copy, text)
                without_results(copy, {r.index for r in copy.results if r.first_use is None})


class _Lives:
    """The operations of a function in their order, and which tensors are live where the most bytes are."""

    def __init__(self, function: FuncOp) -> None:
        self._graph = KernelSteps(function.body.block)
        self._live = self._graph.steps.live(list(range(len(self._graph.ops))))
        self.peak_bytes = max(self._live, default=0)
        self._peak = self._live.index(self.peak_bytes) if self._live else 0
        self._updates: dict[SSAValue, int] = {a: self._made(value) for value, a in self._graph.updated.items()}

    def candidates(self) -> Iterator[_Candidate]:
        """What could be computed again behind the peak, and lowers it."""
        for number, op in enumerate(self._graph.ops[: self._peak]):
            if isinstance(op, KernelOp) and not self._graph.steps.steps[number].fixed:
                found = (self._candidate(op, value) for value in op.results if value in self._graph.buffers)
                yield from (candidate for candidate in found if candidate is not None)

    def _candidate(self, kernel: KernelOp, value: OpResult) -> _Candidate | None:
        users = list(dict.fromkeys(use.operation for use in value.uses))
        if any(op not in self._graph.number for op in users):
            return None
        late = sorted((op for op in users if self._graph.number[op] > self._peak), key=self._graph.number.__getitem__)
        early = max((self._last(op) for op in users if op not in late), default=0)
        if not late or early >= self._peak:
            return None
        first = self._graph.number[late[0]]
        again, leaves = self._chain(kernel, first)
        if len(again) > _LONGEST or any(self._updates.get(v, first + 1) <= first for v in leaves):
            return None
        longer = {v: end for v in leaves if v in self._graph.buffers and (end := self._graph.readers(v)[-1]) < first}
        freed = bytes_of(value) - sum(bytes_of(v) for v, end in longer.items() if end < self._peak)
        between = sum(bytes_of(r) for op in again if op is not kernel for r in op.results if r in self._graph.buffers)
        if freed <= 0 or not self._has_room(value, early, first, longer, between):
            return None
        return _Candidate(value, late, again, freed, sum(flops(op) + traffic(op) for op in again))

    def _chain(self, kernel: KernelOp, first: int) -> tuple[list[Operation], list[SSAValue]]:
        """What computes a kernel's results at a place, in order: with what made those large inputs that are gone there.

        And the inputs of all of it.
        """
        again: dict[Operation, None] = {}
        leaves: dict[SSAValue, None] = {}
        small = min(map(bytes_of, kernel.results)) // _SLACK
        pending: list[Operation] = [kernel]
        while pending and len(again) <= _LONGEST:
            op = pending.pop()
            again[op] = None
            for value in op.operands:
                if self._is_computed_again(value, first, small):
                    assert isinstance(value.owner, Operation)
                    pending.append(value.owner)
                else:
                    leaves[self._graph.root(value)] = None
        return sorted(again, key=self._graph.number.__getitem__), list(leaves)

    def _is_computed_again(self, value: SSAValue, first: int, small: int) -> bool:
        """Whether a value is gone at a place, and large, and a kernel made it; a view of it goes with it."""
        root, owner = self._graph.root(value), value.owner
        if not isinstance(owner, Operation) or isinstance(owner, GetParameterOp) or owner not in self._graph.number:
            return False
        if isinstance(owner, ViewOp):
            return True
        gone = root in self._graph.buffers and self._graph.readers(root)[-1] < first and bytes_of(root) > small
        return gone and isinstance(owner, KernelOp) and not self._graph.steps.steps[self._graph.number[owner]].fixed

    def _has_room(self, value: OpResult, early: int, first: int, longer: Mapping[SSAValue, int], between: int) -> bool:
        """Whether inputs that live longer make no other peak, up to the place where a value is computed again.

        There what is computed `between` needs room as well.
        """
        for place in range(min(longer.values(), default=first - 1) + 1, first + 1):
            more = sum(bytes_of(v) for v, end in longer.items() if end < place)
            less = bytes_of(value) if early < place < first else -between if place == first else 0
            if self._live[place] + more - less >= self.peak_bytes:
                return False
        return True

    def _last(self, user: Operation) -> int:
        """The place where a user reads last; that of a view is where its own users do."""
        number = self._graph.number.get(user, len(self._live))
        if not isinstance(user, ViewOp):
            return number
        return max((self._last(use.operation) for use in user.results[0].uses), default=number)

    def _made(self, value: SSAValue) -> int:
        return self._graph.number.get(value.owner, 0) if isinstance(value.owner, Operation) else 0
