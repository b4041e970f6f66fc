"""The function of one kernel: a nest from the schedule, as loops over buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import TypeAlias

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.analysis.index_ranges import index_range
from msc.dialects.element_types import BYTES
from msc.dialects.loop import AddProductsOp, ApplyOp, ForOp, LoadOp, LoopKind, PrefetchOp, StoreOp
from msc.dialects.open_sizes import size_attributes
from msc.ir.typed import memref_type
from msc.lowering.cpu.buffer_types import contiguous
from msc.lowering.cpu.kernels.scalar_bodies import BodyEmitter, storage_type
from msc.poly.affine import bounds, over_used, simplified
from msc.poly.buffers import LocalBuffer, compose
from msc.poly.compute import Combine, identity
from msc.poly.contraction import Contraction, contraction_of
from msc.poly.model import KernelModel
from msc.poly.nest import Body, ForLoop, Instance, Nest
from msc.poly.requests import PrefetchRequest
from msc.poly.scalar import Index, Read, Scalar
from msc.poly.storage import Storage
from msc.poly.valid_extents import ranges_of
from msc.support.naming import valid_hint
from msc.targets.abilities import Unit

_Local: TypeAlias = tuple[LocalBuffer, SSAValue]
"""A part of an array, and where it lies."""


@dataclass
class _Scope:
    """What is known at a place in the nest: loop variables, where arrays live, forwarded values."""

    variables: tuple[SSAValue, ...] = ()
    ranges: Mapping[int, range] = field(default_factory=dict[int, range])
    buffers: Mapping[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    local: Mapping[int, Sequence[_Local]] = field(default_factory=dict[int, Sequence[_Local]])
    forwarded: frozenset[int] = frozenset()
    values: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])


class KernelFunction:
    """Builds the function.

    Arguments: inputs, outputs, temporaries as `storage` says, sizes that the call decides. What is prefetched is
    requested once for each `line` of so many bytes. Loops on `units` become their instructions.
    """

    def __init__(
        self,
        model: KernelModel,
        nests: Sequence[Nest],
        inputs: Sequence[int],
        outputs: Sequence[int],
        locations: Sequence[Attribute],
        counts: Sequence[AffineExpr],
        storage: Storage,
        requests: Mapping[int, Sequence[PrefetchRequest]],
        line: int,
        units: Mapping[str, Unit],
    ):
        self._model, self._units = model, units
        self._requests, self._line = requests, line
        self._counts = counts
        self._nests = nests
        self._arguments = [*inputs, *outputs]
        self._locations = locations
        self._storage = storage

    def held_in(self, output: int) -> list[int]:
        """The internal arrays that lie in an output until it is written."""
        bodies = self._storage.inside.values()
        return sorted({a for arrays in bodies for a, place in arrays.aliased.items() if place == output})

    def build(self) -> func.FuncOp:
        arrays = [*self._arguments, *self._storage.temporaries]
        shapes = [*(self._model.arrays[a].shape for a in self._arguments), *self._storage.temporaries.values()]
        buffers = [
            contiguous(storage_type(self._model.arrays[a].dtype), tuple(shape))
            for a, shape in zip(arrays, shapes, strict=True)
        ]
        types = [*buffers, *(IndexType() for _ in self._model.sizes)]
        block = Block(arg_types=types)
        sizes = tuple(block.args[len(arrays) :])
        scope = self._outermost(sizes, dict(zip(arrays, block.args, strict=False)), block)
        self._emit(self._nests, scope, block)
        block.add_op(func.ReturnOp())
        return func.FuncOp("kernel", (types, []), Region(block), arg_attrs=self._size_attributes(sizes, len(arrays)))

    def _outermost(self, sizes: tuple[SSAValue, ...], buffers: Mapping[int, SSAValue], block: Block) -> _Scope:
        """What all loops are inside of: the sizes, and the counts of tiles, which follow from them."""
        ranges, variables = dict(ranges_of(self._model.sizes)), list(sizes)
        for expr in self._counts:
            count = ApplyOp(AffineMap(len(sizes), 0, (expr,)), sizes)
            count.result.name_hint = "tiles"
            block.add_op(count)
            low, high = bounds(expr, ranges)
            ranges[len(variables)] = range(low, high + 1)
            variables.append(count.result)
        return _Scope(tuple(variables), ranges, buffers)

    def _size_attributes(self, arguments: Sequence[SSAValue], before: int) -> ArrayAttr[DictionaryAttr] | None:
        """What the arguments that are sizes are called, and between what they lie."""
        if not arguments:
            return None
        for argument, size in zip(arguments, self._model.sizes, strict=True):
            argument.name_hint = valid_hint(size.name)
        named = [size_attributes(size) for size in self._model.sizes]
        return ArrayAttr([*[DictionaryAttr({})] * before, *named])

    def _emit(self, nests: Sequence[Nest], scope: _Scope, block: Block) -> None:
        for nest in nests:
            match nest:
                case ForLoop():
                    if not nest.unit or not self._instruction(nest, scope, block):
                        self._loop(nest, scope, block)
                case Body():
                    alone = len(nests) == 1 or not self._storage.has_copies(nest)
                    self._body(nest, scope, block if alone else _scope_in(block))
                case Instance():
                    _InstanceEmitter(self._model, nest, scope, block, self._locations).emit()

    def _loop(self, loop: ForLoop, scope: _Scope, block: Block) -> None:
        depth = len(scope.variables)
        lower, upper = (AffineMap(depth, 0, (simplified(e),)) for e in (loop.lower, loop.upper))
        values = scope.variables
        if not lower.used_dims() and not upper.used_dims():
            lower, upper, values = AffineMap(0, 0, lower.results), AffineMap(0, 0, upper.results), ()
        kind, least = self._shared(loop, scope)
        unit = loop.unit if loop.unit and self._units[loop.unit].text and kind is LoopKind.SEQUENTIAL else ""
        op = ForOp(lower, upper, values, kind=kind, label=loop.name, least=least, unit=unit)
        op.variable.name_hint = valid_hint(loop.name)
        block.add_op(op)
        ranges = {**scope.ranges, depth: self._range(loop, op, scope)}
        inner = _Scope((*scope.variables, op.variable), ranges, scope.buffers, scope.local, scope.forwarded, {})
        self._emit(loop.body, inner, op.body.block)

    def _instruction(self, loop: ForLoop, scope: _Scope, block: Block) -> bool:
        """Emit a loop over as many terms as an instruction on registers takes, with all below it, as that."""
        unit, (body,) = self._units[loop.unit], loop.body if len(loop.body) == 1 else (None,)
        whole = loop.upper - loop.lower == AffineExpr.constant(unit.shape.k)
        if not unit.in_registers or not whole or not isinstance(body, Instance):
            return False
        contraction = contraction_of(self._model, body.statement)
        if contraction is None or contraction.target in scope.forwarded:
            return False
        points = [_at(body, len(scope.variables), loop.lower + k) for k in range(unit.shape.k)]
        emitters = [_InstanceEmitter(self._model, each, scope, block, self._locations) for each in points]
        emitters[0].emit_products(contraction, unit, emitters)
        return True

    def _shared(self, loop: ForLoop, scope: _Scope) -> tuple[LoopKind, int]:
        """The kind of a loop, and from how many iterations threads share it: one that never has them is sequential."""
        kind = LoopKind(loop.kind)
        if loop.unit and self._units[loop.unit].in_registers:
            return LoopKind.UNROLL, 0
        if kind is not LoopKind.PARALLEL:
            return kind, 0
        fewest, most = bounds(loop.upper - loop.lower, scope.ranges)
        if most < max(2, loop.least):
            return LoopKind.SEQUENTIAL, 0
        return kind, loop.least if fewest < loop.least else 0

    def _range(self, loop: ForLoop, op: ForOp, scope: _Scope) -> range:
        """The iterations for any sizes."""
        if op.constant_range is not None:
            return op.constant_range
        low, high = bounds(loop.lower, scope.ranges)[0], bounds(loop.upper, scope.ranges)[1]
        return range(low, max(low + 1, high))

    def _body(self, body: Body, scope: _Scope, block: Block) -> None:
        arrays = self._storage.inside[id(body)]
        buffers = {**scope.buffers, **{array: scope.buffers[output] for array, output in arrays.aliased.items()}}
        parts = {array: ((buffer, buffers[array]),) for array, buffer in arrays.workspace.items()}
        local = {a: [(b, self._allocated(a, b, block)) for b in each] for a, each in arrays.local.items()}
        places = {**scope.local, **parts, **local}
        inner = _Scope(scope.variables, scope.ranges, buffers, places, scope.forwarded | arrays.forwarded)
        for request in self._requests.get(id(body), ()):
            self._request(request, inner, block)
        for array, held in local.items():
            for part, _ in held:
                if array in arrays.partial:
                    self._clear(array, part, inner, block)
                elif self._model.arrays[array].kind == "input" or array in arrays.copied:
                    self._copy(array, part, scope, inner, block)
        self._emit(body.inside, inner, block)
        for array in sorted(arrays.copied & arrays.written):
            for part, _ in local[array]:
                (self._add if array in arrays.partial else self._copy)(array, part, inner, scope, block)

    def _request(self, request: PrefetchRequest, scope: _Scope, block: Block) -> None:
        """Request the lines of a share of an array."""
        local = _part_of(scope, request.array, request.origin)
        array, buffer = self._model.arrays[request.array], scope.buffers[request.array] if local is None else local[1]
        shape = memref_type(buffer).get_shape()
        order = range(len(shape)) if local is None else [len(local[0].lead) + a for a in _inverse(local[0].axes)]
        strides = [prod(shape[k + 1 :]) for k in order]
        line = max(1, self._line // BYTES[array.dtype])
        trips, ahead = request.share(strides, line, len(scope.variables))
        for count in trips:
            scope, block = self._lines(count, scope, block)
        place = request.origin if local is None else local[0].index(request.origin)
        map_, values = _over_used(scope, [simplified(e, scope.ranges) for e in (*place, ahead)])
        *at, after = map_.results
        block.add_op(PrefetchOp(buffer, AffineMap(map_.num_dims, 0, tuple(at)), values, after))

    def _lines(self, count: int, scope: _Scope, block: Block) -> tuple[_Scope, Block]:
        """A loop over rows or lines, as what is around its body, and that."""
        loop = ForOp(AffineMap.constant_map(0), AffineMap.constant_map(count), (), 1, LoopKind.UNROLL, "line")
        loop.variable.name_hint = "line"
        block.add_op(loop)
        ranges = {**scope.ranges, len(scope.variables): range(count)}
        return replace(scope, variables=(*scope.variables, loop.variable), ranges=ranges), loop.body.block

    def _copy(self, array: int, part: LocalBuffer, scope: _Scope, inner: _Scope, block: Block) -> None:
        """Bring what a buffer holds of an array from where it lives in one scope to where it lives in another one."""
        index, (scope, inner), block = self._each(array, part, (scope, inner), block)
        load = LoadOp(*_place(scope, array, index), storage_type(self._model.arrays[array].dtype))
        load.results[0].name_hint = "copied"
        block.add_op(load)
        block.add_op(StoreOp(load.results[0], *_place(inner, array, index)))

    def _clear(self, array: int, part: LocalBuffer, scope: _Scope, block: Block) -> None:
        """Begin partial sums, or products, of an array."""
        index, (scope,), block = self._each(array, part, (scope,), block)
        dtype, body = self._model.arrays[array].dtype, BodyEmitter(partial(_added, block))
        neutral = body.constant(identity(self._combine(array), dtype), dtype)
        block.add_op(StoreOp(body.to_storage(neutral, dtype), *_place(scope, array, index)))

    def _add(self, array: int, part: LocalBuffer, inner: _Scope, scope: _Scope, block: Block) -> None:
        """Add the partial sums that a buffer holds to those of the scope around."""
        index, (inner, scope), block = self._each(array, part, (inner, scope), block)
        dtype, body = self._model.arrays[array].dtype, BodyEmitter(partial(_added, block))
        loads = [LoadOp(*_place(each, array, index), storage_type(dtype)) for each in (scope, inner)]
        block.add_ops(loads)
        total = body.apply(self._combine(array), [body.from_storage(load.result, dtype) for load in loads], dtype)
        block.add_op(StoreOp(body.to_storage(total, dtype), *_place(scope, array, index)))

    def _combine(self, array: int) -> Combine:
        return next(s.combine for s in self._model.statements if s.target == array and s.combine is not None)

    def _each(
        self, array: int, part: LocalBuffer, scopes: Sequence[_Scope], block: Block
    ) -> tuple[Sequence[AffineExpr], Sequence[_Scope], Block]:
        """Loops over what a buffer holds of an array: an element's index in it, the scopes inside, and their body."""
        kinds = self._copy_kinds(array, part)
        first = len(scopes[0].variables)
        for axis, (size, kind) in enumerate(zip(part.shape, kinds, strict=True)):
            loop = ForOp(AffineMap.constant_map(0), AffineMap.constant_map(size), (), 1, kind, f"copy{axis}")
            loop.variable.name_hint = f"copy{axis}"
            block.add_op(loop)
            block = loop.body.block
            ranges = {**scopes[0].ranges, first + axis: range(size)}
            variables = (*scopes[0].variables, loop.variable)
            scopes = [replace(scope, variables=variables, ranges=ranges) for scope in scopes]
        index = [AffineExpr.constant(0)] * len(part.axes)
        for position, (axis, origin) in enumerate(zip(part.axes, part.origin, strict=True)):
            index[axis] = AffineExpr.dimension(first + position) + origin
        return index, scopes, block

    def _copy_kinds(self, array: int, part: LocalBuffer) -> list[LoopKind]:
        """The kinds of a copy's loops: sums in registers need loops that are written out, with vectors along rows."""
        if self._model.arrays[array].kind == "input":
            return [LoopKind.SEQUENTIAL] * len(part.shape)
        return [LoopKind.UNROLL] * (len(part.shape) - 1) + [LoopKind.VECTOR] * bool(part.shape)

    def _allocated(self, array: int, buffer: LocalBuffer, block: Block) -> SSAValue:
        type_ = contiguous(storage_type(self._model.arrays[array].dtype), tuple(buffer.shape))
        alloca = memref.AllocaOp.build(operands=[[], []], result_types=[type_])
        block.add_op(alloca)
        alloca.memref.name_hint = "acc" if self._is_accumulator(array) else "local"
        return alloca.memref

    def _is_accumulator(self, array: int) -> bool:
        return any(s.target == array and s.combine for s in self._model.statements)


