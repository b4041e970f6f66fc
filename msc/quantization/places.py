"""Where a graph is quantised: the layers computed in integers, and the values that become integers for them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from msc.analysis.constancy import Constancy
from msc.dialects import ms
from msc.dialects.element_types import dtype_name
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.convolution import WeightedWindowOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.pooling import AvgPoolOp, GlobalAvgPoolOp, GlobalMaxPoolOp, MaxPoolOp
from msc.dialects.ms.structure import GetParameterOp
from msc.dialects.ms.transposed_convolution import TransposedConvolutionOp
from msc.dialects.ms.views import ViewOp
from msc.ir.entry import find_entry
from msc.ir.typed import tensor_type
from msc.support.diagnostics import Diagnostic, MscError

PRODUCTS = (MatrixProductOp, ms.DenseOp, WeightedWindowOp)
"""Layers with a weight: what quantising pays for."""
BETWEEN = (ms.AddOp, ms.ConcatOp, AvgPoolOp, GlobalAvgPoolOp, ms.ReduceMeanOp)
"""Operations of few or no weights: in integers, they keep a network in integers."""
MOVES = (ViewOp, ms.TransposeOp, ms.SliceOp, MaxPoolOp, GlobalMaxPoolOp, ms.ReverseOp)
"""Operations that give elements of their operand: scale and zero point stay what they are."""
LIMITS = (ms.ReluOp, ms.Relu6Op, ms.ClipOp)
"""Activations that are limits of the integers; they belong to the layer before them."""


@dataclass(frozen=True)
class QuantisedLayer:
    """An operation that is computed in integers; `weight` is its constant operand, None if both are inputs.

    `channel` is the axis of the weight along which the outputs lie. `number` counts operations of the graph.
    """

    op: MsOp
    name: str
    number: int
    weight: SSAValue | None = None
    channel: int | None = None


@dataclass
class Places:
    """The layers of a graph, and the values that become integers, each with the number of its range.

    Values with the same number share scale and zero point: what moves elements gives what it takes.
    """

    function: FuncOp
    layers: list[QuantisedLayer]
    between: bool
    values: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def reads_integers(self, op: Operation) -> bool:
        """Whether an operation reads the integers of a quantised value, and not the reals.

        If layers give integers, all do but what gives results: then no real value is kept beside the integers.
        """
        if self.between:
            return not isinstance(op, ReturnOp)
        return isinstance(op, MOVES) or any(layer.op is op for layer in self.layers)

    def position(self, value: SSAValue) -> tuple[int, int]:
        """What names a value in every copy of the graph: the number of its operation, -1 for an argument."""
        if isinstance(value, OpResult):
            return self.numbers[value.op], value.index
        assert isinstance(value, BlockArgument)
        return -1, value.index

    @cached_property
    def numbers(self) -> dict[Operation, int]:
        """The operations of the graph by their place."""
        return {op: number for number, op in enumerate(self.function.body.block.ops)}


def entry_of(module: ModuleOp) -> FuncOp:
    """The function that a model is. Raises MSC1210 for a model of several functions or with control flow."""
    function = find_entry(module)
    if function is None or len(function.body.blocks) != 1:
        raise MscError(Diagnostic("MSC1210", "the model has no function of one block", help="quantise one model"))
    return function


def find_places(module: ModuleOp, keep: Collection[str] = (), *, between: bool | None = None) -> Places:
    """The layers that can be computed in integers, but those named in `keep`, and the values around them.

    With `between`, additions, concatenations and averages between layers are in integers, too, and layers give
    integers; None: if there is a convolution. Raises MSC1210 where nothing can be quantised.
    """
    function = entry_of(module)
    constancy = Constancy()
    ops = list(function.body.block.ops)
    layers = list(_layers(ops, constancy))
    if not layers:
        message = "the model has no convolution or matrix product of f32: there is nothing to quantise"
        raise MscError(Diagnostic("MSC1210", message))
    layers = [layer for layer in layers if layer.name not in keep]
    if between is None:
        between = any(isinstance(op, WeightedWindowOp) for op in ops)
    if between:
        layers += _between(ops, layers, constancy, keep)
    places = Places(function, layers, between)
    _mark(places, function.body.block, constancy, between)
    return places


def _layers(ops: list[Operation], constancy: Constancy) -> Iterator[QuantisedLayer]:
    names = _Names()
    for number, op in enumerate(ops):
        if not isinstance(op, PRODUCTS) or not _is_real(op):
            continue
        weight = op.operands[1]
        constant = constancy.of(weight)
        if constancy.of(op.operands[0]):
            continue
        channel = _channel(op) if constant else None
        yield QuantisedLayer(
            op, names.of(op, weight if constant else None), number, weight if constant else None, channel
        )


def _between(
    ops: list[Operation], layers: list[QuantisedLayer], constancy: Constancy, keep: Collection[str]
) -> list[QuantisedLayer]:
    """Operations of `BETWEEN` on values that layers give, or give on."""
    names, found = _Names(), list[QuantisedLayer]()
    integers = {_end(layer.op, constancy) for layer in layers}
    for number, op in enumerate(ops):
        if not isinstance(op, MsOp) or not op.results:
            continue
        known = [operand in integers for operand in op.operands if not constancy.of(operand)]
        if isinstance(op, MOVES) and any(known):
            integers.add(op.results[0])
        if isinstance(op, BETWEEN) and _is_real(op) and known and any(known) and len(known) == len(op.operands):
            name = names.of(op, None)
            if name not in keep:
                found.append(QuantisedLayer(op, name, number))
                integers.add(_end(op, constancy))
    return found


class _Names:
    """A name for each layer: its weight's, or the operation's, with a number where that is taken."""

    def __init__(self) -> None:
        self._taken = set[str]()

    def of(self, op: MsOp, weight: SSAValue | None) -> str:
        if weight is not None and isinstance(weight, OpResult) and isinstance(weight.op, GetParameterOp):
            name = weight.op.symbol
        else:
            name = op.results[0].name_hint or op.name.removeprefix("ms.")
        number, free = 1, name
        while free in self._taken:
            number += 1
            free = f"{name}#{number}"
        self._taken.add(free)
        return free


def _is_real(op: MsOp) -> bool:
    return all(dtype_name(tensor_type(value).element_type) == "f32" for value in (*op.operands, *op.results))


def _channel(op: MsOp) -> int | None:
    """The axis of the weight along which the layer's outputs lie; None where groups divide it."""
    rank = len(tensor_type(op.operands[1]).get_shape())
    match op:
        case TransposedConvolutionOp():
            return 1 if op.int_("group") == 1 else None
        case WeightedWindowOp() | ms.DenseOp():
            return 0
        case MatrixProductOp():
            return rank - (2 if op.flag("transpose_b") else 1) if rank > 1 else None
        case _:
            return None


