"""Operators as the search sees them: which axes may be cut, where they stand in each tensor, and the work.

All of it is derived from the rules of basic operations, which are derived from compute definitions
(`msc/parallel/rules.py`). A composite operation is expanded on its own first. An axis whose terms are only summed is
cut by adding the parts; one that is summed and is in the result, too (the axis of a softmax), is never cut.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, prod
from typing import Literal, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from msc.dialects.element_types import BYTES, dtype_name
from msc.dialects.ms.base import BasicOp, MsOp
from msc.dialects.ms.structure import ConstantOp, GetParameterOp
from msc.graph.expand.expand_composites import ExpandComposites
from msc.ir.typed import is_tensor, tensor_type
from msc.parallel.rules import Rule, rule_of
from msc.poly.compute import Statement
from msc.poly.scalar import reads

AxisKind: TypeAlias = Literal["parallel", "reduced"]


@dataclass(frozen=True)
class TensorSize:
    """A tensor of a graph."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "f32"
    parameter: bool = False

    @property
    def bytes(self) -> int:
        """Bytes of all of it."""
        return prod(self.shape) * BYTES[self.dtype]


@dataclass(frozen=True)
class CutAxis:
    """An axis that may be cut; along a reduced one the parts of the result are summed."""

    name: str
    size: int
    kind: AxisKind = "parallel"


@dataclass(frozen=True)
class Use:
    """An operand or result: number of a tensor, and which axis cuts each of its dimensions, None for none."""

    tensor: int
    axes: tuple[int | None, ...]


@dataclass(frozen=True)
class MatrixWork:
    """Products of matrices inside an operator: sizes that no axis cuts, and the axes of each role."""

    m: tuple[int, ...] = ()
    n: tuple[int, ...] = ()
    k: tuple[int, ...] = ()
    batch: tuple[int, ...] = ()
    uncut: tuple[int, int, int, int] = (1, 1, 1, 1)


@dataclass(frozen=True)
class GraphOperator:
    """One operation of the graph."""

    name: str
    kind: str
    axes: tuple[CutAxis, ...]
    operands: tuple[Use, ...]
    result: Use
    work: tuple[MatrixWork, ...] = ()
    given: tuple[tuple[int, ...] | None, ...] | None = None
    """Into how many parts a person cuts each dimension of each operand, if one does; None leaves an operand open."""


@dataclass
class OperatorGraph:
    """Tensors and operators in the order of execution."""

    tensors: list[TensorSize] = field(default_factory=list[TensorSize])
    operators: list[GraphOperator] = field(default_factory=list[GraphOperator])

    def producers(self) -> dict[int, int]:
        """Tensor -> the operator that makes it."""
        return {op.result.tensor: number for number, op in enumerate(self.operators)}

    def edges(self) -> Iterator[tuple[int, int, int]]:
        """Each way of a tensor: its producer, a consumer, and the number of the consumer's operand."""
        made = self.producers()
        for number, op in enumerate(self.operators):
            for place, use in enumerate(op.operands):
                if use.tensor in made:
                    yield made[use.tensor], number, place

    @property
    def batch(self) -> int:
        """The outermost dimension of what the first operator reads that is no parameter; 1 if there is none."""
        read = (self.tensors[use.tensor] for op in self.operators for use in op.operands)
        first = next((tensor for tensor in read if not tensor.parameter and tensor.shape), None)
        return first.shape[0] if first is not None else 1

    @property
    def parameters(self) -> list[int]:
        """Tensors that are parameters, in order."""
        return [number for number, tensor in enumerate(self.tensors) if tensor.parameter]


