"""The kernel dialect: regions that become one generated function each."""

from xdsl.ir import Dialect

from msc.dialects.gk.ops import KERNEL_BLOCKS, LOOP_LABEL, KernelOp, YieldOp, blocks_of

GK = Dialect("gk", [KernelOp, YieldOp])

__all__ = ["GK", "KERNEL_BLOCKS", "LOOP_LABEL", "KernelOp", "YieldOp", "blocks_of"]
