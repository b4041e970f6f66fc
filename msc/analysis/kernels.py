"""Which kernels a module of the kernel stage has, and what stands beside them."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from msc.dialects.gk import KernelOp


def kernels_in(op: Operation) -> list[KernelOp]:
    """The kernels of a module or function at all depths, in the order of the text."""
    return [kernel for kernel in op.walk() if isinstance(kernel, KernelOp)]


def blocks_outside_kernels(function: FuncOp) -> list[Block]:
    """The blocks of a function at all depths, those of its kernels excepted; outer ones first."""
    owners = [op for op in function.walk() if not isinstance(op, KernelOp)]
    return [block for op in owners for region in op.regions for block in region.blocks]