def _at(instance: Instance, dimension: int, value: AffineExpr) -> Instance:
    """An instance with a value in the place of a dimension of the nest, the innermost."""
    dims = [*map(AffineExpr.dimension, range(dimension)), value]
    return replace(instance, index=tuple(simplified(e.replace_dims_and_symbols(dims, [])) for e in instance.index))


def _added(block: Block, op: Operation) -> Operation:
    block.add_op(op)
    return op


def _scope_in(block: Block) -> Block:
    """The body of a loop of one iteration: local arrays in it share the stack with those of the loops beside it."""
    loop = ForOp(AffineMap.constant_map(0), AffineMap.constant_map(1), label="part")
    loop.variable.name_hint = "part"
    block.add_op(loop)
    return loop.body.block


class _InstanceEmitter:
    """Emits one statement at one point."""

    def __init__(
        self, model: KernelModel, instance: Instance, scope: _Scope, block: Block, locations: Sequence[Attribute]
    ):
        self._model, self._instance, self._scope, self._block = model, instance, scope, block
        self._statement = model.statements[instance.statement]
        self._location = locations[self._statement.operation]
        self._body = BodyEmitter(self._insert, self._load, self._index)

    def emit(self) -> None:
        statement, array = self._statement, self._model.arrays[self._statement.target]
        value = self._body.emit(statement.body)
        if statement.combine is not None:
            before = self._load(Read(statement.target, statement.write, array.dtype))
            value = self._body.apply(statement.combine, [before, value], array.dtype)
        if statement.target in self._scope.forwarded:
            self._scope.values[statement.target] = self._body.round_to(value, array.dtype)
            return
        stored = self._body.to_storage(value, array.dtype)
        self._insert(
            StoreOp(stored, *_place(self._scope, statement.target, compose(statement.write, self._instance.index)))
        )

    def emit_products(self, product: Contraction, unit: Unit, terms: Sequence[_InstanceEmitter]) -> None:
        """Emit as one instruction what emitters of a sum's terms would, this one the first of them."""
        dtype, reads = self._model.arrays[product.target].dtype, (product.a, product.b)
        order = unit.order(product.a.dtype, product.b.dtype, dtype)
        assert order is not None
        a, b = ([term.loaded(reads[k]) for term in terms] for k in order)
        total = self.loaded(Read(product.target, self._statement.write, dtype))
        types = [reads[k].dtype for k in order]
        both = AddProductsOp(unit.name, types, total, a, b, total.type)
        self._insert(both)
        place = _place(self._scope, product.target, compose(self._statement.write, self._instance.index))
        self._insert(StoreOp(both.result, *place))

    def loaded(self, read: Read) -> SSAValue:
        """An element of an array as it lies in memory."""
        place = _place(self._scope, read.operand, compose(read.index, self._instance.index))
        return self._insert(LoadOp(*place, storage_type(read.dtype))).results[0]

    def _insert(self, op: Operation) -> Operation:
        op.location = self._location  # pyright: ignore[reportAttributeAccessIssue]
        self._block.add_op(op)
        return op

    def _load(self, read: Read) -> SSAValue:
        index = compose(read.index, self._instance.index)
        if read.operand in self._scope.forwarded:
            return self._scope.values[read.operand]
        if read.indirect:
            return self._load_indirect(read, index)
        load = self._insert(LoadOp(*_place(self._scope, read.operand, index), storage_type(read.dtype)))
        return self._body.from_storage(load.results[0], read.dtype)

    def _load_indirect(self, read: Read, index: Sequence[AffineExpr]) -> SSAValue:
        """A read whose index is data, clamped into the array: nothing outside is ever touched."""
        map_, values = _over_used(self._scope, [simplified(e, self._scope.ranges) for e in index])
        places = list(map_.results)
        for axis, data in read.indirect:
            places[axis] = AffineExpr.dimension(len(values))
            values.append(self._clamped(data, self._model.arrays[read.operand].shape[axis]))
        place = AffineMap(len(values), 0, tuple(places))
        load = self._insert(LoadOp(self._scope.buffers[read.operand], place, values, storage_type(read.dtype)))
        return self._body.from_storage(load.results[0], read.dtype)

    def _clamped(self, data: Scalar, extent: int) -> SSAValue:
        wide, last = self._body.cast(self._body.emit(data), data.dtype, "i64"), max(extent - 1, 0)
        known = index_range(wide)
        if known is None or known[0] < 0:
            wide = self._insert(arith.MaxSIOp(wide, self._body.constant(0, "i64"))).results[0]
        if known is None or known[1] > last:
            wide = self._insert(arith.MinSIOp(wide, self._body.constant(last, "i64"))).results[0]
        return self._insert(arith.IndexCastOp(wide, IndexType())).results[0]

    def _index(self, index: Index) -> SSAValue:
        sizes = [AffineExpr.dimension(k) for k in range(len(self._model.sizes))]
        expr = index.expr.replace_dims_and_symbols(list(self._instance.index), sizes)
        return self._insert(arith.IndexCastOp(self._apply(expr), i64)).results[0]

    def _apply(self, expr: AffineExpr) -> SSAValue:
        map_, values = _over_used(self._scope, (simplified(expr, self._scope.ranges),))
        return self._insert(ApplyOp(map_, values)).results[0]


def _place(scope: _Scope, array: int, index: Sequence[AffineExpr]) -> tuple[SSAValue, AffineMap, list[SSAValue]]:
    """The array's buffer and the index into it: local ones hold only what an iteration touches."""
    local = _part_of(scope, array, index)
    buffer, place = (scope.buffers[array], index) if local is None else (local[1], local[0].index(index))
    return buffer, *_over_used(scope, [simplified(e, scope.ranges) for e in place])


def _part_of(scope: _Scope, array: int, index: Sequence[AffineExpr]) -> _Local | None:
    """The local buffer that holds an element of an array, if local ones do."""
    *parts, last = scope.local.get(array, [None])
    return next((part for part in parts if part is not None and part[0].holds(index, scope.ranges)), last)


def _inverse(order: Sequence[int]) -> list[int]:
    return [order.index(k) for k in range(len(order))]


def _over_used(scope: _Scope, exprs: Sequence[AffineExpr]) -> tuple[AffineMap, list[SSAValue]]:
    """The map over only those loop variables that it uses."""
    map_, used = over_used(exprs, len(scope.variables))
    return map_, [scope.variables[d] for d in used]
