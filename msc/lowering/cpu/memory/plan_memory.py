"""Pass `plan-memory`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    i8,
    i64,
)
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.bytes import byte_size
from msc.analysis.kernel_signature import kernel_signatures
from msc.analysis.properties import BUFFERS, PLACED, UNPLACED, VECTORS
from msc.analysis.target import target_of
from msc.dialects.loop import BufferSliceOp
from msc.dialects.loop.attributes import LOOP_OFFSET
from msc.dialects.ms.attributes import MS_ROLE
from msc.dialects.ms.structure import GetParameterOp, ParameterOp
from msc.ir.contracts import Contract
from msc.ir.entry import entries
from msc.ir.typed import memref_type, tensor_type
from msc.lowering.cpu.buffer_types import buffer_type
from msc.lowering.cpu.failure import refuse
from msc.lowering.cpu.memory.arena import (
    ALIGNMENT,
    Arena,
    Demand,
    Distances,
    Interval,
    aligned,
    lower_bound,
    plan_arena,
)
from msc.lowering.cpu.memory.buffer_liveness import BufferLiveness
from msc.lowering.cpu.memory.compact_open_tensors import functions_of
from msc.lowering.cpu.memory.in_place import SharedPlaces
from msc.support.naming import valid_hint

_PURE_VIEWS = (memref.ReinterpretCastOp, BufferSliceOp, memref.GetGlobalOp, memref.AllocOp)


@dataclass(frozen=True)
class PlanMemory(ModulePass):
    """Give every buffer of the entry functions a constant place in the workspace or the weights.

    Before: `bufferize`'s entry functions, with memref.alloc for intermediates and memref.get_global for parameters.
    After: each has two more arguments, `%workspace: memref<Nxi8>` and `%weights: memref<Mxi8>` (`ms.role`), and its
    buffers are memref.view into them at constant offsets, multiples of the machine's `align`. A parameter that lies in
    the weights has its offset as attribute `loop.offset`; parameters follow in the order of their first use, those that
    nothing needs are gone. Entry functions share the weights, each has a workspace of its own. Buffers that are not
    live at the same time share bytes, and an output takes the place of an input that dies where the kernel allows it
    (`loop.in_place`); on microcontrollers it may overlap one that it follows through memory (`memory/trailing.py`).
    Option `print` writes the plan to standard error; with `reuse=false` every buffer has bytes of its own.
    """

    name = "plan-memory"
    contract = Contract(
        requires=(VECTORS, BUFFERS, UNPLACED),
        ensures=(PLACED,),
        breaks=(UNPLACED,),
        runs_after={
            "outline-loops": "local arrays need no offset",
            "outline-recurrences": "its functions take other buffers than the kernels",
        },
    )
    print: bool = False
    reuse: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Plan the entry functions."""
        for plan in plan_memory(op, reuse=self.reuse):
            if self.print:
                sys.stderr.write(str(plan))


def plan_memory(module: ModuleOp, *, reuse: bool = True) -> tuple[MemoryPlan, ...]:
    """Plan the entry functions in place and say what was decided for each."""
    planners = [_Planner(module, entry, reuse) for entry in entries(module)]
    weights = lay_out_weights(module, [name for planner in planners for name in planner.parameters()])
    return tuple(planner.plan(weights) for planner in planners)


