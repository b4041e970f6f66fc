"""Pass `outline-constants`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from msc.analysis.properties import CONSTANTS_ARE_PARAMETERS, WEIGHTS_HOISTED, is_kept_in_kernels
from msc.dialects.gk import KernelOp
from msc.dialects.ms.structure import ConstantOp
from msc.graph.weights.parameters import DerivedParameters, erase_unused
from msc.ir.contracts import Contract


@dataclass(frozen=True)
class OutlineConstants(ModulePass):
    """Turn constants that kernels cannot hold into derived parameters.

    Takes: a graph of `ms` operations. Gives: the same graph in which only splat constants (one value everywhere) are
    left, used by basic operations alone; `cluster-kernels` copies these into kernels. All others, among them those
    that a view or the function's return uses, are parameters whose initialiser is the constant: data beside the
    weights. Keeps: locations, results bit by bit.
    Example: `ms.constant dense<[1.0, 2.0]>` becomes `ms.get_parameter @constant`.
    """

    name = "outline-constants"
    contract = Contract(ensures=(CONSTANTS_ARE_PARAMETERS,), breaks=(WEIGHTS_HOISTED,))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        derived = DerivedParameters(op)
        for function in (f for f in op.ops if isinstance(f, FuncOp)):
            for constant in [c for c in function.walk() if isinstance(c, ConstantOp)]:
                if not isinstance(constant.parent_op(), KernelOp) and not is_kept_in_kernels(constant):
                    derived.replace(constant.result)
        erase_unused(op)
