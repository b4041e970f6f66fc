"""The graph that reading writes: one `graph`-stage function, its inputs, and the parameters that it reads."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from xdsl.dialects import func, scf, tensor
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, TensorType, i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import Pure

from msc.dialects.element_types import dtype_name
from msc.dialects.ms.attributes import MS_NAME, MS_STRATEGY
from msc.dialects.ms.building import GraphBuilder as Writer
from msc.dialects.ms.pipeline import PipelinePass
from msc.dialects.ms.shapes import shape_of
from msc.dialects.ms.structure import GetParameterOp, ParameterOp
from msc.dialects.ms.values import Value, known
from msc.frontend.capture import INSTALLED, Property, Symbol
from msc.frontend.dtypes import DType, by_name
from msc.frontend.immediate import built
from msc.frontend.parameter import Parameter
from msc.graph.index_checks import Expected, IndexChecks, block_of, index_checks, is_once
from msc.ir.locations import file_location
from msc.ir.typed import tensor_type as type_of
from msc.support.arrays import Array

if TYPE_CHECKING:
    from msc.support.diagnostics import Location


class GraphValue(Symbol):
    """A value of a graph. Once the graph has run, `array` is what it came to."""

    __slots__ = ("__weakref__", "array", "graph")

    def __init__(self, graph: Graph, ssa: SSAValue, dtype: DType, shape: tuple[int, ...]) -> None:
        super().__init__(ssa, dtype, shape)
        self.graph = graph
        self.array: Array | None = None

    def is_outermost(self, entry: Block) -> bool:
        """Whether `entry` itself defines the value, not a block inside it."""
        owner = self.ssa.owner
        return (owner if isinstance(owner, Block) else owner.parent) is entry

    def is_in(self, block: Block) -> bool:
        """Whether `block`, or one inside it, defines the value."""
        owner = self.ssa.owner
        current = owner if isinstance(owner, Block) else owner.parent
        while current is not None and current is not block:
            current = current.parent_block()
        return current is block


@dataclass
class Input:
    """An argument of the function. `value` gives its array when the function is called; `parameter` is whose value."""

    symbol: GraphValue
    value: Callable[[Sequence[Array]], Array]
    parameter: Parameter | None = None


@dataclass(frozen=True)
class _AsItLies:
    """The elements of a parameter."""

    parameter: Parameter

    def __call__(self, _: Sequence[Array]) -> Array:
        return cast(Array, self.parameter.content)


class _InCOrder:
    """The elements of a parameter row by row: in a copy, made once a version, where they lie in another order."""

    def __init__(self, parameter: Parameter) -> None:
        self._parameter = parameter
        self._copied: tuple[weakref.ref[Array], int, Array] | None = None

    def __call__(self, _: Sequence[Array]) -> Array:
        array, version = cast(Array, self._parameter.content), self._parameter.version
        if array.flags.c_contiguous:
            return array
        if self._copied is None or self._copied[0]() is not array or self._copied[1] != version:
            self._copied = weakref.ref(array), version, array.copy()
        return self._copied[2]


class Graph:
    """A function while it is written. `block` is where operations go; `inputs` are its arguments so far."""

    def __init__(self, place: Callable[[], Location | None], on_frozen: Callable[[Parameter], None]) -> None:
        self.entry = Block()
        self.writer = Writer(self.entry, Value)
        self.inputs: list[Input] = []
        self.parameters: dict[str, Array] = {}
        """The values that parameters have before the graph writes any."""
        self.blocks: list[Block] = []
        self.expected: list[tuple[SSAValue, Expected]] = []
        """What the elements of values must be, in a call."""
        self.within: list[tuple[SSAValue, tuple[int, int]]] = []
        """Ranges of values that follow from what is expected."""
        self._place = place
        self._on_frozen = on_frozen
        self._values: list[weakref.ref[GraphValue]] = []
        self._frozen: dict[int, tuple[Parameter, GetParameterOp]] = {}
        self._carried: dict[int, tuple[object, GraphValue]] = {}

    # Values.

    def symbol(self, value: SSAValue) -> GraphValue:
        type_ = type_of(value)
        made = GraphValue(self, value, by_name(dtype_name(type_.element_type) or "f32"), shape_of(type_))
        self._values.append(weakref.ref(made))
        return made

    def living(self) -> list[GraphValue]:
        """The values that something still refers to."""
        return [value for reference in self._values if (value := reference()) is not None]

    def add_input(
        self,
        array_type: TensorType[Attribute],
        value: Callable[[Sequence[Array]], Array],
        parameter: Parameter | None = None,
    ) -> GraphValue:
        """A further argument of the function."""
        argument = self.entry.insert_arg(array_type, len(self.entry.args))
        symbol = self.symbol(argument)
        self.inputs.append(Input(symbol, value, parameter))
        return symbol

    def carry(self, owner: object, array: Array) -> GraphValue:
        """An argument for an array that is known by now, but was not when the program was read; one for each owner."""
        if id(owner) not in self._carried:
            symbol = self.add_input(known(array).type, lambda _: array)
            self._carried[id(owner)] = (owner, symbol)
        return self._carried[id(owner)][1]

    def read(self, parameter: Parameter) -> GraphValue:
        """The value of a parameter that nothing has written."""
        found = self._frozen.get(id(parameter))
        if found is None:
            array = cast(Array, parameter.content)
            name = self.writer.names.symbol(parameter.name)
            op = self.writer.insert_constant(GetParameterOp(name, known(array).type))
            self.parameters[name] = array
            self._on_frozen(parameter)
            found = self._frozen[id(parameter)] = (parameter, op)
        return self.symbol(found[1].results[0])

    def frozen(self) -> list[Parameter]:
        """The parameters that were read, and that nothing has written."""
        return [parameter for parameter, _ in self._frozen.values()]

    def symbols(self) -> dict[str, Parameter]:
        """The same by their names in the module."""
        return {op.symbol: parameter for parameter, op in self._frozen.values()}

    def thaw(self, parameter: Parameter, *, is_written: bool) -> None:
        """Make an argument of a parameter that was read: calls may change it."""
        found = self._frozen.pop(id(parameter), None)
        if found is None:
            return
        op = found[1]
        del self.parameters[op.symbol]
        value = _AsItLies(parameter) if is_written else _InCOrder(parameter)
        symbol = self.add_input(op.result_tensor(0), value, parameter)
        op.results[0].replace_all_uses_with(symbol.ssa)
        for value in self.living():
            if value.ssa is op.results[0]:
                value.ssa = symbol.ssa

    # Operations.

    def emit(
        self, name: str, operands: Sequence[SSAValue | None], properties: Mapping[str, Property]
    ) -> tuple[GraphValue, ...]:
        """Append `ms.<name>`. Raises the errors that it verifies at the user's line."""
        op = built(name, operands, properties)
        strategy, ranks = INSTALLED.strategy or (), [len(type_of(v).get_shape()) for v in op.operands]
        if (
            strategy
            and [rank if row is None else len(row) for row, rank in zip(strategy, ranks, strict=False)] == ranks
        ):
            rows = [list(row) if isinstance(row, tuple) else row and str(row) for row in strategy]
            op.attributes[MS_STRATEGY] = StringAttr(json.dumps(rows))
            INSTALLED.strategy = None
        self.insert(op)
        return tuple(map(self.symbol, op.results))

    def expect(self, value: SSAValue, expected: Expected) -> None:
        """The elements of a value must be so; an error names the place of the user's code that stands here."""
        self.expected.append((value, replace(expected, location=self._place())))

    def insert(self, op: Operation) -> Operation:
        if INSTALLED.stage is not None or INSTALLED.micro is not None:
            self._mark_pass(op)
        place = self._place()
        if place is not None:
            op.location = file_location(place.file, place.line, place.column)
        self.writer.block.add_op(op)
        return op

    def _mark_pass(self, op: Operation) -> None:
        """The stage is that of the cells around, or the last of those that give the operands."""
        before = [PipelinePass.of(v.owner) for v in op.operands if isinstance(v.owner, Operation)]
        given = [found.stage for found in before if found is not None and not found.backward]
        stage = max(given, default=None) if INSTALLED.stage is None else INSTALLED.stage
        if stage is not None:
            PipelinePass(False, INSTALLED.micro or 0, stage).mark(op)

    def constant(self, array: Array) -> SSAValue:
        return self.writer.ssa(known(array))

    def scalar(self, condition: SSAValue) -> SSAValue:
        """The element of a boolean tensor of rank 0, as `scf` takes it."""
        return self.insert(tensor.ExtractOp(condition, [], i1)).results[0]

    # Regions.

    @contextmanager
    def inside(self, block: Block) -> Generator[Block]:
        """Within, operations are appended to `block`."""
        outer, self.writer.block = self.writer.block, block
        self.blocks.append(block)
        try:
            yield block
        finally:
            self.writer.block = outer
            self.blocks.pop()

    @property
    def depth(self) -> int:
        """How many regions the place being written is inside."""
        return len(self.blocks)

    def choose(self, condition: SSAValue, then: Block, orelse: Block, types: Sequence[Attribute]) -> Sequence[SSAValue]:
        op = scf.IfOp(self.scalar(condition), types, [then], [orelse])
        return self.insert(op).results

    def repeat(self, starts: Sequence[SSAValue], before: Block, after: Block) -> Sequence[SSAValue]:
        op = scf.WhileOp(starts, [v.type for v in starts], Region(before), Region(after))
        return self.insert(op).results

    # The whole.

    def checks(self, results: Sequence[SSAValue]) -> IndexChecks:
        """What must hold of the indices of the graph, before it is finished. Raises MSC0610."""
        self.writer.block.add_op(func.ReturnOp(*results))
        remove_dead(self.entry, self._expected_values())
        last = self.entry.last_op
        assert last is not None
        last.detach()
        last.erase()
        return index_checks(self.entry, self.expected, self.within, self.weights())

    def _expected_values(self) -> set[SSAValue]:
        values = {
            shown for value, expected in self.expected for shown in (value, expected.shown_by) if shown is not None
        }
        return {value for value in values if is_once(block_of(value), self.entry)}

    def finish(self, results: Sequence[SSAValue]) -> ModuleOp:
        """The module: `@main` with these results, and the parameters that it reads."""
        self.writer.block.add_op(func.ReturnOp(*results))
        remove_dead(self.entry, self._expected_values())
        used = {op.symbol for op in self.entry.walk() if isinstance(op, GetParameterOp)}
        self.parameters = {n: array for n, array in self.parameters.items() if n in used}
        kinds = ([a.type for a in self.entry.args], [r.type for r in results])
        function = func.FuncOp("main", kinds, Region(self.entry))
        function.arg_attrs = _named("x", len(kinds[0]))
        function.res_attrs = _named("y", len(kinds[1]))
        large = {n: known(a).type for n, a in self.writer.parameters.items() if n in used}
        declared = {n: known(array).type for n, array in self.parameters.items()} | large
        return ModuleOp([*(ParameterOp(n, t) for n, t in declared.items()), function])

    def weights(self) -> dict[str, Array]:
        """The values of the parameters of the module."""
        return self.parameters | self.writer.parameters


def _named(letter: str, count: int) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr([DictionaryAttr({MS_NAME: StringAttr(f"{letter}{i}")}) for i in range(count)])


def remove_dead(block: Block, kept: Collection[SSAValue] = ()) -> None:
    """Erase operations whose results nobody uses, inside regions too, but for some that are kept."""
    for op in reversed(list(block.ops)):
        for region in op.regions:
            for inner in region.blocks:
                remove_dead(inner, kept)
        if any(result in kept for result in op.results):
            continue
        removable = op.has_trait(Pure) or isinstance(op, scf.IfOp | scf.WhileOp | tensor.ExtractOp)
        if removable and op.results and not any(r.first_use is not None for r in op.results):
            op.detach()
            op.erase(safe_erase=False)
