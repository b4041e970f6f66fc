"""Pass `canonicalize-ms`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.traits import Pure

from msc.analysis.properties import CONSTANTS_ARE_PARAMETERS
from msc.dialects.arrays import dense_array, tensor_dtype
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.constants import constant_of
from msc.dialects.ms.elementwise import ElementwiseOp, SelectOp
from msc.dialects.ms.movement import BroadcastToOp
from msc.dialects.ms.shapes import broadcast_shapes, known, shape_of
from msc.dialects.ms.structure import INLINE_CONSTANT_BYTES, ConstantOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.emitter import Emitter
from msc.graph.simplify.simplifications import simplifications_of
from msc.interp import evaluate_op
from msc.ir.contracts import Contract
from msc.ir.rewriting import apply_patterns
from msc.ir.typed import is_tensor
from msc.support.diagnostics import MscError


@dataclass(frozen=True)
class CanonicalizeMs(ModulePass):
    """Simplify the graph by rules that keep every result bit for bit, and compute operations on constants.

    Takes: a graph of `ms` operations. Gives: the same graph without neutral elements (x * 1, x - 0), operations that
    undo or repeat each other, movements that move nothing, views of views, broadcasts that an elementwise operation
    does itself; operations on constants whose results have at most 4 KB are constants; what nothing uses is erased.
    Keeps: IEEE semantics; the reason why a rule is exact stands beside it. Locations.
    Example: `ms.mul %x, 1.0` becomes `%x`; `ms.div %x, 8.0` becomes `ms.mul %x, 0.125`.
    """

    name = "canonicalize-ms"
    contract = Contract(
        breaks=(CONSTANTS_ARE_PARAMETERS,),
        runs_after={
            "infer-shapes": "rules read sizes",
            "fold-batch-norm": "folding leaves operations on parameters",
            "expand-composites": "expansions leave neutral elements and views of views",
        },
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, [_Fold(), _ImplicitBroadcast(), _Simplify()], owner=self.name)


class _Simplify(RewritePattern):
    """The rules by operation class; one applies only if it gives exactly the result's type."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if not isinstance(op, MsOp) or len(op.results) != 1:
            return
        for rule in simplifications_of(type(op)):
            emit = Emitter(op)
            value = rule(op, emit)
            if value is not None and value.type == op.results[0].type:
                _replace(op, emit.ops, value, rewriter)
                return


def _replace(op: MsOp, new: list[Operation], value: SSAValue, rewriter: PatternRewriter) -> None:
    for made in new:
        made.attributes |= {name: a for name, a in op.attributes.items() if not isinstance(made, ConstantOp)}
    rewriter.replace(op, new, [value])


class _ImplicitBroadcast(RewritePattern):
    """An elementwise operation reads the operand of a `ms.broadcast_to` itself if its result keeps its shape."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if not isinstance(op, ElementwiseOp | SelectOp):
            return
        for index, operand in enumerate(op.operands):
            source = operand.op.x if isinstance(operand, OpResult) and isinstance(operand.op, BroadcastToOp) else None
            if source is not None and _keeps_shape(op, index, source):
                op.operands[index] = source
                rewriter.notify_op_modified(op)


def _keeps_shape(op: MsOp, index: int, source: SSAValue) -> bool:
    if not is_tensor(source.type):
        return False
    shapes = [op.shape(i) for i in range(len(op.operands))]
    shapes[index] = shape_of(source.type)
    return all(map(known, shapes)) and broadcast_shapes(op.name, *shapes) == op.result_shape()


class _Fold(RewritePattern):
    """An operation on constants, computed by its meaning."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if not isinstance(op, MsOp) or not op.operands or not op.has_trait(Pure) or not _is_small(op):
            return
        if isinstance(op, BroadcastToOp) and has_open_sizes(op):
            return  # what is small at some sizes is not at others, and says which of it is valid
        owners = [operand.op if isinstance(operand, OpResult) else None for operand in op.operands]
        constants = [dense_array(owner.value) for owner in owners if isinstance(owner, ConstantOp)]
        if len(constants) < len(op.operands):
            return
        try:
            values = evaluate_op(op, *constants)
        except MscError:
            return  # An index outside its dimension: reported when it runs, if it ever does.
        new = [constant_of(value) for value in values]
        rewriter.replace(op, new, [constant.result for constant in new])


def _is_small(op: MsOp) -> bool:
    """Whether the results are small enough for the text."""
    shapes = [op.result_shape(i) for i in range(len(op.results))]
    if not all(map(known, shapes)):
        return False
    types = [op.result_tensor(i) for i in range(len(op.results))]
    return all(t.element_count() * tensor_dtype(t).itemsize <= INLINE_CONSTANT_BYTES for t in types)
