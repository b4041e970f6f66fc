"""Pass `erase-needless-relus`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from msc.analysis.properties import BASIC_OPS
from msc.dialects import ms
from msc.ir.contracts import Contract
from msc.ir.rewriting import apply_patterns

NEVER_NEGATIVE = (ms.ExpOp, ms.AbsOp)
"""Results are at least 0, or NaN; `ms.relu` gives both as they are. (-0 does not occur among them.)"""


@dataclass(frozen=True)
class EraseNeedlessRelus(ModulePass):
    """Erase `ms.relu` of values that are never negative.

    Takes: a graph of basic operations. Gives: the same graph without these operations. Keeps: every result bit by bit.
    Example: `ms.relu (ms.exp %x)` becomes `ms.exp %x`.
    """

    name = "erase-needless-relus"
    contract = Contract(
        requires=(BASIC_OPS,),
        runs_after={"expand-composites": "expansions contain ms.exp and ms.abs"},
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, [_Erase()], owner=self.name)


class _Erase(RewritePattern):
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if isinstance(op, ms.ReluOp) and isinstance(op.x.owner, NEVER_NEGATIVE):
            rewriter.replace(op, [], [op.x])
