"""Pass `sink-views`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.constancy import Constancy
from msc.analysis.properties import BASIC_OPS, SHAPES_KNOWN
from msc.dialects.ms.attributes import MS_ORIGIN
from msc.dialects.ms.base import MsOp, ViewOp
from msc.dialects.ms.elementwise import ElementwiseOp, SelectOp
from msc.dialects.ms.shapes import Shape, known, shape_of
from msc.dialects.ms.views import ReshapeOp
from msc.ir.contracts import Contract
from msc.ir.typed import tensor_type


@dataclass(frozen=True)
class SinkViews(ModulePass):
    """Move views behind elementwise operations, so that these meet the operation whose result the view shows.

    Takes: a graph of basic operations and `ms.reshape` of known sizes. Gives: the same graph in which an elementwise
    operation on a view of a computed value works on that value, and the view shows its result; its other operands are
    viewed in that shape too, elementwise work on arguments that nothing else uses with what it reads. It is done where
    all users of the view are elementwise, or return it, and the operands allow it.
    Keeps: results bit by bit, locations. Run it after `expand-composites` and before `cluster-kernels`.
    Example: `ms.relu (ms.reshape (ms.matmul ...))` becomes `ms.reshape (ms.relu (ms.matmul ...))`.
    """

    name = "sink-views"
    contract = Contract(requires=(SHAPES_KNOWN, BASIC_OPS))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        constancy = Constancy()  # of values that this pass shows in other shapes, as constant as before
        for function in op.ops:
            if isinstance(function, FuncOp):
                for inner in list(function.walk()):
                    if isinstance(inner, ElementwiseOp | SelectOp):
                        _sink(inner, constancy)


def _sink(op: ElementwiseOp | SelectOp, constancy: Constancy) -> None:
    old = op.result_shape()
    whole = (operand for index, operand in enumerate(op.operands) if op.shape(index) == old)
    source = next(filter(None, (_source(operand, constancy) for operand in whole)), None)
    if source is None or not known(old):
        return
    new = shape_of(tensor_type(source))
    if old == new or not all(_fits(op.shape(i), old, new) for i in range(len(op.operands))):
        return
    block = op.parent_block()
    assert block is not None
    _reshape_operation(op, old, new, block)
    _show(op, old, block)


def _reshape_operation(op: ElementwiseOp | SelectOp, old: Shape, new: Shape, block: Block) -> None:
    """Let an operation work in a new shape; its users see that."""
    for index, operand in enumerate(op.operands):
        if op.shape(index) == old:
            op.operands[index] = _viewed(operand, new, op, block)
    op.set_result_types(op.infer())


def _source(operand: SSAValue, constancy: Constancy) -> SSAValue | None:
    """What a view shows, if it is computed and the view is used by elementwise operations and as a result only."""
    if not isinstance(operand, OpResult) or not isinstance(operand.op, ViewOp):
        return None
    source = operand.op.operands[0]
    users = [use.operation for use in operand.uses]
    if not isinstance(source, OpResult) or constancy.of(source):
        return None
    return source if all(isinstance(user, ElementwiseOp | SelectOp | ReturnOp) for user in users) else None


def _fits(operand: Shape, old: Shape, new: Shape) -> bool:
    """Whether an operand works in the new shape: all of it, one element, or along last axes that both shapes have."""
    if operand == old or (all(n == 1 for n in operand) and len(operand) <= len(new)):
        return True
    rank = len(operand)
    return rank <= len(new) and old[-rank:] == new[-rank:] and (rank < len(old) or len(old) == len(new))


def _viewed(operand: SSAValue, shape: Shape, before: Operation, block: Block) -> SSAValue:
    """An operand in another shape; what a view of that shape shows, if it is one."""
    inner = operand.op.operands[0] if isinstance(operand, OpResult) and isinstance(operand.op, ViewOp) else operand
    if shape_of(tensor_type(inner)) == shape:
        return inner
    if (made := _on_arguments(inner, shape)) is not None:
        _reshape_operation(made, made.result_shape(), shape, block)
        return made.results[0]
    view = _reshape(inner, shape, before)
    block.insert_op_before(view, before)
    return view.result


def _on_arguments(value: SSAValue, shape: Shape) -> ElementwiseOp | SelectOp | None:
    """The operation that computes a value for one user from arguments alone, if it works in a shape too."""
    op = value.owner
    if not isinstance(op, ElementwiseOp | SelectOp) or not value.has_one_use():
        return None
    old = op.result_shape()
    read = [(v, op.shape(i)) for i, v in enumerate(op.operands)]
    free = all(n != old or isinstance(v, BlockArgument) or _on_arguments(v, shape) is not None for v, n in read)
    return op if free and all(_fits(n, old, shape) for _, n in read) else None


def _reshape(value: SSAValue, shape: Shape, origin: Operation) -> ReshapeOp:
    view = ReshapeOp(value, shape=list(shape))
    view.location = origin.location
    view.result.name_hint = value.name_hint
    return view


def _show(op: MsOp, shape: Shape, block: Block) -> None:
    """Let the users of an operation see its result in a shape."""
    result = op.results[0]
    view = _reshape(result, shape, op)
    view.attributes |= {MS_ORIGIN: op.attributes[MS_ORIGIN]} if MS_ORIGIN in op.attributes else {}
    block.insert_op_after(view, op)
    result.replace_uses_with_if(view.result, lambda use: use.operation is not view)
