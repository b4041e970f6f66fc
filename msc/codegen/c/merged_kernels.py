"""Kernels that differ in extents alone: one loop function, which takes the extents as sizes, computes all of them.

Layers of a network often differ in their channels alone, and the C compiler takes as long for the last of them as for
the first. What may differ is what it does not need to know: the extents of parameters, with them the strides of
elements, constants of their indices, and the bounds of loops that it does not unroll. Tiles in registers, unrolled
loops and local arrays are the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DictionaryAttr, FunctionType, IndexType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineExpr,
    AffineMap,
)

from msc.codegen.c.joined_terms import is_read_joined
from msc.codegen.c.loops import UNROLLED, only_moves
from msc.dialects import open_sizes
from msc.dialects.loop import AccessOp, ForOp, LoadOp, LoopKind, PrefetchOp
from msc.dialects.loop.attributes import LOOP_ORIGIN, LOOP_OUTPUTS, LOOP_REASONS, LOOP_SCHEDULE, LOOP_TEMPORARIES
from msc.ir.typed import memref_type
from msc.poly.valid_extents import Size

FEWEST = 4
"""Kernels that are worth a function of their own, where a reader has to go."""
MOST_EXTENTS = 3
"""Sizes of such a function: layers that differ in more than their channels are other functions to a reader."""
_SAVED_OPERATIONS = 90
"""Which the compiler need not compile, and which are worth it too."""


@dataclass(frozen=True)
class Merged:
    """A loop function that computes what several do, and what its sizes are for each of them."""

    function: FuncOp
    sizes: Mapping[FuncOp, tuple[int, ...]]


def merged_kernels(functions: Mapping[FuncOp, object]) -> list[Merged]:
    """Loop functions for those that differ in extents alone, and of which the same is known beside."""
    alike: dict[object, list[tuple[FuncOp, list[int]]]] = {}
    for function, known in functions.items():
        if not _stays_apart(function):
            form = _Form()
            form.read(function)
            alike.setdefault((known, *form.fixed), []).append((function, form.numbers))
    return [merged for family in alike.values() if (merged := _merged(family)) is not None]


def _stays_apart(function: FuncOp) -> bool:
    """Whether calls decide the extents of a function already, or a unit's tiles lie as known extents say."""
    on_unit = any(isinstance(op, ForOp) and op.unit is not None for op in function.walk())
    return on_unit or bool(open_sizes.argument_sizes(function.args, function.arg_attrs))


def _merged(family: Sequence[tuple[FuncOp, list[int]]]) -> Merged | None:
    """The function of a family whose numbers alone differ, if it is worth it."""
    first = family[0][0]
    if len(family) < FEWEST or (len(family) - 1) * sum(1 for _ in first.walk()) < _SAVED_OPERATIONS:
        return None
    sizes = list[tuple[int, ...]]()
    given = [_in_sizes(values, sizes) for values in zip(*(numbers for _, numbers in family), strict=True)]
    if not 0 < len(sizes) <= MOST_EXTENTS:
        return None
    function = first.clone()
    names = [f"n_{k + 1}" if k else "n" for k in range(len(sizes))]
    added = [function.body.block.insert_arg(IndexType(), len(function.args)) for _ in sizes]
    for argument, own in zip(function.args, zip(*(f.args for f, _ in family), strict=True), strict=False):
        if len({each.name_hint for each in own}) > 1:
            argument.name_hint = None
    form = _Form(iter(given), added)
    form.read(function)
    _declare(function, form.extents, [Size(n, min(v), max(v)) for n, v in zip(names, sizes, strict=True)])
    function.properties["sym_name"] = StringAttr(f"{first.sym_name.data}_merged")
    says = f"Computes {len(family)} kernels, which differ in {', '.join(names)}."
    for name in (LOOP_SCHEDULE, LOOP_REASONS):
        function.attributes.pop(name, None)
    function.attributes[LOOP_ORIGIN] = ArrayAttr([StringAttr(says)])
    return Merged(function, dict(zip((f for f, _ in family), zip(*sizes, strict=True), strict=True)))


