"""Pass `infer-shapes`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from msc.analysis.properties import SHAPES_KNOWN
from msc.dialects.element_types import dtype_name
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.shapes import UNKNOWN, shape_of, tensor_type
from msc.ir.contracts import Contract
from msc.ir.errors import CodedVerifyException
from msc.ir.locations import source_location
from msc.ir.typed import is_tensor
from msc.support.diagnostics import Diagnostic, MscError


@dataclass(frozen=True)
class InferShapes(ModulePass):
    """Infer the result types of all operations again, from the arguments of each function to its signature.

    Takes: functions of `ms` operations whose argument types may have been refined (a dimension fixed). Gives: the same
    functions with result types as precise as the operations can tell; a size that was declared and cannot be inferred
    stays. The results of `scf.if` follow its branches, what loops carry what they start with, and the results of the
    function what it returns. Keeps: all else.
    Example: with `%x : tensor<4x3xf32>`, `ms.relu %x : tensor<?x3xf32>` becomes `tensor<4x3xf32>`.
    Raises MSC0201 and its like where the refined types do not fit together.
    """

    name = "infer-shapes"
    contract = Contract(
        ensures=(SHAPES_KNOWN,),
        runs_after={
            "inline-calls": "a function has the shapes that it is called with",
        },
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and function.body.blocks:
                _refine_block(function.body.block)
                _update_signature(function)


def _refine_block(block: Block) -> None:
    for op in block.ops:
        if isinstance(op, ForOp | WhileOp):
            _enter_loop(op)
        for region in op.regions:
            for inner in region.blocks:
                _refine_block(inner)
        if isinstance(op, MsOp):
            _refine(op)
        elif isinstance(op, IfOp):
            _follow_branches(op)
        elif isinstance(op, WhileOp):
            _leave_loop(op)


def _refine(op: MsOp) -> None:
    try:
        inferred = op.infer()
    except CodedVerifyException as conflict:
        raise MscError(Diagnostic(conflict.code, str(conflict), source_location(op), help=conflict.help)) from conflict
    types = [_more_precise(old, new) for old, new in zip(op.result_types, inferred, strict=True)]
    if types != list(op.result_types):
        op.set_result_types(types)


def _more_precise(old: Attribute, new: Attribute) -> Attribute:
    """The new type; where it leaves a size open, that of the old one."""
    if not is_tensor(old) or not is_tensor(new):
        return new
    before, after = shape_of(old), shape_of(new)
    if len(before) != len(after) or UNKNOWN not in after:
        return new
    shape = [a if a != UNKNOWN else b for a, b in zip(after, before, strict=True)]
    return tensor_type(dtype_name(new.element_type) or "", shape)


def _follow_branches(op: IfOp) -> None:
    """The results of a conditional have the types that both branches give."""
    branches = [region.block.last_op for region in op.regions if region.blocks]
    types = {tuple(last.operand_types) for last in branches if last is not None}
    if len(types) == 1:
        _retype(op.results, *types)


def _enter_loop(op: ForOp | WhileOp) -> None:
    """What a loop carries has the types that it starts with, in every iteration and after the last."""
    given = op.iter_args if isinstance(op, ForOp) else op.arguments
    carried = op.body.block.args[1:] if isinstance(op, ForOp) else op.before_region.block.args
    _retype(carried, [value.type for value in given])
    if isinstance(op, ForOp):
        _retype(op.results, [value.type for value in given])


def _leave_loop(op: WhileOp) -> None:
    """The results of a scf.while have the types that its condition passes on, as its second region has."""
    last = op.before_region.block.last_op
    if isinstance(last, ConditionOp):
        types = [value.type for value in last.args]
        _retype(op.results, types)
        _retype(op.after_region.block.args, types)
        _refine_block(op.after_region.block)


def _retype(values: Sequence[SSAValue], types: Sequence[Attribute]) -> None:
    for value, type_ in zip(values, types, strict=True):
        if value.type != type_:
            Rewriter.replace_value_with_new_type(value, type_)


def _update_signature(function: FuncOp) -> None:
    last = function.body.block.last_op
    outputs = last.operand_types if isinstance(last, ReturnOp) else function.function_type.outputs.data
    function.function_type = FunctionType.from_lists([a.type for a in function.args], list(outputs))
