"""Pass `verify-bounds`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.passes import ModulePass

from msc.analysis.index_ranges import INDEX_LIMIT, ValueRanges
from msc.analysis.integer_bounds import Range, type_range
from msc.dialects import loop
from msc.dialects.open_sizes import argument_sizes
from msc.ir.locations import source_location
from msc.ir.typed import static_shape
from msc.lowering.cpu.verification.valid_limits import ValidLimit, compact_limits, valid_limits
from msc.poly.access_bounds import LoopRange, Undecided, VectorAccess, escaping_iteration
from msc.poly.intervals import interval, magnitude
from msc.support.diagnostics import Diagnostic, raise_any

_EVERY_INDEX: Range = type_range(IndexType()) or (0, 0)


@dataclass(frozen=True)
class VerifyBounds(ModulePass):
    """Prove that no access leaves its buffer. Changes nothing.

    The iterations that reach an access are a set of integer points; the access is right if at no point an index is
    below zero or past its dimension, for any lane. Ranges settle most accesses, isl decides the rest exactly. An
    index that is read from memory, or computed otherwise than by affine expressions, is any number of its range
    (`analysis/index_ranges.py`), which knows where integers wrap. What is not proved is refused. Raises MSC0404 for
    every access that may leave its buffer, with an iteration in which it does, and for indices that may not fit 64
    bits.
    """

    name = "verify-bounds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check every function; all that is wrong is reported at once."""
        raise_any(bounds_diagnostics(op))


def bounds_diagnostics(module: ModuleOp) -> Iterator[Diagnostic]:
    """An error for every access that may leave its buffer."""
    limits = valid_limits(module)
    for function in module.body.block.ops:
        if isinstance(function, func.FuncOp):
            known = (*limits.get(function.sym_name.data, ()), *compact_limits(function))
            nest = Nest.of(function).limited(known)
            yield from _check_region(function.body, nest)


def stays_inside(function: func.FuncOp, limit: ValidLimit) -> bool:
    """Whether a function is proved to stay inside a limit, and touches its buffer by nothing but accesses."""
    nest = Nest.of(function).limited([limit])
    return not any(_check_region(function.body, nest))


