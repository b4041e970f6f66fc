"""Pass `hoist-parameters`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, OpResult, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.constancy import Constancy
from msc.analysis.patterns import Pattern, pattern_of
from msc.analysis.properties import WEIGHTS_HOISTED, constant_results
from msc.dialects.arrays import Array
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.constants import constant_of, splat_of
from msc.dialects.ms.movement import BroadcastToOp
from msc.dialects.open_sizes import module_sizes
from msc.graph.weights.parameters import DerivedParameters, erase_unused
from msc.interp.registry import evaluate_op
from msc.ir.contracts import Contract
from msc.ir.typed import static_shape


@dataclass(frozen=True)
class HoistParameters(ModulePass):
    """Move all work on weights to compile time, into derived parameters.

    Takes: a graph of `ms` operations. Gives: the same graph in which every maximal expression of parameters and
    constants alone is an `ms.parameter` with the expression as initialiser, and is read by `ms.get_parameter`; equal
    expressions share one parameter; parameters that nothing reads are erased. What kernels make for less than reading
    costs stays (`msc.analysis.generated`): splat constants, what only repeats them, and values of more than 64 MiB
    that few elementwise operations compute of values far smaller, such as comparisons of all pairs of places.
    No weight is touched: the initialiser is evaluated when the artifact is written.
    Where calls decide sizes, a value whose elements are all one number becomes that number, repeated: it is another one
    at other sizes, as the gradient of a mean is.
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
            element = uniform_element(value) if module_sizes(op) else None
            if element is None:
                derived.replace(value)
            else:
                _repeat(element, value)
        erase_unused(op)


_REPEATING = ("ms.reshape", "ms.broadcast_to", "ms.expand_dims", "ms.tile")


def uniform_element(value: SSAValue) -> Array | None:
    """The number that all elements of a value are, computed of such values alone; None for others."""
    known: dict[SSAValue, Array | None] = {}
    pending = [value]
    while pending:
        top = pending[-1]
        op = top.op if isinstance(top, OpResult) else None
        splat = splat_of(top)
        if splat is not None or not isinstance(op, MsOp) or not op.operands or not _keeps_uniform(op):
            known[pending.pop()] = None if splat is None else np.asarray(splat)
        elif unknown := [operand for operand in op.operands if operand not in known]:
            pending += unknown
        else:
            known[pending.pop()] = _of_elements(op, [known[operand] for operand in op.operands])
    return known[value]


def _keeps_uniform(op: MsOp) -> bool:
    is_elementwise = op.is_basic and pattern_of(op).pattern in (Pattern.ELEMENTWISE, Pattern.BROADCAST)
    return op.name in _REPEATING or (is_elementwise and len(op.results) == 1)


def _of_elements(op: MsOp, elements: list[Array | None]) -> Array | None:
    """What an operation makes of one element of each operand."""
    arrays = [array for array in elements if array is not None]
    if len(arrays) < len(elements) or op.name in _REPEATING:
        return arrays[0] if len(arrays) == len(elements) else None
    block = Block(arg_types=[constant_of(array).result.type for array in arrays])
    scalar = type(op).__new__(type(op))
    scalar.initialise(block.args, op.properties, {}, None)
    return np.asarray(evaluate_op(scalar, *arrays)[0]) if not static_shape(scalar.results[0]) else None


def _repeat(element: Array, value: OpResult) -> None:
    """Put a number, as often as a value has elements, in its place."""
    constant = constant_of(element)
    repeated = BroadcastToOp(constant.result, shape=list(static_shape(value)), result_types=None)
    block = value.op.parent
    assert block is not None
    for op in (constant, repeated):
        op.location = value.op.location
        block.insert_op_before(op, value.op)
    value.replace_all_uses_with(repeated.result)
