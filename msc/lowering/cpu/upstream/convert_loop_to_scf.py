"""Pass `convert-loop-to-scf`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf, vector
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    UnregisteredOp,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from msc.analysis.properties import BUFFERS
from msc.dialects import loop
from msc.dialects.ms.structure import ParameterOp
from msc.ir.contracts import Contract
from msc.ir.rewriting import apply_patterns
from msc.ir.typed import is_vector, static_shape, tensor_type
from msc.lowering.cpu.affine_to_arith import Emit, expand_affine, index_constant
from msc.lowering.cpu.buffer_types import buffer_type
from msc.lowering.cpu.failure import refuse
from msc.lowering.cpu.vectorize.vector_reductions import splat


def give_masks_their_type(module: ModuleOp) -> None:
    """Turn every i1 that comes from a comparison of vectors into a vector of i1, through logical operations.

    xDSL 0.74 knows comparisons of vectors only with the result i1, and arith.select only with the condition i1; in MLIR
    both are vectors of i1. The right types would not verify in xDSL, so these operations are made without its
    definition: they print in the generic form, which is the one that MLIR is given.
    """
    for op in list(module.walk()):
        shape = _mask_shape(op)
        if shape is None:
            continue
        match op:
            case arith.CmpfOp() | arith.CmpiOp():
                _replace(op, op.operands, VectorType(i1, shape))
            case arith.AndIOp() | arith.OrIOp() | arith.XOrIOp():
                _replace(op, [_as_mask(operand, op, shape) for operand in op.operands], VectorType(i1, shape))
            case arith.SelectOp():
                _replace(op, op.operands, op.result.type)
            case _:
                pass


def _mask_shape(op: Operation) -> tuple[int, ...] | None:
    """The shape of the vectors that a comparison takes, or of a mask that another operation takes."""
    compares = isinstance(op, arith.CmpfOp | arith.CmpiOp)
    for operand in op.operands:
        if is_vector(operand.type) and (compares or operand.type.element_type == i1):
            return operand.type.get_shape()
    return None


def _as_mask(operand: SSAValue, op: Operation, shape: tuple[int, ...]) -> SSAValue:
    if is_vector(operand.type):
        return operand
    broadcast = vector.BroadcastOp(operand, VectorType(i1, shape))
    _insert_before(broadcast, op)
    return broadcast.vector


def _replace(op: Operation, operands: Sequence[SSAValue], type_: Attribute) -> None:
    new = UnregisteredOp.with_name(op.name).create(operands=operands, result_types=[type_], properties=op.properties)
    new.location = op.location
    new.results[0].name_hint = op.results[0].name_hint
    _insert_before(new, op)
    op.results[0].replace_all_uses_with(new.results[0])
    op.detach()
    op.erase()


def _insert_before(new: Operation, op: Operation) -> None:
    block = op.parent_block()
    if block is not None:
        block.insert_op_before(new, op)


_OWN_DIALECTS = ("ms.", "gk.", "loop.")


@dataclass(frozen=True)
class ConvertLoopToScf(ModulePass):
    """Convert the loop stage to upstream dialects, in a form that MLIR reads.

    Before: a loop-stage module. After: builtin, func, scf, arith, math, memref and vector; its generic form parses
    and verifies in MLIR (`iree-opt --verify-each`). What upstream cannot say, and what becomes of it:
    - a loop's kind (parallel, unroll) and label: plain scf.for, since the kinds are advice to the C compiler that
      change no result;
    - bounds that are the largest or smallest of several expressions: arith.maxsi, arith.minsi;
    - lanes that do not lie side by side, and parts of vectors: element loads with vector.insert (xDSL has no
      vector.from_elements) and stores; lanes that are all equal: one load and vector.broadcast;
    - loop.prefetch: nothing, as it is a hint;
    - loop.lanes: the operation that it names, in the generic form, as xDSL's definition would refuse it;
    - loop.add_products: each factor extended, a product and a sum of each term;
    - masks of vectors, which xDSL types i1: vectors of i1;
    - memref.alloca in a loop: at the beginning of its function, because upstream frees it only when the function
      returns;
    - loop.slice: refused, since upstream keeps the offset of such a view in its type, which kernels do not take;
    - loop.call "argsort": loops that insert each key among the least before it; other calls are refused;
    - ms.parameter: gone if its bytes come from %weights, an uninitialised memref.global if the program is not planned
      yet;
    - attributes of our dialects (ms.name, loop.schedule, ...): gone, MLIR refuses attributes of dialects it does not
      know.
    """

    name = "convert-loop-to-scf"
    contract = Contract(requires=(BUFFERS,))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Convert every function of the module. Raises MSC0404 for an entry of a buffer."""
        for entry in (inner for inner in op.walk() if isinstance(inner, loop.BufferSliceOp)):
            raise refuse(self.name, entry, "an entry of a buffer, as a whole buffer, has no form in upstream dialects")
        for call in (inner for inner in op.walk() if isinstance(inner, loop.CallRowsOp)):
            if call.function.data not in _CALLS:
                raise refuse(
                    self.name, call, f"the library call {call.function.data!r} has no form in upstream dialects"
                )
        patterns: list[RewritePattern] = [
            _ConvertLoad(),
            _ConvertStore(),
            _DropPrefetch(),
            _ConvertApply(),
            _ConvertAddProducts(),
            _ConvertLanes(),
            _ConvertCall(),
            _ConvertFor(),
        ]
        apply_patterns(op, patterns, owner=self.name)
        give_masks_their_type(op)
        _convert_parameters(op)
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            _hoist_allocations(function)
        for inner in op.walk():
            _drop_own_attributes(inner)


