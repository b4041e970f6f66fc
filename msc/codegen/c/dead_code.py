"""Values that nothing observable depends on: C compilers warn of unused names, so they are not emitted."""

from __future__ import annotations

from xdsl.dialects import arith, func, memref, scf
from xdsl.ir import Operation, SSAValue

from msc.dialects.loop import CallRowsOp, ForOp, PrefetchOp, StoreOp

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
    return bool(user.results) and all(result in dead for result in user.results)
