"""Pass `verify-bounds`: prove that every affine access of the kernels' loops lies inside its buffer. Changes nothing.

The iterations that reach a load or store are a set of integer points; the access is right if at no point an index is
below zero or past its dimension, for any lane. Intervals settle most accesses, isl decides the rest exactly.
A bound that a kernel reads from memory (the blocks that attention sees) is any number of its range. Accesses
at other indices from memory (gather) are not affine: what clamps those is part of the kernel.
Raises MSC0404 for every access that leaves its buffer, with an iteration in which it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.passes import ModulePass

from msc.dialects import loop
from msc.dialects.open_sizes import argument_sizes
from msc.interp.intervals import Interval, interval
from msc.ir.locations import source_location
from msc.ir.typed import static_shape
from msc.lowering.index_ranges import index_range
from msc.poly.access_bounds import Access, LoopRange, escaping_iteration
from msc.support.diagnostics import Diagnostic, MscError


@dataclass(frozen=True)
class VerifyBoundsPass(ModulePass):
    """Prove that no access of a kernel's loops leaves its buffer."""

    name = "verify-bounds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check every function; all that is wrong is reported at once."""
        found = tuple(bounds_diagnostics(op))
        if found:
            raise MscError(*found)


def bounds_diagnostics(module: ModuleOp) -> Iterator[Diagnostic]:
    """An error for every affine access that leaves its buffer in some iteration."""
    for function in module.body.block.ops:
        if isinstance(function, func.FuncOp):
            yield from _check_region(function.body, _Nest.of(function))


@dataclass(frozen=True)
class _Nest:
    """The loops around an operation, outermost first, their variables' intervals, and index values as expressions.

    The sizes of a call are the outermost loops: what is proved is proved for all of them.
    """

    names: tuple[str, ...] = ()
    ranges: tuple[LoopRange, ...] = ()
    intervals: tuple[Interval, ...] = ()
    known: Mapping[SSAValue, AffineExpr] = field(default_factory=dict[SSAValue, AffineExpr])

    @classmethod
    def of(cls, function: func.FuncOp) -> _Nest:
        """The nest of a function's own operations."""
        sizes = argument_sizes(function.args, function.arg_attrs)
        return cls(
            tuple(size.name for size in sizes.values()),
            tuple(LoopRange((_constant(s.low),), (_constant(s.high + 1),)) for s in sizes.values()),
            tuple((size.low, size.high) for size in sizes.values()),
            {argument: AffineDimExpr(k) for k, argument in enumerate(sizes)},
        )

    def expressions(self, map_: Sequence[AffineExpr], values: Sequence[SSAValue]) -> tuple[AffineExpr, ...] | None:
        """The expressions over the loops' variables; None if one of `values` is not affine in them."""
        if any(value not in self.known for value in values):
            return None
        dimensions = [self.known[value] for value in values]
        return tuple(expr.replace_dims_and_symbols(dimensions, []) for expr in map_)

    def inside(self, op: loop.ForOp) -> _Nest | None:
        """The nest of the operations in a loop's body; None if the bounds are not affine."""
        lower = self.expressions(op.lower.data.results, op.values)
        upper = self.expressions(op.upper.data.results, op.values)
        if lower is None or upper is None:
            return None
        variable = AffineDimExpr(len(self.names))
        return _Nest(
            (*self.names, _name(op, len(self.names))),
            (*self.ranges, LoopRange(lower, upper, op.step.value.data)),
            (*self.intervals, self._interval(op, lower, upper)),
            {**self.known, op.variable: variable},
        )

    def _interval(self, op: loop.ForOp, lower: Sequence[AffineExpr], upper: Sequence[AffineExpr]) -> Interval:
        constant = op.constant_range
        if constant is not None:
            return (constant[0], constant[-1]) if constant else None
        starts = [interval(expr, self.intervals) for expr in lower]
        ends = [interval(expr, self.intervals) for expr in upper]
        if None in starts or None in ends:
            return None
        return max(i[0] for i in starts if i), min(i[1] for i in ends if i) - 1

    def within(self, value: SSAValue, low: int, high: int) -> _Nest:
        """The nest in which `value` is any number of a range: as if a loop ran over them."""
        return _Nest(
            (*self.names, value.name_hint or f"index {len(self.names)}"),
            (*self.ranges, LoopRange((_constant(low),), (_constant(high + 1),))),
            (*self.intervals, (low, high)),
            {**self.known, value: AffineDimExpr(len(self.names))},
        )

    def knowing_bounds(self, op: loop.ForOp) -> _Nest:
        """The nest in which a loop's bounds are numbers of their ranges, if they are known no better."""
        nest = self
        for value in op.values:
            if value not in nest.known and (found := index_range(value)):
                nest = nest.within(value, *found)
        return nest

    def knowing(self, value: SSAValue, expr: AffineExpr) -> _Nest:
        """The nest in which `value` stands for an expression."""
        return _Nest(self.names, self.ranges, self.intervals, {**self.known, value: expr})


