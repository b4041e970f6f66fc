"""Which values C has no use for: C compilers warn of unused names, so they are not emitted, nor passed to a part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from xdsl.dialects import arith, func, memref, scf
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from msc.codegen.c.arithmetic import decided_comparison
from msc.codegen.c.fixed_point import fused
from msc.dialects.loop import AccessOp, ApplyOp, CallRowsOp, ForOp, PrefetchOp, StoreOp
from msc.ir.typed import static_shape

_Index = TypeVar("_Index")

_EFFECTS = {
    StoreOp,
    PrefetchOp,
    CallRowsOp,
    memref.StoreOp,
    memref.CopyOp,
    ForOp,
    func.ReturnOp,
    func.CallOp,
    scf.IfOp,
    scf.ForOp,
    scf.WhileOp,
    scf.YieldOp,
    scf.ConditionOp,
}
"""Types that are looked up: operations are abstract base classes, and slow to ask."""


def dead_values(function: Operation) -> set[SSAValue]:
    """Results used by nothing, or only by operations whose results are dead themselves."""
    dead: set[SSAValue] = set()
    for op in reversed(list(function.walk())):
        if type(op) not in _EFFECTS:
            dead.update(r for r in op.results if all(_is_dead_use(use.operation, dead) for use in r.uses))
    return dead


def _is_dead_use(user: Operation, dead: set[SSAValue]) -> bool:
    if type(user) in _EFFECTS or type(user) is arith.ConstantOp:
        return False
    if decided_comparison(user) is not None:
        return True
    return bool(user.results) and all(result in dead for result in user.results)


def named_in_part(loop: ForOp, dead: set[SSAValue]) -> set[SSAValue]:
    """The values that the C of some iterations of a loop names: what says where it ends stands in front of it."""
    return named_values(loop.body.block.ops, dead, _in(loop.lower.data.results, loop.values))


def named_values(ops: Iterable[Operation], dead: set[SSAValue], beside: Iterable[SSAValue] = ()) -> set[SSAValue]:
    """The values that the C of operations reads, with those inside: also what they read by an index written inline.

    `beside` are read too.
    """
    found: set[SSAValue] = set()
    left = [*beside, *(value for op in ops for value in _read_below(op, dead))]
    while left:
        value = left.pop()
        if value not in found:
            found.add(value)
            left += _read(value.owner) if isinstance(value.owner, ApplyOp) else ()
    return found


def _read_below(op: Operation, dead: set[SSAValue]) -> Iterator[SSAValue]:
    if isinstance(op, ForOp) and op.constant_range is not None and len(op.constant_range) == 0:
        return
    if not op.results or not all(result in dead for result in op.results):
        yield from _read(op)
    for region in op.regions:
        for inner in region.walk():
            if inner.parent_region() is region:
                yield from _read_below(inner, dead)


def _read(op: Operation) -> Iterator[SSAValue]:
    """The operands that the C of an operation names, or the indices in it: of an affine expression, those in it."""
    match op:
        case ForOp():
            yield from _in((*op.lower.data.results, *op.upper.data.results), op.values)
        case ApplyOp():
            yield from _in(op.map.data.results, op.values)
        case AccessOp():
            yield from op.operands[: len(op.operands) - len(op.indices)]
            exprs = _of_array(op.buffer, op.map.results)
            yield from _in((*exprs, op.ahead) if isinstance(op, PrefetchOp) else exprs, op.indices)
        case memref.LoadOp() | memref.StoreOp():
            yield from op.operands[: len(op.operands) - len(op.indices)]
            yield from _of_array(op.memref, op.indices)
        case arith.TruncIOp() if (function := fused(op)) is not None:
            yield from (operand for operand in function.operands if not isinstance(operand, int))
        case _ if decided_comparison(op) is None:
            yield from op.operands
        case _:
            return


def _in(exprs: Iterable[AffineExpr], values: Sequence[SSAValue]) -> Iterator[SSAValue]:
    return (values[dim] for expr in exprs for dim in sorted(expr.used_dims()))


def _of_array(buffer: SSAValue, indices: Sequence[_Index]) -> Sequence[_Index]:
    """Indices without those of dimensions that a local array in C does not have."""
    if not isinstance(buffer.owner, memref.AllocaOp):
        return indices
    return [index for index, size in zip(indices, static_shape(buffer), strict=True) if size != 1]
