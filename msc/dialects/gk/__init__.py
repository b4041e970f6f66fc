"""The kernel dialect: regions that become one generated function each."""

from xdsl.ir import Dialect

from msc.dialects.gk.attributes import COMPUTE_AT, LOOP_LABEL
from msc.dialects.gk.calls import CallKernelOp
from msc.dialects.gk.ops import KernelOp, KernelYieldOp, MaterializeOp
from msc.dialects.gk.schedule import ScheduleAttr

GK = Dialect("gk", [KernelOp, MaterializeOp, CallKernelOp, KernelYieldOp], [ScheduleAttr])

__all__ = [
    "COMPUTE_AT",
    "GK",
    "LOOP_LABEL",
    "CallKernelOp",
    "KernelOp",
    "KernelYieldOp",
    "MaterializeOp",
    "ScheduleAttr",
]
