"""Pass `hoist-parameters`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult
from xdsl.passes import ModulePass

from msc.analysis.constancy import Constancy
from msc.dialects.gk import KernelOp
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.structure import GetParameterOp
from msc.graph.weights.parameters import DerivedParameters, erase_unused, is_generated


@dataclass(frozen=True)
class HoistParameters(ModulePass):
    """Move all work on weights to compile time, into derived parameters.

    Takes: a graph of `ms` operations. Gives: the same graph in which every maximal expression of parameters and
    constants alone is an `ms.parameter` with the expression as initialiser, and is read by `ms.get_parameter`; equal
    expressions share one parameter; parameters that nothing reads are erased. Splat constants and what only repeats
    them stay: kernels make them for less than reading costs. No weight is touched: the initialiser is evaluated when
    the artifact is written. Keeps: locations; results bit by bit as the interpreter computes them.
    Run it after `expand-composites` and before `cluster-kernels`.
    Example: `ms.transpose (ms.get_parameter @w)` becomes `ms.get_parameter @w.transpose`.
    """

    name = "hoist-parameters"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        derived, constancy = DerivedParameters(op), Constancy()
        roots = [value for function in op.ops if isinstance(function, FuncOp) for value in _roots(function, constancy)]
        for value in roots:
            derived.replace(value)
        erase_unused(op)


def _roots(function: FuncOp, constancy: Constancy) -> list[OpResult]:
    """Constant values that something which is not constant uses, and that are worth storing."""
    return [
        result
        for op in function.walk()
        if isinstance(op, MsOp) and not isinstance(op, GetParameterOp) and not isinstance(op.parent_op(), KernelOp)
        for result in op.results
        if constancy.of(result) and not is_generated(result)
        if any(_is_variable(use.operation, constancy) for use in result.uses)
    ]


def _is_variable(op: Operation, constancy: Constancy) -> bool:
    return not isinstance(op, MsOp) or not all(constancy.of(result) for result in op.results)