@dataclass(frozen=True)
class _Number:
    """`factor` times a size, by its position, plus `rest`; without a size a constant."""

    size: int | None
    factor: int
    rest: int

    def over(self, first: int) -> AffineExpr:
        """As an expression in which the sizes are dimensions from `first` on."""
        if self.size is None:
            return AffineExpr.constant(self.rest)
        return AffineExpr.dimension(first + self.size) * self.factor + self.rest


def _in_sizes(values: tuple[int, ...], sizes: list[tuple[int, ...]]) -> _Number:
    """A number of each kernel as a multiple of a size plus a constant; a new size, if need be, is at least 1."""
    other = next((k for k, value in enumerate(values) if value != values[0]), None)
    if other is None:
        return _Number(None, 0, values[0])
    for position, size in enumerate(sizes):
        if size[other] != size[0]:
            factor, odd = divmod(values[other] - values[0], size[other] - size[0])
            rest = values[0] - factor * size[0]
            if not odd and all(value == factor * each + rest for value, each in zip(values, size, strict=True)):
                return _Number(position, factor, rest)
    rest = min(0, min(values) - 1)
    sizes.append(tuple(value - rest for value in values))
    return _Number(len(sizes) - 1, 1, rest)


def _declare(function: FuncOp, extents: Mapping[int, AffineMap], sizes: Sequence[Size]) -> None:
    """Have the last arguments be sizes, and others lie as arrays of these extents."""
    count = len(function.args) - len(sizes)
    own = list(function.arg_attrs) if function.arg_attrs is not None else [DictionaryAttr({})] * count
    for number, map_ in extents.items():
        own[number] = DictionaryAttr({**own[number].data, open_sizes.COMPACT: AffineMapAttr(map_)})
    function.arg_attrs = ArrayAttr([*own, *map(open_sizes.size_attributes, sizes)])
    function.function_type = FunctionType.from_lists([a.type for a in function.args], [])


