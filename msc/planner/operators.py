"""Operators as the search sees them: which axes may be cut, where they stand in each tensor, and the work.

All of it is derived from compute definitions. A composite operation is expanded on its own first. Dimensions of tensors
that one loop of a statement runs over are one axis. An axis whose terms are only summed is cut by adding the parts; one
that is summed and is in the result, too (the axis of a softmax), is never cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import gcd, prod
from typing import Literal, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr

from msc.dialects.element_types import BYTES, dtype_name
from msc.dialects.ms.base import BasicOp, MsOp, ViewOp
from msc.dialects.ms.structure import ConstantOp, GetParameterOp
from msc.graph.expand.expand_composites import ExpandComposites
from msc.ir.typed import is_tensor, tensor_type
from msc.poly.compute import Statement
from msc.poly.scalar import reads

AxisKind: TypeAlias = Literal["parallel", "reduced", "window"]


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
    """An axis that may be cut. A `window` is cut with `halo` rows of the operand fetched from both neighbours."""

    name: str
    size: int
    kind: AxisKind = "parallel"
    halo: int = 0


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
    given: tuple[tuple[int, ...], ...] | None = None
    """Into how many parts a person cuts each dimension of each operand, if one does."""


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


def graph_of(function: FuncOp) -> OperatorGraph:
    """The operators of a function of static shapes; constants and what computes nothing are left out."""
    graph, numbers = OperatorGraph(), dict[SSAValue, int]()
    derived: dict[str, _Derived] = {}
    parameters: dict[str, int] = {}

    def number_of(value: SSAValue) -> int:
        if value not in numbers:
            owner = value.owner
            named = owner.parameter.string_value() if isinstance(owner, GetParameterOp) else None
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
    for op in function.body.block.ops:
        if not isinstance(op, MsOp) or isinstance(op, ConstantOp | GetParameterOp) or len(op.results) != 1:
            continue
        if not is_tensor(op.results[0].type):
            continue
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


@dataclass(frozen=True)
class _Derived:
    axes: tuple[CutAxis, ...]
    operands: tuple[tuple[int | None, ...], ...]
    result: tuple[int | None, ...]
    work: tuple[MatrixWork, ...]


_Place: TypeAlias = tuple[SSAValue | tuple[Operation, int], int]
"""A dimension of a tensor, or a loop of a statement of an operation."""


class _Derivation:
    """One operation's axes: loops and dimensions that run together, by union and find."""

    def __init__(self, op: MsOp, operands: Sequence[SSAValue]) -> None:
        self._module, self._arguments, self._result = _alone(op, operands)
        self._parent: dict[_Place, _Place] = {}
        self._uncuttable: set[_Place] = set()
        self._summed: set[_Place] = set()
        self._halo: dict[_Place, int] = {}
        self._extent: dict[_Place, int] = {}
        self._statements: list[tuple[Operation, int, Statement]] = []

    def derived(self) -> _Derived:
        for inner in self._module.walk():
            if isinstance(inner, MsOp) and not isinstance(inner, ConstantOp):
                self._read(inner)
        roots: dict[_Place, int] = {}
        axes: list[CutAxis] = []
        results = {self._find((self._result, d)) for d in range(len(self._shape(self._result)))}
        bad, summed = ({self._find(place) for place in places} for places in (self._uncuttable, self._summed))
        halos: dict[_Place, int] = {}
        for place, rows in self._halo.items():
            halos[self._find(place)] = max(rows, halos.get(self._find(place), 0))
        outer = [(value, d) for value in (*self._arguments, self._result) for d in range(len(self._shape(value)))]
        sizes: dict[_Place, int] = {}
        for place in outer:
            if place in self._extent:
                root = self._find(place)
                sizes[root] = gcd(sizes.get(root, 0), self._extent[place])
        for place in outer:
            root = self._find(place)
            if root in roots or root in bad or root not in sizes or (root in summed and root in results):
                continue
            kind: AxisKind = "reduced" if root in summed else "window" if halos.get(root) else "parallel"
            if sizes[root] > 1 and (kind == "reduced" or root in results):
                roots[root] = len(axes)
                axes.append(CutAxis(_AXIS_NAMES[len(axes) % 8], sizes[root], kind, halos.get(root, 0)))
        held = [tuple(roots.get(self._find((v, d))) for d in range(len(self._shape(v)))) for v in self._arguments]
        result = tuple(roots.get(self._find((self._result, d))) for d in range(len(self._shape(self._result))))
        return _Derived(tuple(axes), tuple(held), result, tuple(self._work(roots)))

    def _shape(self, value: SSAValue) -> tuple[int, ...]:
        return tuple(tensor_type(value).get_shape())

    def _find(self, place: _Place) -> _Place:
        while place in self._parent:
            place = self._parent[place]
        return place

    def _join(self, a: _Place, b: _Place) -> None:
        first, second = self._find(a), self._find(b)
        if first != second:
            self._parent[first] = second

    def _read(self, op: MsOp) -> None:
        if isinstance(op, ViewOp):
            self._view(op)
            return
        if not isinstance(op, BasicOp) or not op.is_basic:
            for value in (*op.operands, *op.results):
                self._uncuttable |= {(value, d) for d in range(len(self._shape(value)))}
            return
        for number, statement in enumerate(op.compute()):
            self._statements.append((op, number, statement))
            loops: list[_Place] = [((op, number), i) for i in range(len(statement.extents))]
            self._extent |= dict(zip(loops, statement.extents, strict=True))
            self._summed |= {loops[i] for i in statement.reduced}
            result = op.results[statement.result]
            for d, expr in enumerate(statement.write.results):
                self._link((result, d), expr, loops, self._shape(result)[d], ())
            for read in reads(statement.body):
                indirect = {dimension for dimension, _ in read.indirect}
                value = op.operands[read.operand]
                for d, expr in enumerate(read.index.results):
                    if d in indirect:
                        self._uncuttable.add((value, d))
                    else:
                        self._link((value, d), expr, loops, self._shape(value)[d], statement.reduced)

    def _link(self, place: _Place, expr: AffineExpr, loops: list[_Place], size: int, reduced: Sequence[int]) -> None:
        used = sorted(expr.used_dims())
        along = [i for i in used if i not in reduced] or used
        if not used:
            return
        if len(along) > 1 or not _is_near(expr, len(loops), used):
            self._uncuttable |= {place, *(loops[i] for i in used)}
            return
        loop = loops[along[0]]
        offset = abs(expr.eval([0] * len(loops), []))
        rows = offset + sum(self._extent[loops[i]] - 1 for i in used if i != along[0])
        self._halo[loop] = max(rows, self._halo.get(loop, 0))
        self._extent[place] = size
        self._join(place, loop)
        self._uncuttable |= {loops[i] for i in used if i != along[0]}

    def _view(self, op: ViewOp) -> None:
        """The outermost dimensions of parts of equal size run together as far as both divide."""
        source, target = self._shape(op.x), self._shape(op.results[0])
        i = j = 0
        while i < len(source) and j < len(target):
            first, second = (op.x, i), (op.results[0], j)
            a, b = source[i], target[j]
            common = gcd(source[i], target[j])
            while a != b and (i + 1 < len(source) or j + 1 < len(target)):
                if a < b and i + 1 < len(source):
                    i += 1
                    a *= source[i]
                elif j + 1 < len(target):
                    j += 1
                    b *= target[j]
                else:
                    break
            if a == b and common > 1:
                self._extent[first] = self._extent[second] = common
                self._join(first, second)
            i, j = i + 1, j + 1

    def _work(self, roots: dict[_Place, int]) -> Iterator[MatrixWork]:
        for op, number, statement in self._statements:
            found = [read for read in reads(statement.body) if not read.indirect]
            if not statement.reduced or statement.combine != "add" or len(found) != 2:
                continue
            left, right = (read.index.used_dims() for read in found)
            if not set(statement.reduced) <= left & right:
                continue
            roles: dict[str, tuple[list[int], int]] = {role: ([], 1) for role in ("m", "n", "k", "batch")}
            for i, extent in enumerate(statement.extents):
                shared = "batch" if i in left & right else "m" if i in left else "n"
                role = "k" if i in statement.reduced else shared
                axis = roots.get(self._find(((op, number), i)))
                axes, uncut = roles[role]
                if axis is None:
                    roles[role] = (axes, uncut * extent)
                else:
                    axes.append(axis)
            sizes = tuple(roles[role][1] for role in ("m", "n", "k", "batch"))
            m, n, k, batch = (tuple(roles[role][0]) for role in ("m", "n", "k", "batch"))
            yield MatrixWork(m, n, k, batch, sizes)  # pyright: ignore[reportArgumentType]


def _is_near(expr: AffineExpr, loops: int, used: Sequence[int]) -> bool:
    """Whether an index is linear, and is 0 within a few rows of where the loops are 0."""
    zero = [0] * loops
    offset = expr.eval(zero, [])
    units = [[int(i == j) for j in range(loops)] for i in used]
    return abs(offset) <= _NEAR and all(0 < expr.eval(unit, []) - offset <= _NEAR for unit in units)


_NEAR = 8
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