def graph_of(
    function: FuncOp, arguments: Mapping[SSAValue, str] | None = None, among: Collection[Operation] | None = None
) -> OperatorGraph:
    """The operators of a function of static shapes; constants and what computes nothing are left out.

    `arguments` names those that are parameters; of the operations only those in `among` count, if it is given.
    """
    graph, numbers = OperatorGraph(), dict[SSAValue, int]()
    named_arguments = arguments or {}
    derived: dict[str, _Derived] = {}
    parameters: dict[str, int] = {}

    def number_of(value: SSAValue) -> int:
        if value not in numbers:
            owner = value.owner
            named = owner.parameter.string_value() if isinstance(owner, GetParameterOp) else named_arguments.get(value)
            if named is not None and named in parameters:
                numbers[value] = parameters[named]
                return numbers[value]
            type_ = tensor_type(value)
            name = named or value.name_hint or f"v{len(numbers)}"
            dtype = dtype_name(type_.element_type) or "f32"
            numbers[value] = len(graph.tensors)
            graph.tensors.append(TensorSize(name, tuple(type_.get_shape()), dtype, named is not None))
            if named is not None:
                parameters[named] = numbers[value]
        return numbers[value]

    counts: dict[str, int] = {}
    for op in operations(function, among):
        operands = [value for value in op.operands if is_tensor(value.type)]
        key = f"{op.name} {op.properties} {[v.type for v in op.operands]} {op.results[0].type}"
        if key not in derived:
            derived[key] = _Derivation(op, operands).derived()
        found = derived[key]
        kind = op.name.removeprefix("ms.")
        counts[kind] = counts.get(kind, -1) + 1
        name = op.results[0].name_hint or f"{kind}{counts[kind]}"
        uses = tuple(Use(number_of(v), axes) for v, axes in zip(operands, found.operands, strict=True))
        result = Use(number_of(op.results[0]), found.result)
        graph.operators.append(GraphOperator(name, kind, found.axes, uses, result, found.work))
    return graph


def operations(function: FuncOp, among: Collection[Operation] | None = None) -> Iterator[MsOp]:
    """The operations of a function that are operators of its graph, in order: those that give one tensor."""
    for op in function.body.block.ops if among is None else (op for op in function.body.block.ops if op in among):
        if not isinstance(op, MsOp) or isinstance(op, ConstantOp | GetParameterOp):
            continue
        if len(op.results) == 1 and is_tensor(op.results[0].type):
            yield op


@dataclass(frozen=True)
class _Derived:
    axes: tuple[CutAxis, ...]
    operands: tuple[tuple[int | None, ...], ...]
    result: tuple[int | None, ...]
    work: tuple[MatrixWork, ...]


_Place: TypeAlias = tuple[SSAValue, int]
"""A dimension of a tensor."""