class _Planner:
    def __init__(self, module: ModuleOp, function: func.FuncOp, reuse: bool) -> None:
        self.module, self.function, self.reuse = module, function, reuse
        self._constants: dict[int, arith.ConstantOp] = {}

    def parameters(self) -> list[str]:
        """The parameters that the function uses, in this order."""
        _erase_unused(self.function)
        return [op.name_.string_value() for op in self._globals()]

    def _globals(self) -> list[memref.GetGlobalOp]:
        return [op for op in self.function.walk() if isinstance(op, memref.GetGlobalOp)]

    def plan(self, weights: WeightsLayout) -> MemoryPlan:
        """Give the buffers their places."""
        liveness = BufferLiveness.of(self.function)
        shared = SharedPlaces(liveness, kernel_signatures(self.module) if self.reuse else {})
        leaders = list(shared.live)
        always = Interval(0, len(liveness.steps))
        demands = [
            Demand(byte_size(leader.memref), shared.live[leader] if self.reuse else always) for leader in leaders
        ]
        machine = target_of(self.module).machine
        alignment, apart = machine.align, dict[tuple[int, int], Distances]()
        if self.reuse and machine.is_bare:
            pairs = shared.overlaps(functions_of(self.module)).items()
            apart = {(leaders.index(out), leaders.index(source)): each for (out, source), each in pairs}
        arena = plan_arena(demands, alignment, apart)
        offsets = dict(zip(leaders, arena.offsets, strict=True))
        globals_ = self._globals()
        report = self._report(liveness, shared, offsets, arena, lower_bound(demands, alignment), weights.bytes)
        for offset in sorted({*offsets.values(), *(weights.offsets[op.name_.string_value()] for op in globals_)}):
            self._constant(offset)
        self._install(shared, offsets, arena.bytes)
        self._install_weights(globals_, weights.offsets, weights.bytes)
        self._update_signature()
        return report

    def _report(
        self,
        liveness: BufferLiveness,
        shared: SharedPlaces,
        offsets: Mapping[memref.AllocOp, int],
        arena: Arena,
        bound: int,
        weights: int,
    ) -> MemoryPlan:
        names = _distinct_names(liveness.intervals)
        buffers = tuple(
            PlannedBuffer(
                names[op],
                byte_size(op.memref),
                offsets[shared.leader(op)],
                live,
                names[shared.predecessor[op]] if op in shared.predecessor else None,
            )
            for op, live in liveness.intervals.items()
        )
        steps = tuple(map(_step_text, liveness.steps))
        alignment, name = target_of(self.module).machine.align, self.function.sym_name.data
        return MemoryPlan(name, buffers, steps, arena.bytes, bound, weights, arena.strategy, alignment)

    def _install(self, shared: SharedPlaces, offsets: Mapping[memref.AllocOp, int], size: int) -> None:
        workspace = self._new_argument("workspace", size)
        for allocation in shared.liveness.intervals:
            self._replace(allocation, allocation.memref, workspace, offsets[shared.leader(allocation)])

    def _install_weights(self, globals_: list[memref.GetGlobalOp], offsets: Mapping[str, int], size: int) -> None:
        weights = self._new_argument("weights", size)
        for op in globals_:
            self._replace(op, op.memref, weights, offsets[op.name_.string_value()])

    def _replace(self, op: Operation, old: SSAValue, source: SSAValue, offset: int) -> None:
        view = memref.ViewOp(source, self._constant(offset), [], memref_type(old))
        view.location = op.location
        block = op.parent_block()
        if block is None:
            raise ValueError("an operation of a function is in a block")
        block.insert_op_before(view, op)
        view.result.name_hint = old.name_hint
        old.replace_all_uses_with(view.result)
        block.erase_op(op)

    def _constant(self, offset: int) -> SSAValue:
        """The offset as a value, defined once at the function's beginning."""
        if offset not in self._constants:
            constant = arith.ConstantOp.from_int_and_width(offset, IndexType())
            constant.result.name_hint = f"at{offset}"
            self._insert_constant(constant)
            self._constants[offset] = constant
        return self._constants[offset].result

    def _insert_constant(self, constant: Operation) -> None:
        block = self.function.body.block
        if self._constants:
            block.insert_op_after(constant, next(reversed(self._constants.values())))
        else:
            block.insert_op_before(constant, next(iter(block.ops)))

    def _new_argument(self, role: str, size: int) -> BlockArgument:
        block = self.function.body.block
        argument = block.insert_arg(MemRefType(i8, [size]), len(block.args))
        argument.name_hint = valid_hint(role)
        return argument

    def _update_signature(self) -> None:
        block = self.function.body.block
        given = list(self.function.arg_attrs) if self.function.arg_attrs is not None else []
        given += [DictionaryAttr({})] * (len(block.args) - 2 - len(given))
        roles = [DictionaryAttr({MS_ROLE: StringAttr(role)}) for role in ("workspace", "weights")]
        self.function.arg_attrs = ArrayAttr([*given, *roles])
        self.function.function_type = FunctionType.from_lists(block.arg_types, [])


def _erase_unused(function: func.FuncOp) -> None:
    """Erase views and buffers that nothing uses, users before what they use."""
    for op in reversed(list(function.walk())):
        block = op.parent_block()
        if isinstance(op, _PURE_VIEWS) and not op.results[0].uses and block is not None:
            block.erase_op(op)


def _distinct_names(allocations: Iterable[memref.AllocOp]) -> dict[memref.AllocOp, str]:
    """The buffers' names in the text, with a number where there is none or it is taken."""
    names: dict[memref.AllocOp, str] = {}
    for i, op in enumerate(allocations):
        hint = op.memref.name_hint
        names[op] = f"%{hint}" if hint is not None and f"%{hint}" not in names.values() else f"%{hint or 't'}_{i}"
    return names


def _step_text(op: Operation) -> str:
    return op.callee.string_value() if isinstance(op, func.CallOp) else op.name


@dataclass(frozen=True)
class WeightsLayout:
    """Offsets of the parameters that are stored, and the bytes of the whole."""

    offsets: Mapping[str, int]
    bytes: int