@dataclass(frozen=True)
class Nest:
    """The loops around an operation, outermost first, their variables' ranges, and index values as expressions.

    A value that is any number of a range is the variable of a loop over these: the sizes of a call, which come first,
    and what is no affine expression of loops' variables. So what is proved is proved for all of its values.
    """

    values: ValueRanges
    names: tuple[str, ...] = ()
    loops: tuple[LoopRange, ...] = ()
    ranges: tuple[Range, ...] = ()
    known: Mapping[SSAValue, AffineExpr] = field(default_factory=dict[SSAValue, AffineExpr])
    elements: Mapping[SSAValue, Sequence[AffineExpr]] = field(default_factory=dict[SSAValue, Sequence[AffineExpr]])
    """How many elements buffers have where calls decide that."""
    extents: Mapping[SSAValue, Sequence[AffineExpr]] = field(default_factory=dict[SSAValue, Sequence[AffineExpr]])
    """The extents of buffers that lie like any array where calls decide them."""

    @classmethod
    def of(cls, function: func.FuncOp) -> Nest:
        """The nest of a function's own operations."""
        nest = cls(ValueRanges())
        for argument, size in argument_sizes(function.args, function.arg_attrs).items():
            nest = nest.within(argument, size.name, (size.low, size.high))
        return nest

    def limited(self, limits: Sequence[ValidLimit]) -> Nest:
        """The nest that knows how many elements buffers have in a call; sizes that it lacks are added to it."""
        nest, found, extents = self, dict[SSAValue, list[AffineExpr]](), dict[SSAValue, Sequence[AffineExpr]]()
        for limit in limits:
            dims: list[AffineExpr] = []
            for size, value in limit.sizes:
                if value is None or value not in nest.known:
                    bounds = LoopRange((AffineConstantExpr(size.low),), (AffineConstantExpr(size.high + 1),))
                    dims.append(AffineDimExpr(len(nest.names)))
                    nest = replace(
                        nest,
                        names=(*nest.names, size.name),
                        loops=(*nest.loops, bounds),
                        ranges=(*nest.ranges, (size.low, size.high)),
                    )
                else:
                    dims.append(nest.known[value])
            if limit.elements is not None:
                found.setdefault(limit.buffer, []).append(limit.elements.replace_dims_and_symbols(dims, []))
            if limit.extents:
                extents[limit.buffer] = [extent.replace_dims_and_symbols(dims, []) for extent in limit.extents]
        return replace(nest, elements=found, extents=extents)

    def knowing(self, values: Sequence[SSAValue]) -> Nest:
        """The nest in which each of some index values is an expression."""
        nest = self
        for value in values:
            if value not in nest.known:
                name = value.name_hint or f"index {len(nest.names)}"
                low, high = range_ = nest.values.of(value) or _EVERY_INDEX
                upper = (AffineConstantExpr(high + 1), *(limit + 1 for limit in nest._limits(value)))
                nest = nest.looping(value, name, LoopRange((AffineConstantExpr(low),), upper), range_)
        return nest

    def _limits(self, value: SSAValue) -> Iterator[AffineExpr]:
        """Expressions of loops' variables that an integer never exceeds: what it is clamped to."""
        match value.owner:
            case _ if value in self.known:
                yield self.known[value]
            case arith.IndexCastOp(input=source) if value.type in (IndexType(), i64):
                yield from self._limits(source)
            case arith.MinSIOp(lhs=lhs, rhs=rhs):
                yield from (*self._limits(lhs), *self._limits(rhs))
            case arith.MaxSIOp(lhs=lhs, rhs=rhs) if (other := self.values.of(rhs)) is not None:
                yield from (expr for expr in self._limits(lhs) if self._is_at_least(expr, other[1]))
            case _:
                return

    def _is_at_least(self, expr: AffineExpr, least: int) -> bool:
        found = interval(expr, self.ranges)
        return found is not None and found[0] >= least

    def within(self, value: SSAValue, name: str, range_: Range) -> Nest:
        """The nest in which `value` is any number of a range."""
        bounds = LoopRange((AffineConstantExpr(range_[0]),), (AffineConstantExpr(range_[1] + 1),))
        return self.looping(value, name, bounds, range_)

    def looping(self, value: SSAValue, name: str, bounds: LoopRange, range_: Range) -> Nest:
        """The nest in which `value` is the variable of a loop."""
        known = {**self.known, value: AffineDimExpr(len(self.names))}
        names, loops, ranges = (*self.names, name), (*self.loops, bounds), (*self.ranges, range_)
        return replace(self, names=names, loops=loops, ranges=ranges, known=known)

    def defining(self, value: SSAValue, expr: AffineExpr) -> Nest:
        """The nest in which `value` stands for an expression."""
        return replace(self, known={**self.known, value: expr})

    def expressions(self, exprs: Sequence[AffineExpr], values: Sequence[SSAValue]) -> tuple[AffineExpr, ...]:
        """Expressions of values that are known, over the loops' variables."""
        dimensions = [self.known[value] for value in values]
        return tuple(expr.replace_dims_and_symbols(dimensions, []) for expr in exprs)

    def fits(self, exprs: Sequence[AffineExpr], values: Sequence[SSAValue]) -> bool:
        """Whether no part of some expressions of values may leave 64 bits."""
        computed = [expr for expr in exprs if type(expr) is not AffineDimExpr]  # a value itself always fits
        dims = [self.values.of(value) for value in values] if computed else []
        return all(magnitude(expr, dims) <= INDEX_LIMIT for expr in computed)


