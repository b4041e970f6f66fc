"""One vector's worth of a straight-line loop body.

Values that do not depend on the loop variable stay scalar and are broadcast where they meet a vector. Loads and stores
keep their affine index; the steps between lanes are the coefficients of the loop variable. An integer computed from the
loop variable is a ramp: a scalar for the first lane and a step between lanes, added up where it meets a vector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, IntegerType, MemRefType, VectorType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.dialects.loop import AddProductsOp, ApplyOp, ForOp, LanesOp, LoadOp, PrefetchOp, StoreOp
from msc.ir.typed import memref_type
from msc.lowering.cpu.vectorize.vector_reductions import combiner_of
from msc.lowering.cpu.vectorize.vector_tails import Tail
from msc.lowering.cpu.vectorize.vector_types import bits_of, lanes_of
from msc.poly.affine import linear_form, over_used, simplified


class NotVectorisable(Exception):
    """A loop that has no vector form; the message says why."""


_ON_LANES = frozenset(
    "arith.cmpf arith.cmpi arith.select arith.sitofp arith.uitofp arith.fptosi arith.fptoui arith.extsi arith.extui "
    "arith.trunci arith.extf arith.truncf arith.bitcast".split()
)
"""Operations that xDSL takes only on scalars: on vectors they are `loop.lanes`."""
_MODULAR = arith.IndexCastOp | arith.TruncIOp
"""Operations that give of a ramp a ramp of the same step: integers modulo a power of two."""


class VectorBody:
    """The operations of a loop body for the lanes from `at`, an expression over `variables`.

    `updates` are the stores that sum over lanes; instead of being emitted, their summands are left in `partial`.
    With one lane the body is the scalar one. For a `tail` of the iterations, only the first lanes count.
    """

    def __init__(
        self,
        loop: ForOp,
        at: AffineExpr,
        variables: Sequence[SSAValue],
        lanes: int,
        updates: Mapping[Operation, SSAValue],
        tail: Tail | None = None,
    ):
        self._loop, self._at, self._variables, self._lanes, self._updates = loop, at, tuple(variables), lanes, updates
        self._tail = tail
        self._values: dict[SSAValue, SSAValue] = {}
        self._ramps: dict[SSAValue, int] = {}
        self._location: Operation | None = None
        self.operations: list[Operation] = []
        self.partial: dict[Operation, SSAValue] = {}
        skipped = {op for store in updates for op in (store, combiner_of(store), _previous(store, updates))}
        for op in loop.body.block.ops:
            if op in updates:
                self.partial[op] = self._broadcast(self._value(updates[op]))
            elif op not in skipped:
                self._translate(op)

    def _translate(self, op: Operation) -> None:
        self._location = op
        match op:
            case LoadOp():
                self._load(op)
            case StoreOp():
                self._store(op)
            case PrefetchOp():
                self._prefetch(op)
            case arith.ConstantOp():
                self._put(op.clone(), op)
            case ApplyOp():
                self._apply(op)
            case AddProductsOp():
                self._products(op)
            case memref.LoadOp():
                self._uniform(op, "it reads at a computed index")
            case _ if op.regions or len(op.results) != 1:
                raise NotVectorisable(f"{op.name} is in it")
            case _:
                self._elementwise(op)

    def _uniform(self, op: Operation, otherwise: str) -> None:
        operands = [self._value(v) for v in op.operands]
        if any(map(self._differs, operands)):
            raise NotVectorisable(otherwise)
        self._put(op.clone(dict(zip(op.operands, operands, strict=True))), op)

    def _apply(self, op: ApplyOp) -> None:
        map_, values, steps = self._moved(op.map.data, op.values)
        first = ApplyOp(map_, values)
        self._put(first, op)
        if self._lanes > 1 and any(steps):
            self._ramps[first.result] = steps[0]

    def _load(self, op: LoadOp) -> None:
        map_, values, steps = self._moved(op.map, op.indices)
        wide = self._lanes > 1 and any(steps)
        type_ = lanes_of(op.result.type, self._lanes) if wide else op.result.type
        part = self._part(op.source, map_, steps) if wide else None
        self._put(LoadOp(op.source, map_, values, type_, steps if wide else None, part), op)

    def _store(self, op: StoreOp) -> None:
        map_, values, steps = self._moved(op.map, op.indices)
        value = self._value(op.value)
        if self._lanes > 1:
            if not any(steps):
                raise NotVectorisable("it writes the same element in every iteration")
            value = self._broadcast(value)
        part = self._part(op.target, map_, steps)
        self._put(StoreOp(value, op.target, map_, values, steps if self._lanes > 1 else None, part), op)

    def _prefetch(self, op: PrefetchOp) -> None:
        """One request for all lanes, whose elements lie in a line or two."""
        map_, values = self._at_first_lane((*op.map.results, op.ahead), op.indices)
        self._add(PrefetchOp(op.source, AffineMap(map_.num_dims, 0, map_.results[:-1]), values, map_.results[-1]))

    def _part(self, buffer: SSAValue, map_: AffineMap, steps: Sequence[int]) -> int | None:
        return self._tail.part(buffer, map_, steps, self._lanes) if self._tail is not None else None

    def _elementwise(self, op: Operation) -> None:
        operands = [self._value(v) for v in op.operands]
        modular = isinstance(op, _MODULAR) and operands[0] in self._ramps
        if modular or not any(map(self._differs, operands)):
            scalar = op.clone(dict(zip(op.operands, operands, strict=True)))
            self._put(scalar, op)
            if modular:
                self._ramps[scalar.results[0]] = self._ramps[operands[0]]
            return
        operands = [self._broadcast(v) for v in operands]
        type_ = lanes_of(op.results[0].type, self._lanes)
        if op.name in _ON_LANES:
            self._put(LanesOp(op.name, operands, type_, _predicate(op)), op)
        elif isinstance(op, LanesOp):
            self._put(LanesOp(op.operation.data, operands, type_, op.predicate), op)
        else:
            self._put(type(op).create(operands=operands, result_types=[type_], properties=op.properties), op)

    def _products(self, op: AddProductsOp) -> None:
        """Of a sum that is a vector; factors that are the same in all lanes stay scalars."""
        total = self._value(op.sum)
        a, b = ([self._value(term) for term in side] for side in op.terms)
        if any(map(self._differs, (*a, *b))):
            total = self._broadcast(total)
        self._put(AddProductsOp(op.unit.data, op.element_types, total, a, b, total.type), op)

    def _moved(self, map_: AffineMap, indices: Sequence[SSAValue]) -> tuple[AffineMap, list[SSAValue], tuple[int, ...]]:
        """The index of the first lane, and the steps between lanes; what else is computed is the same in all lanes."""
        if any(self._differs(self._value(v)) for v in indices):
            raise NotVectorisable("it reads at a computed index")
        position = list(indices).index(self._loop.variable) if self._loop.variable in indices else None
        steps = tuple(_step(r, position) for r in map_.results)
        return *self._at_first_lane(map_.results, indices), steps

    def _at_first_lane(
        self, exprs: Sequence[AffineExpr], indices: Sequence[SSAValue]
    ) -> tuple[AffineMap, list[SSAValue]]:
        """Expressions with the loop variable replaced by where the lanes start."""
        kept = [v for v in indices if v is not self._loop.variable]
        values = [*self._variables, *map(self._value, kept)]
        shift = len(self._variables)
        place = {v: AffineExpr.dimension(shift + i) for i, v in enumerate(kept)}
        replacement = [self._at if v is self._loop.variable else place[v] for v in indices]
        results = [simplified(r.replace_dims_and_symbols(replacement, [])) for r in exprs]
        map_, used = over_used(results, len(values))
        return map_, [values[d] for d in used]

    def _value(self, value: SSAValue) -> SSAValue:
        return self._values.get(value, value)

    def _differs(self, value: SSAValue) -> bool:
        """Whether a value is another one in each lane."""
        return isinstance(value.type, VectorType) or value in self._ramps

    def _broadcast(self, value: SSAValue) -> SSAValue:
        if isinstance(value.type, VectorType) or self._lanes == 1:
            return value
        vector_type = lanes_of(value.type, self._lanes)
        first = self._add(vector.BroadcastOp(value, vector_type)).results[0]
        return first if value not in self._ramps else self._ramp(first, vector_type, self._ramps[value])

    def _ramp(self, first: SSAValue, type_: VectorType[Attribute], step: int) -> SSAValue:
        """The vector `first, first + step, first + 2 step ...` of a splat."""
        integers = lanes_of(IntegerType(bits_of(type_.element_type)), self._lanes)
        numbers = DenseIntOrFPElementsAttr.from_list(integers, [step * lane for lane in range(self._lanes)])
        offsets = self._add(arith.ConstantOp(numbers))
        return self._add(arith.AddiOp(first, offsets.results[0])).results[0]

    def _put(self, op: Operation, original: Operation) -> None:
        self._add(op)
        for old, new in zip(original.results, op.results, strict=True):
            self._values[old] = new

    def _add(self, op: Operation) -> Operation:
        if self._location is not None:
            op.location = self._location.location
        self.operations.append(op)
        return op


def _step(expr: AffineExpr, position: int | None) -> int:
    form = linear_form(expr)
    if form is not None:
        return 0 if position is None else form.coefficients.get(position, 0)
    if position in expr.used_dims():
        raise NotVectorisable("an index divides by a constant")
    return 0


def _predicate(op: Operation) -> IntegerAttr | None:
    return IntegerAttr(op.predicate.value.data, i64) if isinstance(op, arith.CmpfOp | arith.CmpiOp) else None


def _previous(store: Operation, updates: Mapping[Operation, SSAValue]) -> Operation:
    """The load of what the update adds to: the operand of the combiner that is not the summand."""
    combiner = combiner_of(store)
    previous = next(v for v in combiner.operands if v is not updates[store])
    assert isinstance(previous.owner, Operation)
    return previous.owner


def buffer_of(store: Operation) -> MemRefType[Attribute]:
    """The type of the buffer that a store writes."""
    assert isinstance(store, StoreOp)
    return memref_type(store.target)
