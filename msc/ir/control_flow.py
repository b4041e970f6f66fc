"""The rules of `scf.if`, `scf.for` and `scf.while` that xDSL's own verifier lacks; MLIR's are the measure.

Beyond those: a loop that is known never to end is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from msc.ir.errors import DtypeConflict, InvalidAttribute, InvalidStructure


def control_flow_error(op: Operation) -> VerifyException | None:
    """What is wrong with an operation of scf; None for all other operations."""
    match op:
        case scf.IfOp():
            return _if_error(op)
        case scf.ForOp():
            return _for_error(op)
        case scf.WhileOp():
            return _while_error(op)
        case _:
            return None


def _if_error(op: scf.IfOp) -> VerifyException | None:
    if op.results and not op.false_region.blocks:
        message = "scf.if gives results, but has no else: where the condition is false there is nothing to give"
        return InvalidStructure(message, help="add `else { ... scf.yield ... }`")
    for region, name in ((op.true_region, "the first branch"), (op.false_region, "the else branch")):
        if region.blocks:
            error = _block_error(region, (), name) or _end_error(region.block, scf.YieldOp, op.result_types, name)
            if error is not None:
                return error
    return None


def _for_error(op: scf.ForOp) -> VerifyException | None:
    step = integer_constant(op.step)
    if step is not None and step <= 0:
        return InvalidAttribute(f"scf.for takes steps of {step}, and would never end; a step is 1 or more")
    carried = [value.type for value in op.iter_args]
    if carried != list(op.result_types):
        return DtypeConflict(f"scf.for carries {_listed(carried)}, but its results are {_listed(op.result_types)}")
    arguments = [op.lb.type, *carried]
    return _block_error(op.body, arguments, "the body") or _end_error(op.body.block, scf.YieldOp, carried, "the body")


def _while_error(op: scf.WhileOp) -> VerifyException | None:
    carried, results = [value.type for value in op.arguments], op.result_types
    return (
        _block_error(op.before_region, carried, "the condition")
        or _end_error(op.before_region.block, scf.ConditionOp, results, "the condition")
        or _block_error(op.after_region, results, "the body")
        or _end_error(op.after_region.block, scf.YieldOp, carried, "the body")
        or _endless_error(op.before_region.block)
    )


def _block_error(region: Region, types: Sequence[Attribute], place: str) -> VerifyException | None:
    """One block, with arguments of these types."""
    if len(region.blocks) != 1:
        return InvalidStructure(f"{place} has {len(region.blocks)} blocks instead of one")
    found = [argument.type for argument in region.block.args]
    if found != list(types):
        return DtypeConflict(f"{place} has arguments of types {_listed(found)} instead of {_listed(types)}")
    return None


def _end_error(
    block: Block, terminator: type[scf.YieldOp | scf.ConditionOp], types: Sequence[Attribute], place: str
) -> VerifyException | None:
    """The terminator that belongs there, with values of these types."""
    last = block.last_op
    if not isinstance(last, terminator):
        found = f"'{last.name}'" if last is not None else "nothing"
        return InvalidStructure(f"{place} ends with {found} instead of '{terminator.name}'")
    values = last.args if isinstance(last, scf.ConditionOp) else last.operands
    if [value.type for value in values] != list(types):
        given = _listed([value.type for value in values])
        return DtypeConflict(f"{place} ends with '{last.name}' of {given} instead of {_listed(types)}")
    return None


def _endless_error(block: Block) -> VerifyException | None:
    condition = block.last_op
    if isinstance(condition, scf.ConditionOp) and integer_constant(condition.condition):
        return InvalidAttribute("scf.while has a condition that is always true, and would never end")
    return None


def integer_constant(value: SSAValue) -> int | None:
    """The number that an `arith.constant` gives; None for other values."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def _listed(types: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"
