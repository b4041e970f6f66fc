"""The kernel dialect: regions that become one generated function each."""

from xdsl.ir import Dialect

from msc.dialects.gk.attributes import BLOCK_AXIS, KERNEL_BLOCKS, LOOP_LABEL
from msc.dialects.gk.ops import KernelOp, YieldOp, blocked_axes, blocks_of
from msc.dialects.gk.schedule import ScheduleAttr

GK = Dialect("gk", [KernelOp, YieldOp], [ScheduleAttr])

__all__ = [
    "BLOCK_AXIS",
    "GK",
    "KERNEL_BLOCKS",
    "LOOP_LABEL",
    "KernelOp",
    "ScheduleAttr",
    "YieldOp",
    "blocked_axes",
    "blocks_of",
]
