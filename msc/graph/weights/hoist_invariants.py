"""Pass `hoist-invariants`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp, WhileOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free
from xdsl.transforms.loop_invariant_code_motion import can_be_hoisted

from msc.analysis.generated import is_generated
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.movement import BroadcastToOp, TileOp
from msc.ir.contracts import Contract


@dataclass(frozen=True)
class HoistInvariants(ModulePass):
    """Compute before a loop what is the same in all its iterations.

    Takes: functions of `ms` operations or kernels with `scf.for` and `scf.while`. Gives: the same functions in which an
    operation without effects that uses nothing of a loop stands in front of the loop, of the outermost one possible.
    What kernels make themselves stays (`msc.analysis.generated`), and what only repeats elements: that is read for less
    than stored elements are.
    Keeps: results bit by bit, locations. A loop that never runs has then computed something in vain.
    """

    name = "hoist-invariants"
    contract = Contract(
        runs_after={
            "block-attention": "the keys and values of a head are packed once for all its blocks",
            "block-attention-gradients": "the keys and values of a head are packed once for all its blocks",
            "pack-operands": "an operand that a loop does not change is packed before the loop",
        },
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in reversed([inner for inner in op.walk() if isinstance(inner, ForOp | WhileOp)]):
            _hoist(loop)


def _hoist(loop: ForOp | WhileOp) -> None:
    """Move operations in the order of the text, so that what they use has been moved before them."""
    around = loop.parent
    assert around is not None
    for region in loop.regions:
        for op in list(region.block.ops):
            if _may_move(op) and can_be_hoisted(op, region):
                op.detach()
                around.insert_op_before(op, loop)


def _may_move(op: Operation) -> bool:
    if not is_side_effect_free(op):
        return False
    return not isinstance(op, MsOp) or not (isinstance(op, BroadcastToOp | TileOp) or is_generated(op.results[0]))
