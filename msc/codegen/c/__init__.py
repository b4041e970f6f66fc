"""Loop-stage modules to readable C11 with GCC/Clang vector types."""

from __future__ import annotations

from msc.codegen.c.emit import Accelerator, emit_c
from msc.codegen.c.options import COptions

__all__ = ["Accelerator", "COptions", "emit_c"]