def _constant(value: int) -> AffineExpr:
    return AffineConstantExpr(value)


def _check_region(region: Region, nest: _Nest) -> Iterator[Diagnostic]:
    for op in region.ops if region.blocks else ():
        match op:
            case loop.ForOp():
                inner = nest.knowing_bounds(op).inside(op)
                yield from () if inner is None else _check_region(op.body, inner)
            case loop.ApplyOp():
                found = nest.expressions(op.map.data.results, op.values)
                nest = nest if found is None else nest.knowing(op.result, found[0])
            case arith.ConstantOp() if isinstance(op.result.type, IndexType) and isinstance(op.value, IntegerAttr):
                nest = nest.knowing(op.result, AffineConstantExpr(op.value.value.data))
            case arith.MinSIOp() if isinstance(op.result.type, IndexType) and (found := index_range(op.result)):
                nest = nest.within(op.result, *found)
            case loop.AccessOp() | memref.LoadOp() | memref.StoreOp():
                yield from _check_access(op, nest)
            case _:
                for inner_region in op.regions:
                    yield from _check_region(inner_region, nest)


def _check_access(op: Operation, nest: _Nest) -> Iterator[Diagnostic]:
    access = _access(op, nest)
    if access is None or _is_inside(access, nest.intervals):
        return
    iteration = escaping_iteration(nest.ranges, access)
    if iteration is None:
        return
    place = (
        ", ".join(f"{name} = {value}" for name, value in zip(nest.names, iteration, strict=True))
        or "its only iteration"
    )
    shape = "x".join(map(str, access.shape))
    message = f"verify-bounds: '{op.name}' leaves its buffer of {shape} elements at {place}"
    yield Diagnostic("MSC0404", message, source_location(op))


def _access(op: Operation, nest: _Nest) -> Access | None:
    """The access over the loops' variables; None if it is not affine."""
    match op:
        case loop.AccessOp():
            index = nest.expressions(op.map.results, op.indices)
            buffer, steps, lanes = op.buffer, op.lane_steps, op.touched_lanes
        case memref.LoadOp() | memref.StoreOp():
            index = nest.expressions([AffineDimExpr(i) for i in range(len(op.indices))], op.indices)
            buffer, steps, lanes = op.memref, (0,) * len(op.indices), 1
        case _:
            return None
    return None if index is None else Access(index, static_shape(buffer), tuple(steps), lanes)


def _is_inside(access: Access, intervals: Sequence[Interval]) -> bool:
    """Whether the intervals of the variables suffice to prove the access."""
    for expr, size, step in zip(access.index, access.shape, access.steps, strict=True):
        found, distance = interval(expr, intervals), step * (access.lanes - 1)
        if found is None or found[0] + min(0, distance) < 0 or found[1] + max(0, distance) >= size:
            return False
    return True


def _name(op: loop.ForOp, position: int) -> str:
    return op.label.data if op.label is not None else op.variable.name_hint or f"loop {position}"
