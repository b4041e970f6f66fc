"""Pass `erase-barriers`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from msc.analysis.properties import KERNELS
from msc.dialects.ms.barrier import BarrierOp
from msc.ir.contracts import Contract


@dataclass(frozen=True)
class EraseBarriers(ModulePass):
    """Put the operand in the place of each barrier: from here on the order of the kernels alone says what runs when.

    Takes: kernels, in an order that barriers ask for. Gives: the same kernels in the same order, without barriers. No
    later pass merges kernels that compute the same, and `order-kernels` leaves an order only for one with fewer live
    bytes. Keeps: results bit by bit; nothing is copied.
    """

    name = "erase-barriers"
    contract = Contract(
        requires=(KERNELS,),
        runs_after={"cluster-kernels": "one kernel would contain operations on both sides of a barrier"},
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for barrier in [inner for inner in op.walk() if isinstance(inner, BarrierOp)]:
            Rewriter.replace_op(barrier, [], [barrier.x])