def _check_region(region: Region, nest: Nest) -> Iterator[Diagnostic]:
    for op in region.ops if region.blocks else ():
        match op:
            case loop.ForOp():
                yield from _check_loop(op, nest)
            case loop.ApplyOp():
                nest = nest.knowing(op.values)
                if nest.fits(op.map.data.results, op.values):
                    nest = nest.defining(op.result, nest.expressions(op.map.data.results, op.values)[0])
                else:
                    yield _overflow(op)
            case arith.ConstantOp() if isinstance(op.result.type, IndexType) and isinstance(op.value, IntegerAttr):
                nest = nest.defining(op.result, AffineConstantExpr(op.value.value.data))
            case loop.AccessOp():
                nest = nest.knowing(op.indices)
                yield from _check_access(op, nest)
            case memref.LoadOp() | memref.StoreOp():
                nest = nest.knowing(op.indices)
                yield from _check_plain(op, op.memref, op.indices, nest)
            case loop.CallRowsOp():
                nest = nest.knowing((*op.indices, op.size))
                yield from _check_call(op, nest)
            case loop.BufferSliceOp():
                nest = nest.knowing([op.index])
                yield from _check_plain(op, op.source, [op.index], nest)
            case _:
                for inner_region in op.regions:
                    yield from _check_region(inner_region, nest)


def _check_loop(op: loop.ForOp, nest: Nest) -> Iterator[Diagnostic]:
    nest = nest.knowing(op.values)
    if not nest.fits((*op.lower.data.results, *op.upper.data.results), op.values):
        yield _overflow(op)
        return
    lower = nest.expressions(op.lower.data.results, op.values)
    upper = nest.expressions(op.upper.data.results, op.values)
    first, end = _largest_of(lower, nest.ranges), _smallest_of(upper, nest.ranges)
    if first[0] >= end[1]:
        return  # No iteration runs.
    if end[1] - 1 + op.step.value.data > INDEX_LIMIT:  # what the variable is after the last iteration
        yield _overflow(op)
        return
    yield from _check_region(op.body, within_loop(op, nest))


def within_loop(op: loop.ForOp, nest: Nest) -> Nest:
    """The nest of a loop's body; `nest` is that around the loop."""
    nest = nest.knowing(op.values)
    lower = nest.expressions(op.lower.data.results, op.values)
    upper = nest.expressions(op.upper.data.results, op.values)
    range_ = _values_of(op, _largest_of(lower, nest.ranges), _smallest_of(upper, nest.ranges))
    bounds = LoopRange(lower, upper, op.step.value.data)
    return nest.looping(op.variable, _name(op, len(nest.names)), bounds, range_)


def _values_of(op: loop.ForOp, first: Range, end: Range) -> Range:
    constant = op.constant_range
    return (constant[0], constant[-1]) if constant else (first[0], end[1] - 1)


def _largest_of(exprs: Sequence[AffineExpr], ranges: Sequence[Range]) -> Range:
    found = [interval(expr, ranges) or _EVERY_INDEX for expr in exprs]
    return max(low for low, _ in found), max(high for _, high in found)


def _smallest_of(exprs: Sequence[AffineExpr], ranges: Sequence[Range]) -> Range:
    found = [interval(expr, ranges) or _EVERY_INDEX for expr in exprs]
    return min(low for low, _ in found), min(high for _, high in found)


def _check_access(op: loop.AccessOp, nest: Nest) -> Iterator[Diagnostic]:
    exprs = (*op.map.results, op.ahead) if isinstance(op, loop.PrefetchOp) else op.map.results
    if not nest.fits(exprs, op.indices):
        yield _overflow(op)
        return
    index = nest.expressions(op.map.results, op.indices)
    access = VectorAccess(index, static_shape(op.buffer), tuple(op.lane_steps), op.touched_lanes)
    yield from _check(op, op.buffer, access, nest)


def _check_plain(op: Operation, buffer: SSAValue, indices: Sequence[SSAValue], nest: Nest) -> Iterator[Diagnostic]:
    """An access to an element, or to an entry, at plain index values."""
    index = tuple(nest.known[value] for value in indices)
    yield from _check(op, buffer, VectorAccess(index, static_shape(buffer)[: len(index)], (0,) * len(index), 1), nest)


