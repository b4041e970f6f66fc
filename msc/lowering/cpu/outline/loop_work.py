"""What a loop of the entry function computes, and whether threads share it.

The schedules of kernels say which of their loops threads share; loops around kernels have no schedule.
"""

from __future__ import annotations

from math import ceil, prod

from xdsl.dialects.builtin import FixedBitwidthType, VectorType
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from msc.analysis.target import Target
from msc.dialects.loop import ForOp, LoopKind, LoopKindAttr


def share(loop: ForOp, target: Target) -> None:
    """Have threads share the iterations of a loop if that saves more than it costs; then no loop inside is shared."""
    trips = loop.most_iterations or 0
    alone = ceil(trips / target.team) / trips if trips else 1
    saved = instructions(loop, target) / target.machine.ports.arithmetic * (1 - alone)
    if alone == 1 or saved < target.machine.synchronisation.team:
        return
    loop.kind = LoopKindAttr(LoopKind.PARALLEL)
    run_alone(loop)


def run_alone(loop: ForOp) -> None:
    """Loops in one that threads share run on the thread that has the iteration."""
    for op in loop.body.walk():
        if isinstance(op, ForOp) and op.kind.data is LoopKind.PARALLEL:
            op.kind, op.least = LoopKindAttr(LoopKind.SEQUENTIAL), None


def instructions(op: Operation, target: Target) -> int:
    """Operations that a loop executes, one for each register of a vector; a loop of unknown length runs twice."""
    if not isinstance(op, ForOp):
        return max((_registers(result.type, target) for result in op.results), default=0)
    trips = 2 if op.most_iterations is None else op.most_iterations
    return trips * sum(instructions(inner, target) for inner in op.body.block.ops)


def _registers(type_: object, target: Target) -> int:
    if not isa(type_, VectorType[Attribute]):
        return 1
    element = type_.get_element_type()
    bits = element.bitwidth if isinstance(element, FixedBitwidthType) else 64
    return ceil(prod(type_.get_shape()) * bits / target.machine.vectors.bits)