def _inserting(rewriter: PatternRewriter) -> Emit:
    """Insert before the operation that is being rewritten."""

    def emit(op: Operation) -> SSAValue:
        rewriter.insert(op)
        return op.results[0]

    return emit


class _ConvertFor(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loop.ForOp, rewriter: PatternRewriter, /) -> None:
        emit = _inserting(rewriter)
        lower = _extreme(emit, op.lower.data, op.values, arith.MaxSIOp)
        upper = _extreme(emit, op.upper.data, op.values, arith.MinSIOp)
        step = index_constant(emit, op.step.value.data)
        body = rewriter.move_region_contents_to_new_regions(op.body)
        body.block.add_op(scf.YieldOp())
        rewriter.replace(op, scf.ForOp(lower, upper, step, [], body), [])


def _extreme(
    emit: Emit, bound: AffineMap, values: Sequence[SSAValue], combine: Callable[[SSAValue, SSAValue], Operation]
) -> SSAValue:
    first, *others = [expand_affine(emit, expr, values) for expr in bound.results]
    for other in others:
        first = emit(combine(first, other))
    return first


class _DropPrefetch(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loop.PrefetchOp, rewriter: PatternRewriter, /) -> None:
        rewriter.erase(op)


class _ConvertApply(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loop.ApplyOp, rewriter: PatternRewriter, /) -> None:
        value = expand_affine(_inserting(rewriter), op.map.data.results[0], op.values)
        rewriter.replace(op, [], [value])


class _ConvertLanes(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loop.LanesOp, rewriter: PatternRewriter, /) -> None:
        if op.operation.data == "loop.dot_bytes":
            rewriter.replace(op, [], [_dotted(_inserting(rewriter), *op.arguments)])
            return
        properties = {} if op.predicate is None else {"predicate": op.predicate}
        upstream = UnregisteredOp.with_name(op.operation.data)
        new = upstream.create(operands=op.arguments, result_types=[op.result.type], properties=properties)
        rewriter.replace(op, new)


def _dotted(emit: Emit, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
    """The products of the bytes of two words, added to c."""

    def number(value: int) -> SSAValue:
        if is_vector(a.type):
            lanes = VectorType(i32, a.type.get_shape())
            return emit(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(lanes, [value])))
        return emit(arith.ConstantOp(IntegerAttr(value, i32)))

    for place in range(0, 32, 8):
        byte = emit(arith.AndIOp(emit(arith.ShRUIOp(a, number(place))), number(255)))
        signed = emit(arith.ShRSIOp(emit(arith.ShLIOp(b, number(24 - place))), number(24)))
        c = emit(arith.AddiOp(c, emit(arith.MuliOp(byte, signed))))
    return c


