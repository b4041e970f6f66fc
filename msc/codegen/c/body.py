"""The body of a kernel: scheduled loops to C statements.

A value used once, in the block that computes it, becomes part of the expression that uses it, if that stays readable
and no write lies between. Everything else gets a name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from msc.codegen.c import access
from msc.codegen.c.affine import INDEX, IndexExpression, affine_index, constant_index
from msc.codegen.c.arithmetic import RULES, always, decided_comparison
from msc.codegen.c.conversions import CONVERSIONS
from msc.codegen.c.dead_code import named_in_part
from msc.codegen.c.fixed_point import fused
from msc.codegen.c.instructions import add_products, tile_function, tile_product
from msc.codegen.c.joined_terms import is_read_joined, joined, words
from msc.codegen.c.lines import Lines
from msc.codegen.c.literals import constant
from msc.codegen.c.loops import UNROLLED, LoopHead, only_moves
from msc.codegen.c.names import NameScope
from msc.codegen.c.prelude import Prelude
from msc.codegen.c.shared_loops import Capture, LoopPart, local_array, scalar, share_call
from msc.codegen.c.transposed_loads import advance, column_loads
from msc.codegen.c.types import INDEX_TYPE, CArrayType, CType, buffer_type, no_c_form, value_type
from msc.codegen.c.values import CExpression
from msc.dialects.loop import (
    AccessOp,
    AddProductsOp,
    ApplyOp,
    CallRowsOp,
    ForOp,
    LanesOp,
    LoadOp,
    LoopKind,
    PrefetchOp,
    StoreOp,
)
from msc.ir.typed import static_shape
from msc.poly.affine import LinearForm, linear_form

_INLINE_LIMIT = 88
"""Characters; a longer expression gets a name."""


@dataclass
class FunctionEmitter:
    """Emits one function's statements into `lines`."""

    prelude: Prelude
    lines: Lines = field(default_factory=lambda: Lines(1))
    scope: NameScope = field(default_factory=NameScope)
    values: dict[SSAValue, CExpression] = field(default_factory=dict[SSAValue, CExpression])
    ranges: dict[SSAValue, IndexExpression] = field(default_factory=dict[SSAValue, IndexExpression])
    buffers: dict[SSAValue, tuple[str, CArrayType]] = field(default_factory=dict[SSAValue, tuple[str, CArrayType]])
    pending: dict[SSAValue, CExpression] = field(default_factory=dict[SSAValue, CExpression])
    dead: set[SSAValue] = field(default_factory=set[SSAValue])
    arrays: set[SSAValue] = field(default_factory=set[SSAValue])
    aliased: set[SSAValue] = field(default_factory=set[SSAValue])
    unaligned: set[SSAValue] = field(default_factory=set[SSAValue])
    columns: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    interleaved: dict[StoreOp, str] = field(default_factory=dict[StoreOp, str])
    name: str = ""
    functions: NameScope = field(default_factory=NameScope)
    around: dict[SSAValue, Capture] = field(default_factory=dict[SSAValue, Capture])
    stride_sizes: dict[SSAValue, Sequence[SSAValue]] = field(default_factory=dict[SSAValue, Sequence[SSAValue]])
    """Of buffers whose strides calls decide, the sizes that these are made of."""
    parts: list[LoopPart] = field(default_factory=list[LoopPart])

    def block(self, block: Block) -> None:
        """All operations of a block, in order."""
        for op in block.ops:
            self._operation(op)

    def _operation(self, op: Operation) -> None:
        match op:
            case ForOp():
                self._write_pending()
                self._loop(op)
            case StoreOp():
                self._store(op)
            case memref.StoreOp():
                self._plain_store(op)
            case PrefetchOp():
                self._prefetch(op)
            case CallRowsOp():
                self._call(op)
            case memref.AllocaOp():
                self._array(op)
            case func.ReturnOp():
                return
            case _:
                self._compute(op)

    def _compute(self, op: Operation) -> None:
        if len(op.results) != 1:
            raise no_c_form(f"the operation {op.name}")
        result = op.results[0]
        if result in self.dead:
            return
        if isinstance(op, ApplyOp):
            self._apply(op)
            return
        if isinstance(op, LoadOp) and is_read_joined(op):
            return
        value = self._expression(op)
        if isinstance(op, arith.ConstantOp):
            self._bind_constant(op, value)
        elif self._reads_better_inline(result, value):
            self.pending[result] = value
        else:
            self._name(result, value)

    def _expression(self, op: Operation) -> CExpression:
        match op:
            case arith.ConstantOp():
                return constant(op, self.prelude)
            case LoadOp():
                return self._load(op)
            case AddProductsOp():
                return self._add_products(op)
            case memref.LoadOp():
                return access.load_scalar(self._plain_element(op.memref, op.indices), self.buffers[op.memref][1].base)
            case arith.TruncIOp() if (function := fused(op)) is not None:
                return function.expression(self.prelude, self._use)
            case _:
                truth = decided_comparison(op)
                if truth is not None:
                    return always(self.prelude, truth, value_type(op.operands[0].type))
                name = op.operation.data if isinstance(op, LanesOp) else op.name
                rule = RULES.get(name) or CONVERSIONS.get(name)
                if rule is None:
                    raise no_c_form(f"the operation {name}")
                return rule(self.prelude, op, [self._use(operand) for operand in op.operands])

    def _bind_constant(self, op: arith.ConstantOp, value: CExpression) -> None:
        if value.type == INDEX and isinstance(op.value, IntegerAttr):
            self.ranges[op.result] = constant_index(op.value.value.data)
        self.values[op.result] = value

    def _reads_better_inline(self, result: SSAValue, value: CExpression) -> bool:
        uses = list(result.uses)
        if len(uses) != 1 or len(value.text) > _INLINE_LIMIT:
            return False
        return uses[0].operation.parent is result.owner.parent if isinstance(result.owner, Operation) else False

    def _use(self, value: SSAValue) -> CExpression:
        """The expression of a value, which must be used now if it is pending."""
        if value in self.pending:
            return self.pending.pop(value)
        if value in self.ranges:
            return self.ranges[value].value
        if value not in self.values:
            raise no_c_form(f"a value of type {value.type} here")
        return self.values[value]

    def _name(self, result: SSAValue, value: CExpression) -> None:
        """Give the value a name: `const float v = ...;`."""
        type_ = value.type.element if value.splat else value.type
        name = self.scope.fresh(result.name_hint or "v")
        self.lines.add(f"const {self.prelude.type_name(type_)} {name} = {value.text};")
        self.around[result] = scalar(name, self.prelude.type_name(type_))
        self.values[result] = replace(value, text=name, precedence=CExpression(name, type_).precedence, reads=False)

    def _write_pending(self) -> None:
        """Name what was read from memory and is not used yet: a write, or a loop, follows."""
        for result in [r for r, value in self.pending.items() if value.reads]:
            self._name(result, self.pending.pop(result))

    # --- indices -------------------------------------------------------------------------------------------------

    def _apply(self, op: ApplyOp) -> None:
        index = self._affine(op.map.data.results, op.values)[0]
        if index.constant is not None or (sum(1 for _ in op.result.uses) == 1 and len(index.value.text) < 24):
            self.ranges[op.result] = index
            return
        name = self.scope.fresh(op.result.name_hint or "index")
        self.lines.add(f"const {INDEX_TYPE} {name} = {index.value.text};")
        self.around[op.result] = scalar(name, INDEX_TYPE)
        self.ranges[op.result] = IndexExpression(CExpression(name, INDEX), index.low, index.high)

    def _affine(self, exprs: Sequence[AffineExpr], values: Sequence[SSAValue]) -> list[IndexExpression]:
        dims = [self._index(value) for value in values]
        return [affine_index(expr, dims, self.prelude.plain) for expr in exprs]

    def _index(self, value: SSAValue) -> IndexExpression:
        return self.ranges[value] if value in self.ranges else IndexExpression(self._use(value))

    # --- buffers -------------------------------------------------------------------------------------------------

    def bind_parameter(self, value: SSAValue, name: str, type_: CArrayType, *, aliased: bool) -> None:
        """Make a memref argument known by its C name; of rank 0 it is an array of one."""
        if aliased:
            self.aliased.add(value)
        self.buffers[value] = name if type_.shape else f"{name}[0]", type_

    def bind_size(self, value: SSAValue, name: str, low: int, high: int) -> None:
        """Make an argument that is a size known by its C name."""
        self.ranges[value] = IndexExpression(CExpression(name, INDEX), low, high)

    def _array(self, op: memref.AllocaOp) -> None:
        name = self.scope.fresh(op.memref.name_hint or "local")
        self.buffers[op.memref] = name, buffer_type(op.memref.type)
        self.arrays.add(op.memref)
        type_ = self.buffers[op.memref][1]
        self.lines.add(access.declare_array(name, type_))
        self.around[op.memref] = local_array(name, type_)

    def _element(self, op: AccessOp) -> str:
        return self._element_at(op.buffer, self._affine(op.map.results, op.indices))

    def _read_element(self, op: LoadOp) -> str:
        """The element that a load reads, in a register tile from that of the first row on."""
        _, buffer = self.buffers[op.buffer]
        row = None if op.buffer in self.arrays else tile_row(op, buffer)
        if row is None:
            return self._element(op)
        exprs, strides = zip(*row.further, strict=True)
        indices = self._affine((*row.first, *exprs), op.indices)
        first, further = indices[: len(row.first)], indices[len(row.first) :]
        return access.element(f"(&{self._element_at(op.buffer, first)})", further, strides)

    def _plain_element(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> str:
        return self._element_at(buffer, [self._index(i) for i in indices])

    def _element_at(self, buffer: SSAValue, indices: Sequence[IndexExpression]) -> str:
        """The element as an lvalue; local arrays have no dimensions of one element."""
        name, type_ = self.buffers[buffer]
        if buffer in self.arrays:
            indices = [index for index, size in zip(indices, type_.shape, strict=True) if size != 1]
        return access.element(name, indices, type_.open_strides)

    def _load(self, op: LoadOp) -> CExpression:
        _, buffer = self.buffers[op.buffer]
        type_ = value_type(op.result.type)
        if op.result in self.columns:
            return access.as_loaded(self.prelude, self._column(op, type_))
        text = self._read_element(op)
        if not type_.is_vector:
            return access.load_scalar(text, buffer.base)
        distance = access.lane_distance(buffer, op.lane_steps)
        return access.load_vector(self.prelude, text, type_, distance, op.touched_lanes)

    def _add_products(self, op: AddProductsOp) -> CExpression:
        total, factors = self._use(op.sum), list[Sequence[CExpression]]()
        for terms in op.terms:
            first = joined(op, terms)
            if first is None:
                factors.append([self._use(term) for term in terms])
            else:
                aligned = self.prelude.aligns_words and first.buffer not in self.unaligned
                text, lanes = self._read_element(first), total.type.lanes
                factors.append([words(self.prelude, text, first, lanes, may_align=aligned)])
        return add_products(self.prelude, op, total, factors)

    def _store(self, op: StoreOp) -> None:
        _, buffer = self.buffers[op.buffer]
        value, text = self._use(op.value), self._element(op)
        self._write_pending()
        if not value.type.is_vector:
            self._assign_scalar(text, buffer, value)
            return
        if op in self.interleaved:
            loop = op.parent_op()
            assert isinstance(loop, ForOp)
            place = f"{self.interleaved[op]}[{self._index(loop.variable).value.text}]"
            self.lines.add(f"{place} = {access.to_memory(self.prelude, value, buffer.base).text};")
            return
        distance = access.lane_distance(buffer, op.lane_steps)
        self.lines.add(access.store_vector(self.prelude, text, buffer.base, value, distance, op.touched_lanes))

    def _prefetch(self, op: PrefetchOp) -> None:
        self.prelude.plain.add("prefetch")
        ahead = op.ahead * self.buffers[op.buffer][1].item_bytes
        *index, after = self._affine((*op.map.results, ahead), op.indices)
        self.lines.add(f"msc_prefetch(&{self._element_at(op.buffer, index)}, {after.value.text});")

    def _call(self, op: CallRowsOp) -> None:
        """Inputs, their size, each output and its length, scratch memory."""
        inputs = [self._plain_element(buffer, op.indices) for buffer in op.read]
        size, prototype = self._index(op.size).value.text, op.call.prototype(*op.rows)
        outputs = [f"{self._plain_element(b, op.indices)}, {static_shape(b)[-1]}" for b in op.outputs]
        scratch = [self.buffers[buffer][0] for buffer in op.written[len(outputs) :]]
        name = self.prelude.function(prototype.name, CType(self.buffers[op.read[0]][1].base))
        self.prelude.plain |= {"pragma", "pragma_rolled"}
        self._write_pending()
        self.lines.add(f"{name}({', '.join((*inputs, size, *outputs, *scratch, *map(_more, prototype.more)))});")

    def _plain_store(self, op: memref.StoreOp) -> None:
        value, text = self._use(op.value), self._plain_element(op.memref, op.indices)
        self._write_pending()
        self._assign_scalar(text, self.buffers[op.memref][1], value)

    def _assign_scalar(self, text: str, buffer: CArrayType, value: CExpression) -> None:
        """The first assignment to a local variable that was just declared becomes its initialiser."""
        declaration = access.declare_array(text, buffer) if buffer.elements == 1 else None
        if declaration is not None and self.lines.last == declaration:
            self.lines.remove_last()
            self.lines.add(f"{declaration.removesuffix(';')} = {value.text};")
        else:
            self.lines.add(access.store_scalar(text, value))

    # --- loops ---------------------------------------------------------------------------------------------------

    def _loop(self, op: ForOp) -> None:
        trips = op.constant_range
        if trips is not None and len(trips) == 0:
            return
        if trips is not None and len(trips) == 1:
            self.ranges[op.variable] = constant_index(trips[0])
            self.block(op.body.block)
            return
        if op.kind.data is LoopKind.PARALLEL and self.prelude.threads != 1:
            self._share(op)
            return
        if op.unit is not None and self._on_tiles(op, op.unit.data):
            return
        stores = interleaved_stores(op, self._unshared) if op.kind.data is LoopKind.UNROLL else []
        if op.kind.data is LoopKind.UNROLL and trips is not None:
            self._load_columns(op)
            self._declare_interleaved(stores)
            self.prelude.plain |= {"pragma", "pragma_unroll"}
            self.lines.add(f"MSC_UNROLL({len(trips)})")
        elif trips is not None and len(trips) <= UNROLLED and only_moves(op):
            self.prelude.plain |= {"pragma", "pragma_rolled"}
            self.lines.add("MSC_ROLLED")
        self._emit_loop(op, lambda head: head.text(self.prelude))
        self._store_interleaved(op, stores)

    def _on_tiles(self, op: ForOp, unit: str) -> bool:
        """The call of a unit's function in the place of a loop, if it computes what the unit does as that lies."""
        found = tile_product(op, lambda buffer: self.buffers[buffer][1])
        if found is None or unit not in self.prelude.units:
            return False
        for loop in found.variables:
            self.ranges[loop.variable] = self._affine(loop.lower.data.results, loop.values)[0]
        a, b, c = (f"&{self._element(each)}" for each in found.first)
        a_row, b_row, c_row = found.rows
        name, taps = tile_function(self.prelude, self.prelude.units[unit]), ", ".join(map(str, found.taps))
        sizes = ", ".join(map(str, found.sizes))
        self.lines.add(f"{name}({c}, {c_row}, {a}, {a_row}, {b}, {b_row}, {sizes}, (const int64_t[]){{{taps}}});")
        return True

    def _declare_interleaved(self, stores: Sequence[InterleavedStore]) -> None:
        for store in stores:
            self.interleaved[store.store] = name = self.scope.fresh("lanes")
            self.lines.add(f"{self.prelude.type_name(store.stored)} {name}[{store.count}];")

    def _store_interleaved(self, op: ForOp, stores: Sequence[InterleavedStore]) -> None:
        """Behind an unrolled loop: what its iterations store in turn."""
        if stores:
            self.ranges[op.variable] = constant_index(0)
        for store in stores:
            function = self.prelude.function(f"store_interleaved_{store.count}", store.stored)
            self.lines.add(f"{function}(&{self._element(store.store)}, {self.interleaved[store.store]});")

    def _column(self, op: LoadOp, type_: CType) -> CExpression:
        """What a load of this iteration reads, which was read in front of the loop around it."""
        loop = op.parent_op()
        assert isinstance(loop, ForOp)
        return CExpression(f"{self.columns[op.result]}[{self._index(loop.variable).value.text}]", type_)

    def _load_columns(self, op: ForOp) -> None:
        """In front of an unrolled loop: what its iterations read side by side, by whole rows."""
        for loads in column_loads(op, self._unshared):
            if loads.load.result in self.dead:
                continue
            name = self.scope.fresh("columns")
            self.lines.add(f"{self.prelude.type_name(loads.stored)} {name}[{loads.count}];")
            for block in loads.blocks:
                self.ranges[op.variable] = constant_index(block[0])
                self.lines.add(loads.statement(self.prelude, name, block, self._read_element(loads.load)))
            self.columns[loads.load.result] = name

    def _unshared(self, buffer: SSAValue) -> CArrayType | None:
        return None if buffer in self.aliased else self.buffers[buffer][1]

    def _emit_loop(self, op: ForOp, text: Callable[[LoopHead], str]) -> None:
        self.scope.enter()
        outside = dict(self.around)
        head = self._head(op)
        self.ranges[op.variable] = head.variable
        self.around[op.variable] = scalar(head.name, INDEX_TYPE)
        with self.lines.braces(text(head)):
            self.block(op.body.block)
        self.around = outside
        self.scope.leave()

    def _head(self, op: ForOp) -> LoopHead:
        name = self.scope.fresh(op.label.data if op.label is not None else op.variable.name_hint or "i", "i")
        lower = self._affine(op.lower.data.results, op.values)
        upper = self._affine(op.upper.data.results, op.values)
        return LoopHead(name, lower, upper, op.step.value.data)

    def _share(self, op: ForOp) -> None:
        """The loop as a function of a range of its iterations, and the call that has the team run all of them.

        Both read the bounds, so that each value in them has a name.
        """
        for value in op.values:
            if value in self.pending:
                self._name(value, self.pending.pop(value))
        self.prelude.plain.add("subnormals")
        self.prelude.team = True
        part = replace(self, lines=Lines(1), scope=NameScope([set[str]().union(*self.scope.frames)]), around={})
        first, last = part.scope.fresh("first"), part.scope.fresh("last")
        part._emit_loop(op, lambda head: head.part(first, last, self.prelude))
        name = self.functions.fresh(f"{self.name}_part")
        named = named_in_part(op, self.dead)
        strides = {size: None for value in named for size in self.stride_sizes.get(value, ()) if size not in named}
        named = named.union(strides)
        captures = [capture for value, capture in self.around.items() if value in named]
        unused = "".join(f"    (void){self.around[size].name};\n" for size in strides)
        self.parts.append(LoopPart(name, tuple(captures), first, last, unused + part.lines.text()))
        self.scope.enter()
        trips = self._head(op).trips(self.prelude)
        self.scope.leave()
        least = op.least.value.data if op.least is not None else 0
        share_call(name, captures, trips, least, self.scope, self.lines)


def _more(argument: int | tuple[int, ...]) -> str:
    """An argument of a library call: a number, or a list of them."""
    return str(argument) if isinstance(argument, int) else f"(const int[]){{{', '.join(map(str, argument))}}}"


# What the rows of a register tile read: `(&x[m * 13][k])[m_2 * 256]`, from the element of the first row on.
#
# Buffers are dense, so rows lie at constant distances. Written so, C compilers see that one address serves all rows
# once the tile's loops are unrolled, with constants in the instructions. Of `x[m * 13 + m_2][k]` GCC 12 makes an
# address for each row and takes it with an index: there are more than registers, and processors split multiply-adds
# that load so.
@dataclass(frozen=True)
class TileRow:
    """What the first iteration of the unrolled loops reads, and how many elements further on this one does.

    That is a sum of numbers of strides: of 1, or of what calls decide.
    """

    first: tuple[AffineExpr, ...]
    further: tuple[tuple[AffineExpr, str], ...]


def tile_row(load: LoadOp, buffer: CArrayType) -> TileRow | None:
    """Where a load reads that moves by whole rows of a buffer with unrolled loops; else None."""
    forms = [linear_form(expr) for expr in load.map.results]
    starts = {k: start for k, value in enumerate(load.indices) if (start := _start(value)) is not None}
    linear = [form for form in forms if form is not None]
    strides = buffer.known_strides
    rows = [form for form, stride in zip(linear, strides, strict=False) if stride is None or stride > 1]
    if len(linear) < len(forms) or not any(_moves(form, starts) for form in rows):
        return None
    dims = [AffineExpr.dimension(k) for k in range(len(load.indices))]
    at = [AffineExpr.constant(starts[k]) if k in starts else dim for k, dim in enumerate(dims)]
    further: dict[str, AffineExpr] = {}
    for k, start in sorted(starts.items(), key=lambda item: _depth(load.indices[item[0]])):
        moved: dict[str, int] = {}
        for position, (form, stride) in enumerate(zip(linear, strides, strict=True)):
            unit, number = (buffer.open_strides[position], 1) if stride is None else ("1", stride)
            moved[unit] = moved.get(unit, 0) + form.coefficients.get(k, 0) * number
        for unit, number in moved.items():
            further[unit] = further.get(unit, AffineExpr.constant(0)) + (dims[k] - start) * number
    first = tuple(expr.replace_dims_and_symbols(at, []) for expr in load.map.results)
    return TileRow(first, tuple((expr, unit) for unit, expr in further.items()))


def _moves(form: LinearForm, dims: dict[int, int]) -> bool:
    return any(k in form.coefficients for k in dims)


def _depth(value: SSAValue) -> int:
    """How many operations stand around a loop's variable: outer loops come first, however an index has them."""
    parent, depth = value.owner.parent_op(), 0
    while parent is not None:
        parent, depth = parent.parent_op(), depth + 1
    return depth


def _start(value: SSAValue) -> int | None:
    """Of the variable of a loop that is unrolled its first value."""
    loop = value.owner.parent_op() if isinstance(value, BlockArgument) else None
    if not isinstance(loop, ForOp) or loop.kind.data is not LoopKind.UNROLL:
        return None
    trips = loop.constant_range
    return trips[0] if trips is not None and len(trips) > 1 else None


# Stores of an unrolled loop whose vectors interleave in memory: iteration k of n writes `y[k]`, `y[n + k]`, ...
#
# The loop fills an array of vectors, which are stored behind it side by side.
COUNTS = (2, 4)
"""Vectors that there are functions for."""


@dataclass(frozen=True)
class InterleavedStore:
    """A store in an unrolled loop of `count` iterations, of vectors of the type `stored`."""

    store: StoreOp
    stored: CType
    count: int


def interleaved_stores(loop: ForOp, buffer_of: Callable[[SSAValue], CArrayType | None]) -> list[InterleavedStore]:
    """The stores of an unrolled loop that may be made behind it: nothing else in it touches their buffers.

    `buffer_of` gives the type of a buffer that no other one overlaps.
    """
    trips = loop.constant_range
    if trips is None or trips != range(len(trips)) or len(trips) not in COUNTS:
        return []
    touched = [op.buffer for op in loop.body.walk() if isinstance(op, AccessOp)]
    found = list[InterleavedStore]()
    for op in loop.body.block.ops:
        if not isinstance(op, StoreOp) or touched.count(op.buffer) > 1 or (buffer := buffer_of(op.buffer)) is None:
            continue
        type_, distance = value_type(op.value.type), access.lane_distance(buffer, op.lane_steps)
        whole = type_.is_vector and op.touched_lanes == type_.lanes
        if whole and distance == len(trips) and advance(op, loop, buffer) == 1:
            found.append(InterleavedStore(op, access.stored_type(CType(buffer.base, type_.lanes)), len(trips)))
    return found
