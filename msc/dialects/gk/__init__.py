"""The kernel dialect: regions that become one generated function each."""

from xdsl.ir import Dialect

from msc.dialects.gk.ops import KernelOp, YieldOp

GK = Dialect("gk", [KernelOp, YieldOp])

__all__ = ["GK", "KernelOp", "YieldOp"]
