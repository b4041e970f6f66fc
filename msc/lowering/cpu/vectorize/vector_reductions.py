"""Reductions over the lanes of a vector loop: updates `y = combine(y, x)` of an element that every iteration writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, IntegerType, VectorType, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.dialects.element_types import dtype_name
from msc.dialects.loop import ForOp, LanesOp, LoadOp, StoreOp
from msc.lowering.cpu.vectorize.vector_types import bits_of, lanes_of
from msc.poly.compute import Combine, identity

_COMBINERS: Mapping[type[Operation], tuple[Combine, str]] = {
    arith.AddfOp: ("add", "add"),
    arith.MulfOp: ("mul", "mul"),
    arith.MaximumfOp: ("max", "maximumf"),
    arith.MinimumfOp: ("min", "minimumf"),
    arith.AddiOp: ("add", "add"),
    arith.MuliOp: ("mul", "mul"),
    arith.AndIOp: ("and", "and"),
    arith.OrIOp: ("or", "or"),
    arith.MaxSIOp: ("max", "maxsi"),
    arith.MinSIOp: ("min", "minsi"),
    arith.MaxUIOp: ("max", "maxui"),
    arith.MinUIOp: ("min", "minui"),
}
"""Combining operation -> (combiner, kind of `vector.reduction`)."""


@dataclass(frozen=True)
class LaneSums:
    """The updates of a loop: each store with the value that it adds in."""

    updates: Mapping[Operation, SSAValue]

    @classmethod
    def of(cls, loop: ForOp) -> LaneSums:
        stores = [op for op in loop.body.block.ops if isinstance(op, StoreOp) and loop.variable not in op.indices]
        found = {store: update_of(store) for store in stores}
        return cls({store: update[1] for store, update in found.items() if update is not None})

    def accumulators(self, lanes: int, chains: int) -> tuple[list[Operation], list[Operation]]:
        """A vector accumulator for each update and chain (allocations), and the operations that make and clear them."""
        allocations: list[Operation] = []
        operations: list[Operation] = []
        for store in self.updates:
            element = combiner_of(store).results[0].type
            allocation = memref.AllocaOp.get(element, shape=[chains * lanes])
            allocation.memref.name_hint = "lanes"
            neutral = arith.ConstantOp(splat(_neutral(combiner_of(store)), lanes_of(element, lanes)))
            operations += [allocation, neutral]
            for chain in range(chains):
                operations.append(StoreOp(neutral.result, allocation.memref, AffineMap.constant_map(chain * lanes), ()))
            allocations.append(allocation)
        return allocations, operations

    def accumulate(
        self,
        partial: Mapping[Operation, SSAValue],
        allocations: Sequence[Operation],
        chain: SSAValue | None,
        lanes: int,
    ) -> list[Operation]:
        """Add each partial vector into its accumulator."""
        operations: list[Operation] = []
        map_ = AffineMap.constant_map(0) if chain is None else AffineMap(1, 0, (AffineExpr.dimension(0) * lanes,))
        indices = () if chain is None else (chain,)
        for (store, value), allocation in zip(partial.items(), allocations, strict=True):
            before = LoadOp(allocation.results[0], map_, indices, value.type)
            combined = type(combiner_of(store)).create(operands=[before.result, value], result_types=[value.type])
            after = StoreOp(combined.results[0], allocation.results[0], map_, indices)
            operations += [before, combined, after]
        return operations

    def only(
        self, partial: Mapping[Operation, SSAValue], count: int, lanes: int
    ) -> tuple[list[Operation], Mapping[Operation, SSAValue]]:
        """The first lanes of each partial vector, and what changes no sum in the others; with what makes them so."""
        operations: list[Operation] = []
        chosen: dict[Operation, SSAValue] = {}
        for store, value in partial.items():
            element = combiner_of(store).results[0].type
            numbers = lanes_of(IntegerType(bits_of(element)), lanes)
            first = arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(numbers, range(lanes)))
            limit = arith.ConstantOp(splat(count, numbers))
            mask = LanesOp("arith.cmpi", [first.result, limit.result], lanes_of(i1, lanes), IntegerAttr(2, i64))
            neutral = arith.ConstantOp(splat(_neutral(combiner_of(store)), lanes_of(element, lanes)))
            kept = LanesOp("arith.select", [mask.result, value, neutral.result], value.type)
            operations += [first, limit, mask, neutral, kept]
            chosen[store] = kept.result
        return operations, chosen

    def combine_accumulators(self, allocations: Sequence[Operation], lanes: int, chains: int) -> list[Operation]:
        """After the loop: combine the chains, then the lanes, then what the place held."""
        operations: list[Operation] = []
        values: dict[Operation, SSAValue] = {}
        for store, allocation in zip(self.updates, allocations, strict=True):
            type_ = lanes_of(combiner_of(store).results[0].type, lanes)
            loads = [LoadOp(allocation.results[0], AffineMap.constant_map(c * lanes), (), type_) for c in range(chains)]
            operations += loads
            total = loads[0].result
            for load in loads[1:]:
                combined = type(combiner_of(store)).create(operands=[total, load.result], result_types=[type_])
                operations.append(combined)
                total = combined.results[0]
            values[store] = total
        return [*operations, *self.combine_values(values)]

    def combine_values(self, partial: Mapping[Operation, SSAValue]) -> list[Operation]:
        """Reduce each partial vector to one element and combine it into its place."""
        operations: list[Operation] = []
        for store, value in partial.items():
            assert isinstance(store, StoreOp)
            type_ = value.type
            if isinstance(type_, VectorType):
                kind = _COMBINERS[type(combiner_of(store))][1]
                reduction = _reduction(value, cast(VectorType[Attribute], type_), kind)
                operations.append(reduction)
                value = reduction.results[0]
            before = LoadOp(store.target, store.map, store.indices, value.type)
            combined = type(combiner_of(store)).create(operands=[before.result, value], result_types=[value.type])
            after = StoreOp(combined.results[0], store.target, store.map, store.indices)
            operations += [before, combined, after]
        return operations


def _reduction(value: SSAValue, type_: VectorType[Attribute], kind: str) -> vector.ReductionOp:
    properties = {
        "kind": vector.CombiningKindAttr(vector.CombiningKindFlag(kind)),
        "fastmath": arith.FastMathFlagsAttr("none"),
    }
    return vector.ReductionOp.create(operands=[value], result_types=[type_.element_type], properties=properties)


def update_of(store: StoreOp) -> tuple[LoadOp, SSAValue] | None:
    """What a store's place held before, and what is combined with it, if nothing else uses the two."""
    combiner = store.value.owner
    if (
        not isinstance(combiner, Operation)
        or type(combiner) not in _COMBINERS
        or combiner.results[0].uses.get_length() != 1
    ):
        return None
    for previous, summand in (combiner.operands, combiner.operands[::-1]):
        load = previous.owner
        if isinstance(load, LoadOp) and _same_place(load, store) and previous.uses.get_length() == 1:
            return load, summand
    return None


def _same_place(load: LoadOp, store: StoreOp) -> bool:
    return load.source is store.target and load.map == store.map and list(load.indices) == list(store.indices)


def combiner_of(store: Operation) -> Operation:
    """The operation whose result a store of a reduction writes."""
    owner = store.operands[0].owner
    assert isinstance(owner, Operation)
    return owner


def _neutral(combiner: Operation) -> float | bool:
    """The neutral element of a combiner, as its signless type holds it."""
    combine, kind = _COMBINERS[type(combiner)]
    dtype = _dtype(combiner.results[0].type)
    value = identity(combine, f"u{dtype}" if kind.endswith("ui") else dtype)
    return -1 if kind == "minui" else value


def splat(value: float | bool, type_: VectorType[Attribute]) -> DenseIntOrFPElementsAttr:
    """A vector constant whose lanes are all the same."""
    return DenseIntOrFPElementsAttr.from_list(type_, [value] * type_.get_shape()[0])  # pyright: ignore


def _dtype(element: Attribute) -> str:
    name = dtype_name(element)
    assert name is not None
    return name
