"""MindSpore's `context`: settings, of which msc acts on the mode, the device and the threads."""

from msc.frontend.modes import GRAPH_MODE, PYNATIVE_MODE, get_context, reset_context, set_context
from msc.frontend.parallel import (
    ParallelMode,
    get_auto_parallel_context,
    get_ps_context,
    reset_auto_parallel_context,
    reset_ps_context,
    set_auto_parallel_context,
    set_ps_context,
)

COMPATIBLE, LAX, STRICT = "COMPATIBLE", "LAX", "STRICT"

__all__ = [
    "COMPATIBLE", "GRAPH_MODE", "LAX", "PYNATIVE_MODE", "STRICT", "ParallelMode", "get_auto_parallel_context",
    "get_context", "get_ps_context", "reset_auto_parallel_context", "reset_context", "reset_ps_context",
    "set_auto_parallel_context", "set_context", "set_ps_context",
]  # fmt: skip
