"""MSC05xx: targets and the toolchain."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES: tuple[Code, ...] = ()