@dataclass
class _Form:
    """A function taken apart: what functions that share C have alike, `fixed`, and `numbers` in which they may differ.

    Read again with the numbers that are `given` over `sizes`, the function gets these in place of its own.
    """

    given: Iterator[_Number] | None = None
    sizes: Sequence[SSAValue] = ()
    fixed: list[object] = field(default_factory=list[object])
    numbers: list[int] = field(default_factory=list[int])
    values: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """All values of the function, numbered."""
    free: set[SSAValue] = field(default_factory=set[SSAValue])
    """The parameters whose extents and indices may differ."""
    extents: dict[int, AffineMap] = field(default_factory=dict[int, AffineMap])
    """Of parameters whose extents do differ, over the sizes."""

    def read(self, function: FuncOp) -> None:
        """The whole function."""
        self.fixed += [function.attributes.get(name) for name in (LOOP_OUTPUTS, LOOP_TEMPORARIES)]
        for position, argument in enumerate(function.args[: len(function.args) - len(self.sizes)]):
            self._parameter(position, argument)
        self._block(function.body.block)

    def _parameter(self, position: int, argument: SSAValue) -> None:
        self._define(argument)
        type_ = memref_type(argument)
        shape, known = type_.get_shape(), _known_extents(argument)
        self.fixed += [type_.element_type, len(shape), shape[known:]]
        if known:
            self.free.add(argument)
        exprs = [self._number(extent, 0) for extent in shape[:known]]
        if any(not isinstance(expr, AffineConstantExpr) for expr in exprs):
            rest = map(AffineExpr.constant, shape[known:])
            self.extents[position] = AffineMap(len(self.sizes), 0, (*exprs, *rest))

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self.fixed += [type(op), *(self.values[operand] for operand in op.operands)]
            match op:
                case ForOp():
                    self._loop(op)
                case AccessOp():
                    self._access(op)
                case _:
                    self.fixed += [*op.properties.items(), *op.attributes.items()]
            for result in op.results:
                self._define(result)
                self.fixed.append(result.type)
            for region in op.regions:
                for inner in region.blocks:
                    for argument in inner.args:
                        self._define(argument)
                    self._block(inner)
            self.fixed.append("end")

    def _define(self, value: SSAValue) -> None:
        self.values[value] = len(self.values)

    def _loop(self, op: ForOp) -> None:
        self.fixed += [op.step, op.kind, op.least]
        free = _has_free_bounds(op)
        maps = {name: self._map(bound.data, free=free) for name, bound in (("lower", op.lower), ("upper", op.upper))}
        self._give(op, maps)

    def _access(self, op: AccessOp) -> None:
        self.fixed += [op.properties.get("lanes"), op.properties.get("part"), *op.attributes.items()]
        if self.given is None:
            self.fixed.append(isinstance(op, LoadOp) and is_read_joined(op))
        maps = {"index": self._map(op.map, free=op.buffer in self.free)}
        if isinstance(op, PrefetchOp):
            maps["ahead"] = self._map(op.ahead_map.data, free=False)
        self._give(op, maps)

    def _give(self, op: ForOp | AccessOp, maps: Mapping[str, AffineMap]) -> None:
        """Have an operation take the sizes, if its maps need them."""
        dims = next(iter(maps.values())).num_dims
        if any(dim >= dims for map_ in maps.values() for dim in map_.used_dims()):
            op.operands = (*op.operands, *self.sizes)
            for name, map_ in maps.items():
                op.properties[name] = AffineMapAttr(AffineMap(dims + len(self.sizes), 0, map_.results))

    def _map(self, map_: AffineMap, *, free: bool) -> AffineMap:
        """With what is given; constants that are added may differ if it is `free`, all else is fixed."""
        if free:
            return AffineMap(map_.num_dims, 0, tuple(self._expression(e, map_.num_dims) for e in map_.results))
        self.fixed.append(map_.results)
        return map_

    def _expression(self, expr: AffineExpr, count: int) -> AffineExpr:
        match expr:
            case AffineConstantExpr(value):
                self.fixed.append("number")
                return self._number(value, count)
            case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
                self.fixed.append("+")
                return self._expression(lhs, count) + self._expression(rhs, count)
            case AffineBinaryOpExpr(kind, lhs, rhs):
                self.fixed += [kind, rhs]
                return AffineExpr.binary(kind, self._expression(lhs, count), rhs)
            case _:
                self.fixed.append(expr)
                return expr

    def _number(self, value: int, first: int) -> AffineExpr:
        """A number that may differ, or what is given in its place over dimensions from `first` on."""
        self.numbers.append(value)
        return AffineExpr.constant(value) if self.given is None else next(self.given).over(first)


def _known_extents(parameter: SSAValue) -> int:
    """How many extents of a parameter, the first ones, C compilers need not know: no lanes step beyond them."""
    shape, uses = memref_type(parameter).get_shape(), [use.operation for use in parameter.uses]
    if not all(shape) or not all(isinstance(op, AccessOp | memref.LoadOp | memref.StoreOp) for op in uses):
        return 0
    steps = [op.lane_steps for op in uses if isinstance(op, AccessOp) and op.all_lanes > 1]
    return min((k + 1 for lanes in steps for k, step in enumerate(lanes) if step), default=len(shape))


def _has_free_bounds(loop: ForOp) -> bool:
    """Whether C compilers need not know the bounds of a loop: it runs others that are not unrolled, or is long."""
    trips = loop.constant_range
    if loop.kind.data is LoopKind.UNROLL or (trips is not None and len(trips) < 2):
        return False
    if trips is not None and len(trips) > UNROLLED:
        return True
    if trips is not None and only_moves(loop):
        return False
    return any(isinstance(op, ForOp) and op is not loop and _is_rolled(op) for op in loop.walk())


def _is_rolled(loop: ForOp) -> bool:
    trips = loop.constant_range
    return loop.kind.data is not LoopKind.UNROLL and (trips is None or len(trips) > 1)
