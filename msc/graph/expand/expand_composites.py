"""Pass `expand-composites`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from msc.analysis.properties import BASIC_OPS, CONSTANTS_ARE_PARAMETERS, SHAPES_KNOWN, WEIGHTS_HOISTED
from msc.dialects.ms.attributes import MS_ORIGIN
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.structure import ConstantOp
from msc.graph.emitter import CompositeEmitter
from msc.graph.expand.expanders import expander
from msc.ir.contracts import Contract
from msc.ir.rewriting import apply_patterns


@dataclass(frozen=True)
class ExpandComposites(ModulePass):
    """Rewrite every composite operation into basic ones.

    Takes: a graph of `ms` operations of known sizes. Gives: the same graph of operations that are basic (`is_basic`),
    structural, or `ms.reshape`. Keeps: locations; the new operations carry `ms.origin = "softmax"`, which
    `cluster-kernels` reads for labels and removes. Results differ from the composite's own meaning by rounding only;
    of f16 and bf16 the basic operations between are of f32, so that a result is rounded once.
    Example: `ms.relu6 %x` becomes `ms.minimum (ms.relu %x), 6.0`.
    Raises MSC0404 where an expansion needs a size that is not known.
    """

    name = "expand-composites"
    contract = Contract(
        requires=(SHAPES_KNOWN,),
        ensures=(BASIC_OPS,),
        breaks=(CONSTANTS_ARE_PARAMETERS, WEIGHTS_HOISTED),
        runs_after={
            "fold-batch-norm": "an expanded batch norm is not recognised",
            "block-attention": "an expanded softmax is not recognised",
            "block-attention-gradients": "an expanded softmax is not recognised",
            "scan-rows": "cumulated sums of blocks are not recognised",
            "argsort-by-keys": "an order by comparisons of all pairs is not recognised",
        },
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, [_Expand()], owner=self.name)


class _Expand(RewritePattern):
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if not isinstance(op, MsOp) or op.is_basic:
            return
        expand = expander.get(type(op))
        if expand is None:
            return
        emit = CompositeEmitter(op)
        value = expand(op, emit)
        new = emit.finished(value)
        _mark(op, new)
        rewriter.replace(op, new, [value])


def _mark(op: MsOp, made: Sequence[Operation]) -> None:
    origin = op.attributes.get(MS_ORIGIN, StringAttr(op.name.removeprefix("ms.")))
    for new in made:
        if not isinstance(new, ConstantOp):
            new.attributes[MS_ORIGIN] = origin
