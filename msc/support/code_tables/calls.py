"""MSC06xx: calls of compiled models."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES: tuple[Code, ...] = ()
