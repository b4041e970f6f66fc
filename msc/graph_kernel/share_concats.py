"""Pass `share-concats`."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.kernels import blocks_outside_kernels
from msc.analysis.properties import BASIC_OPS, UNCLUSTERED
from msc.dialects.ms.movement import ConcatOp
from msc.graph_kernel.chains import MOST
from msc.ir.contracts import Contract


@dataclass(frozen=True)
class ShareConcats(ModulePass):
    """Let a concatenation that begins with all inputs of an earlier one begin with the result of that.

    Takes: a graph of basic operations. Gives: the same graph, in which concatenations have fewer inputs. Each input
    takes a loop of its own, so if layers concatenate all tensors before them, code grows with the square of the layers.
    The earlier one has at least `fewest` inputs: with fewer, `compute-at-consumers` may merge it with its only reader.
    Keeps: results bit by bit, locations.
    Example: `ms.concat %a, %b, %c` after `%ab = ms.concat %a, %b` becomes `ms.concat %ab, %c`.
    """

    name = "share-concats"
    contract = Contract(
        requires=(BASIC_OPS, UNCLUSTERED), runs_after={"lift-sizes": "it replaces concatenations along open axes"}
    )
    fewest: int = field(default=MOST, metadata={"least": 1})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp):
                for block in blocks_outside_kernels(function):
                    self._share(block)

    def _share(self, block: Block) -> None:
        results: dict[tuple[int, tuple[SSAValue, ...]], SSAValue] = {}
        for op in block.ops:
            if isinstance(op, ConcatOp):
                axis, inputs = op.int_("axis") % len(op.result_shape()), tuple(op.operands)
                begins = range(len(inputs) - 1, self.fewest - 1, -1)
                earlier = next((n for n in begins if (axis, inputs[:n]) in results), None)
                if earlier is not None:
                    op.operands = (results[axis, inputs[:earlier]], *inputs[earlier:])
                results[axis, inputs] = op.result