class _Derivation:
    """One operation's axes: dimensions that the rules of its parts cut alike, by union and find."""

    def __init__(self, op: MsOp, operands: Sequence[SSAValue]) -> None:
        self._module, self._arguments, self._result = _alone(op, operands)
        self._parent: dict[_Place, _Place] = {}
        self._uncuttable: set[_Place] = set()
        self._summed: set[_Place] = set()
        self._divides: dict[_Place, int] = {}
        self._products: list[tuple[BasicOp, Rule]] = []

    def derived(self) -> _Derived:
        for inner in self._module.walk():
            if isinstance(inner, MsOp) and not isinstance(inner, ConstantOp):
                self._read(inner, rule_of(inner))
        sizes: dict[_Place, int] = {}
        for place, size in self._divides.items():
            root = self._find(place)
            sizes[root] = gcd(sizes.get(root, 0), size)
        bad, summed = ({self._find(place) for place in places} for places in (self._uncuttable, self._summed))
        results = {self._find(place) for place in self._places(self._result)}
        roots: dict[_Place, int] = {}
        axes: list[CutAxis] = []
        for place in (place for value in (*self._arguments, self._result) for place in self._places(value)):
            root = self._find(place)
            if root in roots or root in bad or sizes.get(root, 1) == 1 or (root in summed) == (root in results):
                continue
            roots[root] = len(axes)
            axes.append(CutAxis(_AXIS_NAMES[len(axes) % 8], sizes[root], "reduced" if root in summed else "parallel"))
        operands = tuple(self._axes(value, roots) for value in self._arguments)
        return _Derived(tuple(axes), operands, self._axes(self._result, roots), tuple(self._work(roots)))

    def _places(self, value: SSAValue) -> list[_Place]:
        return [(value, d) for d in range(len(tensor_type(value).get_shape()))]

    def _axes(self, value: SSAValue, roots: dict[_Place, int]) -> tuple[int | None, ...]:
        return tuple(roots.get(self._find(place)) for place in self._places(value))

    def _find(self, place: _Place) -> _Place:
        while place in self._parent:
            place = self._parent[place]
        return place

    def _read(self, op: MsOp, rule: Rule) -> None:
        first: dict[int, _Place] = {}
        for value, factors in zip((*op.operands, *op.results), (*rule.operands, *rule.results), strict=True):
            for place, factor, size in zip(self._places(value), factors, tensor_type(value).get_shape(), strict=True):
                if factor is None:
                    self._uncuttable |= {place} if size > 1 else set()
                    continue
                self._divides[place] = gcd(self._divides.get(place, 0), rule.divides[factor])
                self._summed |= {place} if factor in rule.reduced else set()
                a, b = self._find(place), self._find(first.setdefault(factor, place))
                if a != b:
                    self._parent[a] = b
        if isinstance(op, BasicOp) and op.is_basic and len(op.operands) == 2 and any(map(_is_product, op.compute())):
            self._products.append((op, rule))

    def _work(self, roots: dict[_Place, int]) -> Iterator[MatrixWork]:
        """The roles of axes in each product, and sizes of roles that no axis cuts: windows are terms of sums."""
        for op, rule in self._products:
            result = op.results[0]
            left, right = (set(factors) - {None} for factors in rule.operands)
            roles: dict[str, tuple[list[int], int]] = {role: ([], 1) for role in ("m", "n", "k", "batch")}
            made = tensor_type(result).get_shape()
            for place, factor, size in zip(self._places(result), rule.results[0], made, strict=True):
                role = "batch" if factor in left & right else "n" if factor in right - left else "m"
                self._add(roles, role, roots.get(self._find(place)), size)
            terms = max(statement.points for statement in op.compute()) // prod(made)
            for place, factor in zip(self._places(op.operands[0]), rule.operands[0], strict=True):
                axis = roots.get(self._find(place)) if factor in rule.reduced else None
                if axis is not None:
                    size = tensor_type(op.operands[0]).get_shape()[place[1]]
                    self._add(roles, "k", axis, size)
                    terms //= size
            m, n, k, batch = (tuple(roles[role][0]) for role in ("m", "n", "k", "batch"))
            yield MatrixWork(m, n, k, batch, (roles["m"][1], roles["n"][1], max(1, terms), roles["batch"][1]))

    @staticmethod
    def _add(roles: dict[str, tuple[list[int], int]], role: str, axis: int | None, size: int) -> None:
        axes, uncut = roles[role]
        roles[role] = (axes, uncut * size) if axis is None else ([*axes, axis], uncut)


def _is_product(statement: Statement) -> bool:
    return bool(statement.reduced) and statement.combine == "add" and len(list(reads(statement.body))) == 2


_AXIS_NAMES = "ijklpqrs"


def _alone(op: MsOp, operands: Sequence[SSAValue]) -> tuple[ModuleOp, list[SSAValue], SSAValue]:
    """A module with nothing but the operation, its composite parts expanded."""
    block = Block(arg_types=[value.type for value in op.operands])
    copy = op.clone(dict(zip(op.operands, block.args, strict=True)))
    block.add_op(copy)
    block.add_op(ReturnOp(copy.results[0]))
    function = FuncOp("alone", ([v.type for v in op.operands], [copy.results[0].type]), Region(block))
    module = ModuleOp([function])
    if not copy.is_basic:
        ExpandComposites().apply(Context(), module)
    places = {id(value): place for place, value in enumerate(op.operands)}
    last = block.last_op
    assert last is not None
    return module, [block.args[places[id(value)]] for value in operands], last.operands[0]
