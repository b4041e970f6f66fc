"""Pass `hoist-parameters`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from msc.analysis.constancy import Constancy
from msc.analysis.properties import WEIGHTS_HOISTED, constant_results
from msc.graph.weights.parameters import DerivedParameters, erase_unused
from msc.ir.contracts import Contract


@dataclass(frozen=True)
class HoistParameters(ModulePass):
    """Move all work on weights to compile time, into derived parameters.

    Takes: a graph of `ms` operations. Gives: the same graph in which every maximal expression of parameters and
    constants alone is an `ms.parameter` with the expression as initialiser, and is read by `ms.get_parameter`; equal
    expressions share one parameter; parameters that nothing reads are erased. What kernels make for less than reading
    costs stays (`msc.analysis.generated`): splat constants, what only repeats them, and values of more than 64 MiB
    that few elementwise operations compute of values far smaller, such as comparisons of all pairs of places.
    No weight is touched: the initialiser is evaluated when the artifact is written.
    Keeps: locations; results bit by bit as the interpreter computes them.
    Run it after `expand-composites` and before `cluster-kernels`.
    Example: `ms.transpose (ms.get_parameter @w)` becomes `ms.get_parameter @w.transpose`.
    """

    name = "hoist-parameters"
    contract = Contract(ensures=(WEIGHTS_HOISTED,))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        derived, constancy = DerivedParameters(op), Constancy()
        roots = [
            value
            for function in op.ops
            if isinstance(function, FuncOp)
            for value in constant_results(function, constancy)
        ]
        for value in roots:
            derived.replace(value)
        erase_unused(op)
