"""Pass `pair-products`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import ModuleOp, bf16, f32
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from msc.analysis.properties import KERNEL_FUNCTIONS, VECTORS
from msc.analysis.target import target_of
from msc.dialects.loop import AddProductsOp, ForOp, LanesOp, LoadOp, LoopKind, PrefetchOp, StoreOp
from msc.ir.contracts import Contract
from msc.ir.typed import is_vector, memref_type
from msc.lowering.cpu.vectorize.vector_reductions import update_of
from msc.poly.affine import simplified

PAIR = 2
"""Iterations of the loop of sums that one takes the place of."""


@dataclass(frozen=True)
class PairProducts(ModulePass):
    """Add two products of bf16 at a time to sums of f32, where an instruction of the machine does.

    Takes kernels' functions with vectors. A loop that adds to each place of a register tile the product of two bf16
    operands goes two iterations at a time: it loads both operands of both, and `loop.add_products` adds up. The
    operands lie in memory as before. An odd iteration at the end is left as it is; so are loops that write anything
    else, sums along lanes, and loops of which no count of iterations is known. A named relaxation: the order of
    two terms, and subnormal numbers, which the instruction takes for zeros (docs/numerics.md).
    """

    name = "pair-products"
    contract = Contract(requires=(KERNEL_FUNCTIONS, VECTORS))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).machine.vectors.bf16_products < PAIR:
            return
        for loop in [loop for loop in op.walk() if isinstance(loop, ForOp)]:
            products = _products(loop) if loop.kind.data is LoopKind.SEQUENTIAL and loop.step.value.data == 1 else []
            count = _iterations(loop) if products else None
            if count is not None and count >= PAIR:
                _pair(loop, products, count)


@dataclass(frozen=True)
class _Product:
    """`store` adds the product of what two loads read to what its place `held`."""

    store: StoreOp
    held: LoadOp
    factors: tuple[LoadOp, LoadOp]

    def pair(self, variable: SSAValue) -> None:
        """Add the product of this iteration and that of the next one."""
        further = [_at_next(load, variable) for load in self.factors]
        for load, next_ in zip(self.factors, further, strict=True):
            Rewriter.insert_op(next_, InsertPoint.after(load))
        both = AddProductsOp(self.held.result, *(load.result for load in (*self.factors, *further)))
        both.location = self.store.location
        old = self.store.value.owner
        assert isinstance(old, Operation)
        Rewriter.insert_op(both, InsertPoint.before(self.store))
        self.store.operands[0] = both.result
        _erase_unread(old)


def _pair(loop: ForOp, products: list[_Product], count: int) -> None:
    if count % PAIR:
        _split_last(loop)
    for request in [op for op in loop.walk() if isinstance(op, PrefetchOp)]:
        Rewriter.insert_op(_request_at_next(request, loop.variable), InsertPoint.after(request))
    for product in products:
        product.pair(loop.variable)
    loop.properties["step"] = type(loop.step)(PAIR, loop.step.type)


def _products(loop: ForOp) -> list[_Product]:
    """The additions of a loop, if it does nothing else in unrolled loops; none where one is of another kind."""
    found: list[_Product] = []
    for op in _inside(loop):
        if isinstance(op, ForOp) and (op.kind.data is not LoopKind.UNROLL or op.constant_range is None):
            return []
        if isinstance(op, StoreOp):
            product = _product(op, loop)
            if product is None:
                return []
            found.append(product)
        elif not isinstance(op, ForOp | LoadOp | PrefetchOp) and (op.regions or len(op.results) != 1):
            return []
    return found


def _inside(loop: ForOp) -> Iterator[Operation]:
    return (op for op in loop.walk() if op is not loop)


def _product(store: StoreOp, loop: ForOp) -> _Product | None:
    """What a store adds to a place of a register tile, which is another one in no iteration of the loop."""
    local = isinstance(store.target.owner, memref.AllocaOp) and not loop.is_ancestor(store.target.owner)
    if not local or loop.variable in store.indices or memref_type(store.target).element_type != f32:
        return None
    found = update_of(store) if is_vector(store.value.type) and isinstance(store.value.owner, arith.AddfOp) else None
    if found is None or not isinstance(found[1].owner, arith.MulfOp) or found[1].uses.get_length() != 1:
        return None
    left, right = (_loaded(factor, loop) for factor in found[1].owner.operands)
    if left is None or right is None or not any(is_vector(load.result.type) for load in (left, right)):
        return None
    return _Product(store, found[0], (left, right))


def _loaded(factor: SSAValue, loop: ForOp) -> LoadOp | None:
    """The load in the loop of a bf16 element, or a vector of them, that a factor is in f32."""
    value = factor.owner.operands[0] if isinstance(factor.owner, vector.BroadcastOp) else factor
    owner = value.owner
    extended = isinstance(owner, arith.ExtFOp) or (isinstance(owner, LanesOp) and owner.operation.data == "arith.extf")
    if not extended or not isinstance(owner, Operation):
        return None
    load = owner.operands[0].owner
    reads = isinstance(load, LoadOp) and memref_type(load.source).element_type == bf16 and loop.is_ancestor(load)
    return load if reads and isinstance(load, LoadOp) else None


def _iterations(loop: ForOp) -> int | None:
    """How many iterations run, if it is as many in every run of the loop."""
    single = len(loop.lower.data.results) == len(loop.upper.data.results) == 1
    return loop.most_iterations if single else None


def _split_last(loop: ForOp) -> None:
    """Leave the last iteration to a copy of the loop behind it."""
    (end,) = loop.upper.data.results
    before = AffineMap(loop.upper.data.num_dims, 0, (end - 1,))
    label = loop.label.data if loop.label is not None else None
    last = ForOp(before, loop.upper.data, loop.values, 1, loop.kind.data, label, loop.body.clone())
    last.variable.name_hint = loop.variable.name_hint
    last.location = loop.location
    Rewriter.insert_op(last, InsertPoint.after(loop))
    loop.properties["upper"] = type(loop.upper)(before)


def _at_next(load: LoadOp, variable: SSAValue) -> LoadOp:
    """The load of the next iteration."""
    next_ = load.clone()
    next_.properties["index"] = type(load.index)(_moved(load.map, load.indices, variable))
    next_.result.name_hint = load.result.name_hint
    return next_


def _request_at_next(request: PrefetchOp, variable: SSAValue) -> PrefetchOp:
    next_ = request.clone()
    for name, map_ in (("index", request.map), ("ahead", request.ahead_map.data)):
        next_.properties[name] = type(request.index)(_moved(map_, request.indices, variable))
    return next_


def _moved(map_: AffineMap, indices: Sequence[SSAValue], variable: SSAValue) -> AffineMap:
    """A map over values where a variable is larger by one."""
    dims = [AffineExpr.dimension(k) for k in range(map_.num_dims)]
    moved = [dim + 1 if value is variable else dim for dim, value in zip(dims, indices, strict=True)]
    return AffineMap(map_.num_dims, 0, tuple(simplified(e.replace_dims_and_symbols(moved, [])) for e in map_.results))


def _erase_unread(op: Operation) -> None:
    """Erase what computes values that nothing reads any more; loads stay, as they are read."""
    pending = [op]
    while pending:
        op = pending.pop()
        if op.parent is None or any(result.uses.get_length() for result in op.results) or isinstance(op, LoadOp):
            continue
        pending += [v.owner for v in op.operands if isinstance(v.owner, Operation)]
        op.detach()
        op.erase()