def _check_call(op: loop.CallRowsOp, nest: Nest) -> Iterator[Diagnostic]:
    """The last elements of rows."""
    row, last = tuple(nest.known[value] for value in op.indices), nest.known[op.size] + -1
    steps = (0,) * (len(row) + 1)
    for buffer in op.read:
        yield from _check(op, buffer, VectorAccess((*row, last), static_shape(buffer), steps, 1), nest)
    for buffer in op.outputs:
        count = op.written_of(buffer)
        end = last if count is None else AffineConstantExpr(count - 1)
        yield from _check(op, buffer, VectorAccess((*row, end), static_shape(buffer), steps, 1), nest)


def _check(op: Operation, buffer: SSAValue, access: VectorAccess, nest: Nest) -> Iterator[Diagnostic]:
    shape = "x".join(map(str, access.shape)) or "1"
    places = [(access, f"its buffer of {shape} elements")]
    for elements in nest.elements.get(buffer, ()):
        places.append((_valid_access(access, buffer, elements), "the elements that its buffer has in the call"))
    if buffer in nest.extents:
        found = zip(access.index, access.shape, nest.extents[buffer], strict=False)
        index = tuple(i + (size + extent * -1) for i, size, extent in found)
        places.append((replace(access, index=index), "the rows that its buffer has in the call"))
    for place, what in places:
        try:
            iteration = _escape(place, nest)
        except Undecided:
            message = f"verify-bounds: that '{op.name}' stays inside {what} is too hard to prove"
            yield Diagnostic("MSC0404", message, source_location(op))
            return
        if iteration is not None:
            named = ", ".join(f"{name} = {value}" for name, value in zip(_numbered(nest.names), iteration, strict=True))
            message = f"verify-bounds: '{op.name}' leaves {what} at {named or 'its only iteration'}"
            yield Diagnostic("MSC0404", message, source_location(op))
            return


def _numbered(names: Sequence[str]) -> list[str]:
    """The names, outermost first; those that occur several times with their number from the outermost."""
    return [f"{name} ({names[: k + 1].count(name)})" if names.count(name) > 1 else name for k, name in enumerate(names)]


def _escape(access: VectorAccess, nest: Nest) -> tuple[int, ...] | None:
    """An iteration in which an access leaves its array; None if it never does."""
    return None if _is_inside(access, nest.ranges) else escaping_iteration(nest.loops, access)


def _valid_access(access: VectorAccess, buffer: SSAValue, elements: AffineExpr) -> VectorAccess:
    """An access as one to the last of as many elements as its buffer has at most, of which a call has some."""
    shape = static_shape(buffer)
    strides = [prod(shape[axis + 1 :]) for axis in range(len(access.index))]
    capacity = prod(shape)
    index: AffineExpr = AffineConstantExpr(capacity + prod(shape[len(access.index) :]) - 1) + elements * -1
    for expr, stride in zip(access.index, strides, strict=True):
        index = index + expr * stride
    distance = sum(step * stride for step, stride in zip(access.steps, strides, strict=True))
    return VectorAccess((index,), (capacity,), (distance,), access.lanes)


def _is_inside(access: VectorAccess, ranges: Sequence[Range]) -> bool:
    """Whether the ranges of the variables suffice to prove the access."""
    for expr, size, step in zip(access.index, access.shape, access.steps, strict=True):
        found, distance = interval(expr, ranges), step * (access.lanes - 1)
        if found is None or found[0] + min(0, distance) < 0 or found[1] + max(0, distance) >= size:
            return False
    return True


def _overflow(op: Operation) -> Diagnostic:
    message = f"verify-bounds: an index of '{op.name}' may not fit 64 bits"
    return Diagnostic("MSC0404", message, source_location(op))


def _name(op: loop.ForOp, position: int) -> str:
    return op.label.data if op.label is not None else op.variable.name_hint or f"loop {position}"