class _ConvertCall(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loop.CallRowsOp, rewriter: PatternRewriter, /) -> None:
        rewriter.replace(op, _CALLS[op.function.data](op, _inserting(rewriter)), [])


class _ConvertAddProducts(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loop.AddProductsOp, rewriter: PatternRewriter, /) -> None:
        emit, total = _inserting(rewriter), op.sum
        multiply, add = (arith.MuliOp, arith.AddiOp) if _is_integer(total.type) else (arith.MulfOp, arith.AddfOp)
        for factors in reversed(list(zip(*op.terms, strict=True))):
            a, b = (_wide(emit, *each, total.type) for each in zip(factors, op.element_types, strict=True))
            total = emit(add(total, emit(multiply(a, b))))
        rewriter.replace(op, [], [total])


def _is_integer(type_: Attribute) -> bool:
    """Whether it is an integer, or a vector of them."""
    return isinstance(type_.element_type if is_vector(type_) else type_, IntegerType)


def _wide(emit: Emit, factor: SSAValue, name: str, type_: Attribute) -> SSAValue:
    """A factor in the type of the sum."""
    operation = {"u": "arith.extui", "i": "arith.extsi"}.get(name[0], "arith.extf")
    element = type_.element_type if is_vector(type_) else type_
    if is_vector(factor.type):
        return emit(loop.LanesOp(operation, [factor], type_))
    wide = emit(loop.LanesOp(operation, [factor], element))
    return emit(vector.BroadcastOp(wide, type_)) if is_vector(type_) else wide


class _ConvertLoad(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loop.LoadOp, rewriter: PatternRewriter, /) -> None:
        emit, type_ = _inserting(rewriter), op.result.type
        if not is_vector(type_):
            rewriter.replace(op, memref.LoadOp.get(op.source, _lane(emit, op, 0)))
        elif not any(op.lane_steps):
            element = emit(memref.LoadOp.get(op.source, _lane(emit, op, 0)))
            rewriter.replace(op, vector.BroadcastOp(element, type_))
        elif _is_whole(op):
            rewriter.replace(op, vector.LoadOp(op.source, _lane(emit, op, 0), type_))
        else:
            rewriter.replace(op, [], [_gather(emit, op, type_)])


def _gather(emit: Emit, op: loop.LoadOp, type_: VectorType[Attribute]) -> SSAValue:
    """The lanes one by one; all are the first at first, or zeros if not all are loaded."""
    loaded = [emit(memref.LoadOp.get(op.source, _lane(emit, op, k))) for k in range(op.touched_lanes)]
    whole = op.touched_lanes == op.all_lanes
    start = vector.BroadcastOp(loaded[0], type_) if whole else arith.ConstantOp(splat(0, type_))
    result = emit(start)
    for k, element in enumerate(loaded[whole:], start=whole):
        result = emit(vector.InsertOp(element, result, [k]))
    return result


class _ConvertStore(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: loop.StoreOp, rewriter: PatternRewriter, /) -> None:
        emit, type_ = _inserting(rewriter), op.value.type
        if not is_vector(type_):
            rewriter.replace(op, memref.StoreOp.get(op.value, op.target, _lane(emit, op, 0)))
        elif _is_whole(op):
            rewriter.replace(op, vector.StoreOp(op.value, op.target, _lane(emit, op, 0)))
        else:
            for k in range(op.touched_lanes):
                element = emit(vector.ExtractOp(op.value, [k], type_.element_type))
                rewriter.insert(memref.StoreOp.get(element, op.target, _lane(emit, op, k)))
            rewriter.erase(op)


def _is_whole(op: loop.AccessOp) -> bool:
    return op.is_contiguous and op.touched_lanes == op.all_lanes


def _lane(emit: Emit, op: loop.AccessOp, lane: int) -> list[SSAValue]:
    """The indices of a lane."""
    exprs = [_moved(expr, step * lane) for expr, step in zip(op.map.results, op.lane_steps, strict=True)]
    return [expand_affine(emit, expr, op.indices) for expr in exprs]


