"""What must hold of the indices of a graph before it runs: compiled code clamps an index, and never says so.

`index_checks` finds every index that is gathered by, and what else was said of a value (`Expected`, as of labels). An
index whose range shows that it stays inside needs no check. If its elements are those of an argument, the argument is
looked at before the call. Of any other one, the few operations that compute it are run before the call; if these are
not few, the index becomes a further result, and is looked at behind the call, which then must update nothing in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeAlias

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from msc.analysis.integer_bounds import Range, type_range
from msc.analysis.tensor_ranges import TensorRanges
from msc.dialects import ms
from msc.dialects.ms.base import MsOp, ViewOp
from msc.dialects.ms.elementwise import ElementwiseOp
from msc.dialects.ms.indexing import GatheringOp
from msc.dialects.ms.shapes import shape_of
from msc.dialects.ms.slices import SliceAccessOp
from msc.dialects.ms.structure import GetParameterOp
from msc.interp.graph import evaluate
from msc.interp.registry import evaluate_op
from msc.ir.locations import source_location
from msc.ir.typed import tensor_type
from msc.support.arrays import Array
from msc.support.diagnostics import Diagnostic, Location, MscError


@dataclass(frozen=True)
class Expected:
    """What the elements of a tensor must be: from `low` to `high`, or `but`. Words say it: `what`, element, `whole`.

    If it is `conditional`, a branch decides whether the tensor is used. If there is `shown_by`, that tensor is looked
    at instead.
    """

    low: int
    high: int
    what: str
    whole: str
    but: int | None = None
    help: str | None = None
    location: Location | None = None
    conditional: bool = False
    code: str = "MSC0610"
    shown_by: SSAValue | None = None

    def fails_at(self, array: Array) -> Array:
        """Where an array has other elements."""
        outside = (array < self.low) | (array > self.high)
        return outside if self.but is None else outside & (array != self.but)

    def error(self, array: Array, outside: Array) -> MscError:
        """MSC0610 for the first of these elements."""
        place = [int(i) for i in np.argwhere(outside)[0]]
        at = f" at {place}" if place else ""
        message = f"{self.what} {array[tuple(place)]}{at} is outside {self.whole}"
        return MscError(Diagnostic(self.code, message, self.location, help=self.help))

    def check(self, array: Array) -> None:
        """Raises MSC0610."""
        outside = self.fails_at(array)
        if outside.any():
            raise self.error(array, outside)


Said: TypeAlias = tuple[SSAValue, Expected]
"""A value, and what is expected of it."""


@dataclass(frozen=True)
class ArgumentCheck:
    """What is expected of the elements of argument number `argument`; unless `exact`, of some of them."""

    expected: Expected
    value: SSAValue
    argument: int
    exact: bool


@dataclass(frozen=True)
class ComputedCheck:
    """What is expected of a value that few operations compute."""

    expected: Expected
    value: SSAValue
    operations: Sequence[MsOp]


@dataclass
class IndexChecks:
    """The checks of a graph. `results` are values that the graph is to give as well, behind its own results."""

    arguments: list[ArgumentCheck] = field(default_factory=list[ArgumentCheck])
    computed: list[ComputedCheck] = field(default_factory=list[ComputedCheck])
    results: list[Said] = field(default_factory=list["Said"])
    entry: Block | None = None
    weights: Mapping[str, Array] = field(default_factory=dict[str, Array])

    @property
    def values(self) -> list[SSAValue]:
        """The values that the graph is to give behind its own results."""
        return [value for value, _ in self.results]

    def __bool__(self) -> bool:
        return bool(self.arguments or self.computed or self.results)

    def before(self, arrays: Sequence[Array]) -> None:
        """Look at the arguments of a call. Raises MSC0610."""
        for check in self.arguments:
            array = arrays[check.argument]
            if not _is_below(array, check.expected):
                self._look(check, array, arrays)
        for check in self.computed:
            self._check(check, arrays)

    def behind(self, results: Sequence[Array]) -> Sequence[Array]:
        """The results that a graph has of its own, after those that were added have been looked at. Raises MSC0610."""
        if not self.results:
            return results
        own = len(results) - len(self.results)
        for (_, expected), array in zip(self.results, results[own:], strict=True):
            expected.check(array)
        return results[:own]

    def _look(self, check: ArgumentCheck, array: Array, arrays: Sequence[Array]) -> None:
        outside = check.expected.fails_at(array)
        if not outside.any():
            return
        if check.exact:
            raise check.expected.error(array, outside)
        assert self.entry is not None
        operations = _slice(check.value, self.entry)
        if operations is None:
            self._run_whole(arrays)
        else:
            self._check(ComputedCheck(check.expected, check.value, operations), arrays)

    def _check(self, check: ComputedCheck, arrays: Sequence[Array]) -> None:
        array = self._computed(check, arrays)
        if not check.expected.conditional:
            check.expected.check(array)
        elif check.expected.fails_at(array).any():
            self._run_whole(arrays)

    def _run_whole(self, arrays: Sequence[Array]) -> None:
        """Run the graph in the interpreter, which refuses an index where it is used: a branch may not use it."""
        module = self.entry.get_toplevel_object() if self.entry is not None else None
        if isinstance(module, ModuleOp):
            evaluate(module, [array.copy() for array in arrays], self.weights)

    def _computed(self, check: ComputedCheck, arrays: Sequence[Array]) -> Array:
        assert self.entry is not None
        return _evaluated(check, dict(zip(self.entry.args, arrays, strict=True)), self.weights)


def _evaluated(check: ComputedCheck, given: Mapping[SSAValue, Array], weights: Mapping[str, Array]) -> Array:
    values = dict(given)
    for op in check.operations:
        if isinstance(op, GetParameterOp):
            values[op.results[0]] = weights[op.symbol]
        else:
            values.update(zip(op.results, evaluate_op(op, *(values[v] for v in op.operands)), strict=True))
    return values[check.value]


def _is_below(array: Array, expected: Expected) -> bool:
    """Whether no element is negative or above the limit: what usually holds, in one pass."""
    return not array.size or int(np.maximum.reduce(array.view(f"u{array.itemsize}"), axis=None)) <= expected.high


def index_checks(
    entry: Block,
    said: Sequence[Said] = (),
    within: Sequence[tuple[SSAValue, Range]] = (),
    weights: Mapping[str, Array] | None = None,
) -> IndexChecks:
    """The checks of a graph. `said` is what is expected of values, `within` ranges that follow from it.

    Raises MSC0610 for an index that no argument changes.
    """
    found = IndexChecks(entry=entry, weights=weights or {})
    ranges = TensorRanges()
    for value, range_ in within:
        ranges.assume(value, range_)
    indices = (said for op in entry.walk() for said in _of_operation(op))
    for value, expected in [*((v, e) for v, e in said if _is_there(v, entry)), *indices]:
        range_ = ranges.of(value)
        if range_ is None or expected.low > range_[0] or range_[1] > expected.high:
            _add(found, expected.shown_by or value, expected, ranges)
        if expected.but is None and not expected.conditional:
            ranges.assume(value, (expected.low, expected.high))
    return found


def _of_operation(op: Operation) -> Iterable[Said]:
    """The index of an operation that is given one."""
    match op:
        case GatheringOp():
            size = op.shape(0)[op.int_("axis")]
        case ms.ScatterAddOp() | SliceAccessOp():
            size = op.shape(0)[0]
        case _:
            return
    whole = f"a dimension of size {size}"
    what, location, conditional = f"{op.name}: index", source_location(op), _is_conditional(op.parent)
    yield op.operands[1], Expected(-size, size - 1, what, whole, location=location, conditional=conditional)


def _add(found: IndexChecks, value: SSAValue, expected: Expected, ranges: TensorRanges) -> None:
    """The cheapest check of a value; none for one that a loop computes, or chooses."""
    entry = found.entry
    assert entry is not None
    if not expected.conditional and _is_conditional(block_of(value)):
        expected = replace(expected, conditional=True)
    source = _source(value, entry, ranges)
    if source is not None:
        argument, exact = source
        found.arguments.append(ArgumentCheck(expected, value, argument, exact and not expected.conditional))
        return
    operations = _slice(value, entry)
    if operations is None:
        if block_of(value) is entry and not expected.conditional:
            found.results.append((value, expected))
        return
    check = ComputedCheck(expected, value, operations)
    if any(isinstance(v, BlockArgument) for op in operations for v in op.operands):
        found.computed.append(check)
    elif not expected.conditional:
        expected.check(_evaluated(check, {}, found.weights))


def block_of(value: SSAValue) -> Block | None:
    """The block that computes a value, or whose argument it is."""
    return value.owner if isinstance(value.owner, Block) else value.owner.parent


def _is_there(value: SSAValue, entry: Block) -> bool:
    """Whether a value is one of the graph, and not of a block that was given up."""
    block = block_of(value)
    while block is not None and block is not entry:
        block = block.parent_block()
    return block is entry


def _is_conditional(block: Block | None) -> bool:
    """Whether a branch decides if a block runs."""
    while block is not None and (parent := block.parent_op()) is not None:
        if isinstance(parent, scf.IfOp):
            return True
        block = parent.parent
    return False


def is_once(block: Block | None, entry: Block) -> bool:
    """Whether a block is that of the entry or of its branches: no loop runs it several times."""
    while block is not None and block is not entry:
        parent = block.parent_op()
        block = parent.parent if isinstance(parent, scf.IfOp) else None
    return block is entry


def _source(value: SSAValue, entry: Block, ranges: TensorRanges) -> tuple[int, bool] | None:
    """The argument whose elements a value has, and whether it has all of them; None if that is not so."""
    exact = True
    while isinstance(value, OpResult):
        match value.op:
            case ms.CastOp() as op:
                range_, whole = ranges.of(op.operands[0]), type_range(tensor_type(value.type).element_type)
                if range_ is None or whole is None or range_[0] < whole[0] or range_[1] > whole[1]:
                    return None
            case ms.ExtractSliceOp() as op if block_of(value) is not entry:
                pass  # a loop runs over all of them
            case ms.SliceOp() | ms.ExtractSliceOp() | GatheringOp() as op:
                exact = False
            case ViewOp() | ms.TransposeOp() | ms.BroadcastToOp() | ms.TileOp() | ms.ReverseOp() as op:
                exact = exact and bool(prod(shape_of(tensor_type(value.type))))
            case ms.IdentityOp() | ms.StopGradientOp() as op:
                pass
            case _:
                return None
        value = op.operands[0]
    return (value.index, exact) if isinstance(value, BlockArgument) and value.block is entry else None


_FEW = 64
"""Operations that are run before a call for one index, at most."""

_LIGHT = (
    *(ElementwiseOp, ViewOp, GatheringOp, SliceAccessOp, GetParameterOp, ms.SelectOp, ms.ConstantOp, ms.IotaOp),
    *(ms.TransposeOp, ms.BroadcastToOp, ms.SliceOp, ms.ConcatOp, ms.StackOp, ms.TileOp, ms.ReverseOp),
)
"""Operations that take a step or so for each element of their results."""


def _slice(value: SSAValue, entry: Block) -> list[MsOp] | None:
    """The operations that compute a value, in order; None if they are many, heavy, or in a loop."""
    found: dict[MsOp, None] = {}
    waiting: list[tuple[SSAValue, bool]] = [(value, False)]
    while waiting:
        current, is_done = waiting.pop()
        if isinstance(current, BlockArgument):
            if current.block is not entry:
                return None
            continue
        op = current.owner
        if (
            not isinstance(op, MsOp)
            or not isinstance(op, _LIGHT)
            or not is_once(op.parent, entry)
            or len(found) >= _FEW
        ):
            return None
        if is_done:
            found[op] = None
        elif op not in found:
            waiting.append((current, True))
            waiting += [(operand, False) for operand in op.operands]
    return list(found)
