"""Modules in which passes compare what forms of a computation cost, and the passes that come before the comparison."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region

from msc.dialects.ms.target import set_target, target_attribute
from msc.graph_kernel.fusion.fuse_pads import FusePads
from msc.graph_kernel.layout.assign_layouts import AssignLayouts
from msc.graph_kernel.layout.pack_operands import PackOperands
from msc.graph_kernel.layout.read_transposed import ReadTransposed

LAYOUTS = FusePads(), AssignLayouts(), ReadTransposed(), PackOperands()
"""What decides how kernels lie in memory before they are compared, in the order of the stage `gk`."""


def module_of(block: Block, ops: Sequence[Operation], like: Operation) -> ModuleOp:
    """A module for one thread, of a function of operations, the last of which gives its results.

    Its target is that of the module around `like`.
    """
    block.add_ops([*ops, ReturnOp(*ops[-1].results)])
    module = ModuleOp([FuncOp("main", (block.arg_types, [r.type for r in ops[-1].results]), Region(block))])
    target = target_attribute(like)
    if target is not None:
        set_target(module, target.with_threads(1))
    return module
