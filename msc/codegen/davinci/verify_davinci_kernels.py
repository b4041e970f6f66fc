"""Pass `verify-davinci-kernels`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from msc.codegen.davinci.race_check import check_kernels
from msc.dialects.davinci import DavinciKernelOp
from msc.dialects.davinci.kernels import scalar_cycles


@dataclass(frozen=True)
class VerifyDavinciKernels(ModulePass):
    """Check that every `davinci.kernel` is free of races, deadlock, unpaired and doubly set flags. Changes nothing.

    Each kernel runs once on the simulator without data, where flags alone order the pipes: an order found holds for
    every timing. Kernels of scalar work alone have nothing to prove.

    Raises MSC1011 to MSC1017 for what a core cannot do.
    """

    name = "verify-davinci-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_kernels([k for k in op.body.block.ops if isinstance(k, DavinciKernelOp) and scalar_cycles(k) is None])