def lay_out_weights(module: ModuleOp, used: Iterable[str]) -> WeightsLayout:
    """Give the `used` parameters, in this order, aligned offsets; drop parameters that nothing refers to.

    What the initialisers of derived parameters read is kept, without a place. Raises MSC0404 for an undeclared name.
    """
    parameters = {op.symbol: op for op in module.body.block.ops if isinstance(op, ParameterOp)}
    offsets: dict[str, int] = {}
    alignment, size = target_of(module).machine.align, 0
    for name in dict.fromkeys(used):
        if name not in parameters:
            raise refuse("plan-memory", module, f"parameter @{name} is not declared")
        offsets[name] = size
        parameters[name].attributes[LOOP_OFFSET] = IntegerAttr(size, i64)
        size = aligned(size + byte_size(buffer_type(tensor_type(parameters[name].type))), alignment)
    _drop_unneeded(parameters, offsets)
    return WeightsLayout(offsets, size)


def _drop_unneeded(parameters: Mapping[str, ParameterOp], stored: Iterable[str]) -> None:
    needed: set[str] = set()
    pending = list(stored)
    while pending:
        name = pending.pop()
        if name not in needed and name in parameters:
            needed.add(name)
            pending.extend(_read_by(parameters[name]))
    for name, parameter in parameters.items():
        if name not in needed:
            _erase(parameter)


def _read_by(parameter: ParameterOp) -> list[str]:
    return [op.symbol for op in parameter.walk() if isinstance(op, GetParameterOp)]


def _erase(op: Operation) -> None:
    block = op.parent_block()
    if block is not None:
        block.erase_op(op)


# The memory plan in readable form: a table of the buffers, and a picture of the arena over time. Plain Python.
_PICTURE_ROWS = 16
_PICTURE_COLUMNS = 64
_SYMBOLS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True)
class PlannedBuffer:
    """A buffer and its place; `in_place_of` names the buffer whose place it took over."""

    name: str
    bytes: int
    offset: int
    live: Interval
    in_place_of: str | None = None


@dataclass(frozen=True)
class MemoryPlan:
    """What `plan-memory` decided for an entry function. `steps` says what touches buffers, in order."""

    function: str
    buffers: tuple[PlannedBuffer, ...]
    steps: tuple[str, ...]
    workspace_bytes: int
    lower_bound: int
    weights_bytes: int
    strategy: str
    alignment: int = ALIGNMENT

    @property
    def bytes_without_reuse(self) -> int:
        """What the buffers take side by side."""
        return sum(aligned(b.bytes, self.alignment) for b in self.buffers)

    def __str__(self) -> str:
        return "\n".join((*self._summary(), *_table(self._rows()), *self._picture(), *self._legend())) + "\n"

    def _summary(self) -> Iterator[str]:
        yield f"memory plan of @{self.function}"
        yield (
            f"  workspace {self.workspace_bytes} bytes by {self.strategy}; lower bound {self.lower_bound},"
            f" without reuse {self.bytes_without_reuse}"
        )
        yield f"  weights   {self.weights_bytes} bytes"

    def _rows(self) -> list[tuple[str, ...]]:
        header = ("", "buffer", "bytes", "offset", "live", "in place of")
        rows = [
            (_symbol(i), b.name, str(b.bytes), str(b.offset), str(b.live), b.in_place_of or "-")
            for i, b in enumerate(self.buffers)
        ]
        return [header, *rows] if rows else []

    def _picture(self) -> Iterator[str]:
        """One row for each stretch of the arena, its end addresses on the left; one column for each step."""
        if not self.workspace_bytes or len(self.steps) > _PICTURE_COLUMNS:
            return
        height = min(_PICTURE_ROWS, -(-self.workspace_bytes // 64))
        yield ""
        for row in reversed(range(height)):
            low, high = (self.workspace_bytes * r // height for r in (row, row + 1))
            cells = "".join(self._cell(low, high, step) for step in range(len(self.steps)))
            yield f"  {low:>12} |{cells}|"

    def _cell(self, low: int, high: int, step: int) -> str:
        """The buffer with the most bytes of a stretch at a step."""
        best, most = ".", 0
        for i, b in enumerate(self.buffers):
            covered = min(high, b.offset + b.bytes) - max(low, b.offset)
            if b.live.first <= step <= b.live.last and covered > most:
                best, most = _symbol(i), covered
        return best

    def _legend(self) -> Iterator[str]:
        yield ""
        yield from (f"  step {i}: {step}" for i, step in enumerate(self.steps))


def _symbol(index: int) -> str:
    return _SYMBOLS[index % len(_SYMBOLS)]


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    yield ""
    for row in rows:
        cells = (c.rjust(w) if i in (2, 3) else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        yield ("  " + "  ".join(cells)).rstrip()
