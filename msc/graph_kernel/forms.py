"""Modules in which passes compare what forms of a computation cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from msc.analysis.constancy import is_constant
from msc.dialects.ms.structure import GetParameterOp
from msc.dialects.ms.target import set_target, target_attribute
from msc.ir.typed import tensor_type

GAIN = 0.9
"""The part of the time of the first guess that another form must come to by the model: the model errs."""


def module_of(
    block: Block, ops: Sequence[Operation], like: Operation, results: Sequence[SSAValue] | None = None
) -> ModuleOp:
    """A module for one thread, of a function of operations, of which it gives these results, or those of the last.

    Its target is that of the module around `like`.
    """
    given = list(ops[-1].results) if results is None else results
    block.add_ops([*ops, ReturnOp(*given)])
    module = ModuleOp([FuncOp("main", (block.arg_types, [v.type for v in given]), Region(block))])
    target = target_attribute(like)
    if target is not None:
        set_target(module, target.with_threads(1))
    return module


def given_for(block: Block, values: Iterable[SSAValue]) -> tuple[dict[SSAValue, SSAValue], list[Operation]]:
    """What stands for values in such a module: new arguments of its block, or operations that give parameters."""
    known, ops = dict[SSAValue, SSAValue](), list[Operation]()
    for value in dict.fromkeys(values):
        if is_constant(value):
            ops.append(GetParameterOp(f"operand{len(ops)}", tensor_type(value)))
            known[value] = ops[-1].results[0]
        else:
            known[value] = block.insert_arg(value.type, len(block.args))
    return known, ops