def _moved(expr: AffineExpr, distance: int) -> AffineExpr:
    return expr + distance if distance else expr


def _convert_parameters(module: ModuleOp) -> None:
    used = {op.name_.string_value() for op in module.walk() if isinstance(op, memref.GetGlobalOp)}
    for op in [op for op in module.body.block.ops if isinstance(op, ParameterOp)]:
        if op.symbol in used:
            type_ = buffer_type(tensor_type(op.type))
            module.body.block.insert_op_before(memref.GlobalOp.get(StringAttr(op.symbol), type_, UnitAttr()), op)
        module.body.block.erase_op(op)


def _hoist_allocations(function: func.FuncOp) -> None:
    block = function.body.block
    for op in [op for op in function.walk() if isinstance(op, memref.AllocaOp)]:
        op.detach()
        block.insert_op_before(op, next(iter(block.ops)))


def _drop_own_attributes(op: Operation) -> None:
    op.attributes = {name: value for name, value in op.attributes.items() if not name.startswith(_OWN_DIALECTS)}
    if isinstance(op, func.FuncOp):
        op.arg_attrs = _without_own(op.arg_attrs)
        op.res_attrs = _without_own(op.res_attrs)


def _without_own(attributes: ArrayAttr[DictionaryAttr] | None) -> ArrayAttr[DictionaryAttr] | None:
    if attributes is None:
        return None
    kept = [{n: v for n, v in a.data.items() if not n.startswith(_OWN_DIALECTS)} for a in attributes]
    return ArrayAttr([DictionaryAttr(a) for a in kept]) if any(kept) else None


def insertion_argsort(op: loop.CallRowsOp, emit: Emit) -> scf.ForOp:
    """A loop that inserts each key among the least before it, which stand in the scratch memory in ascending order.

    The constants that it needs are emitted.
    """
    zero, one, count = (index_constant(emit, value) for value in (0, 1, static_shape(op.outputs[0])[-1]))
    block = Block(arg_types=[IndexType()])
    (place,), inside = block.args, _at_end(block)
    key = inside(memref.LoadOp.get(op.buffers[0], [*op.indices, place]))
    kept = inside(arith.MinSIOp(place, count))
    moved = scf.ForOp(zero, kept, one, [key, inside(arith.IndexCastOp(place, i64))], _move(op, key))
    block.add_op(moved)
    fits = inside(arith.CmpiOp(place, count, "slt"))
    block.add_ops([scf.IfOp(fits, [], [*_stores(op, place, *moved.results), scf.YieldOp()]), scf.YieldOp()])
    return scf.ForOp(zero, op.size, one, [], block)


def _move(op: loop.CallRowsOp, key: SSAValue) -> Block:
    """From the first greater key on, each moves to where the next one is; carried are a key and its place."""
    block = Block(arg_types=[IndexType(), key.type, i64])
    (at, *carried), inside = block.args, _at_end(block)
    here = [inside(memref.LoadOp.get(op.buffers[2], [at])), inside(memref.LoadOp.get(op.buffers[1], [*op.indices, at]))]
    less = inside(arith.CmpiOp(key, here[0], "slt"))
    first = [inside(arith.SelectOp(less, new, old)) for new, old in zip(carried, here, strict=True)]
    then = [inside(arith.SelectOp(less, old, new)) for new, old in zip(carried, here, strict=True)]
    block.add_ops([*_stores(op, at, *first), scf.YieldOp(*then)])
    return block


def _stores(op: loop.CallRowsOp, at: SSAValue, key: SSAValue, place: SSAValue) -> list[Operation]:
    """A key and its place."""
    places = [*op.indices, at]
    return [memref.StoreOp.get(key, op.buffers[2], [at]), memref.StoreOp.get(place, op.buffers[1], places)]


def _at_end(block: Block) -> Emit:
    def emit(op: Operation) -> SSAValue:
        block.add_op(op)
        return op.results[0]

    return emit


_CALLS: Mapping[str, Callable[[loop.CallRowsOp, Emit], Operation]] = {"argsort": insertion_argsort}
"""Library calls in upstream dialects."""
