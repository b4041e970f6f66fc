"""Pass `verify-schedules`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from msc.analysis.kernels import kernels_in
from msc.schedule.schedule_kernels import check_given


@dataclass(frozen=True)
class VerifySchedules(ModulePass):
    """Prove the schedules that kernels carry. Changes nothing.

    Raises MSC0408 for a schedule that violates a dependence or does not fit its kernel. Does not look at kernels
    without a schedule.
    """

    name = "verify-schedules"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check kernel by kernel."""
        for kernel in kernels_in(op):
            if kernel.schedule is not None:
                check_given(kernel)
