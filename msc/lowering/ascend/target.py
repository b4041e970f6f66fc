"""The DaVinci machine that a module is compiled for."""

from __future__ import annotations

from xdsl.ir import Operation

from msc.analysis.target import target_of
from msc.targets.davinci import DEFAULT_TARGET, DavinciTarget, davinci_target


def davinci_of(op: Operation) -> DavinciTarget:
    """The DaVinci machine of the module around an operation, the default one where it names none."""
    cores = target_of(op).cores
    return cores if isinstance(cores, DavinciTarget) else davinci_target(DEFAULT_TARGET)