def _end(op: MsOp, constancy: Constancy) -> SSAValue:
    """What a layer gives once its constant addend and its limits are applied, as long as nothing else reads it."""
    value: SSAValue = op.results[0]
    while (user := value.get_user_of_unique_use()) is not None:
        is_bias = isinstance(user, ms.AddOp) and any(constancy.of(operand) for operand in user.operands)
        if not isinstance(user, LIMITS) and not is_bias:
            break
        value = user.results[0]
    return value


def _mark(places: Places, block: Block, constancy: Constancy, between: bool) -> None:
    """Number the values: what layers read, what they give if `between`, and what moves between these."""
    ranges = _Ranges()
    for layer in places.layers:
        for operand in layer.op.operands[:2] if isinstance(layer.op, PRODUCTS) else layer.op.operands:
            if not constancy.of(operand):
                ranges.add(operand)
        end = _end(layer.op, constancy)
        if between and not all(isinstance(use.operation, ReturnOp) for use in end.uses):
            ranges.add(end)
        if isinstance(layer.op, ms.ConcatOp):
            ranges.join(*layer.op.operands, end)
    ops = list(block.ops)
    for op in (*ops, *reversed(ops)):
        if isinstance(op, MOVES) and not constancy.of(op.operands[0]):
            x, y = op.operands[0], op.results[0]
            if y in ranges or (x in ranges and any(_is_quantised(places, use.operation) for use in y.uses)):
                ranges.add(x)
                ranges.add(y)
                ranges.join(x, y)
    places.values = ranges.numbered()


def _is_quantised(places: Places, op: Operation) -> bool:
    return any(layer.op is op for layer in places.layers) or isinstance(op, MOVES)


class _Ranges:
    """Sets of values that share a range."""

    def __init__(self) -> None:
        self._parent: dict[SSAValue, SSAValue] = {}

    def __contains__(self, value: SSAValue) -> bool:
        return value in self._parent

    def add(self, value: SSAValue) -> None:
        self._parent.setdefault(value, value)

    def _root(self, value: SSAValue) -> SSAValue:
        while self._parent[value] is not value:
            value = self._parent[value]
        return value

    def join(self, *values: SSAValue) -> None:
        known = [self._root(value) for value in values if value in self._parent]
        for root in known[1:]:
            self._parent[self._root(root)] = self._root(known[0])

    def numbered(self) -> dict[SSAValue, int]:
        numbers: dict[SSAValue, int] = {}
        return {value: numbers.setdefault(self._root(value), len(numbers)) for value in self._parent}
