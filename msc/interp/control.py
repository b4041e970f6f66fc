"""Operations with regions, and calls: how control moves at the graph and the kernel stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

from xdsl.dialects import func, scf
from xdsl.ir import Block, Operation, SSAValue

from msc.dialects.gk import CallKernelOp
from msc.ir.typed import static_shape

Scope: TypeAlias = Mapping[SSAValue, Any]


class BlockRunner(Protocol):
    """What runs the blocks that control comes to."""

    def function(self, name: str) -> func.FuncOp:
        """The function of a name."""
        ...

    def run_block(self, block: Block, arguments: Sequence[Any], scope: Scope) -> tuple[Any, ...]:
        """The operands of the terminator of a block; `scope` holds what the block may use from outside."""
        ...


Handler: TypeAlias = Callable[[BlockRunner, Operation, Sequence[Any], Scope], tuple[Any, ...]]


def _if(evaluator: BlockRunner, op: Operation, operands: Sequence[Any], scope: Scope) -> tuple[Any, ...]:
    branch = op.regions[0 if bool(operands[0]) else 1]
    return evaluator.run_block(branch.block, (), scope) if branch.blocks else ()


def _for(evaluator: BlockRunner, op: Operation, operands: Sequence[Any], scope: Scope) -> tuple[Any, ...]:
    lower, upper, step = map(int, operands[:3])
    carried = tuple(operands[3:])
    for i in range(lower, upper, step):
        carried = evaluator.run_block(op.regions[0].block, (i, *carried), scope)
    return carried


def _while(evaluator: BlockRunner, op: Operation, operands: Sequence[Any], scope: Scope) -> tuple[Any, ...]:
    loop = cast(scf.WhileOp, op)
    carried = tuple(operands)
    while True:
        condition, *values = evaluator.run_block(loop.before_region.block, carried, scope)
        if not bool(condition):
            return tuple(values)
        carried = evaluator.run_block(loop.after_region.block, values, scope)


def _call(evaluator: BlockRunner, op: Operation, operands: Sequence[Any], scope: Scope) -> tuple[Any, ...]:
    callee = evaluator.function(cast(func.CallOp, op).callee.string_value())
    return evaluator.run_block(callee.body.block, operands, {})


def _kernel(evaluator: BlockRunner, op: Operation, operands: Sequence[Any], scope: Scope) -> tuple[Any, ...]:
    return evaluator.run_block(op.regions[0].block, operands, {})


def _materialize(evaluator: BlockRunner, op: Operation, operands: Sequence[Any], scope: Scope) -> tuple[Any, ...]:
    return tuple(operands)


def _library_call(evaluator: BlockRunner, op: Operation, operands: Sequence[Any], scope: Scope) -> tuple[Any, ...]:
    lengths = [static_shape(result)[-1] for result in op.results]
    return cast(CallKernelOp, op).call.meaning(lengths, *operands)


CONTROL: Mapping[str, Handler] = {
    "scf.if": _if,
    "scf.for": _for,
    "scf.while": _while,
    "func.call": _call,
    "gk.kernel": _kernel,
    "gk.materialize": _materialize,
    "gk.call": _library_call,
}
