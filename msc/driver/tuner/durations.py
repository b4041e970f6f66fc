"""Durations on the command line."""

from __future__ import annotations

import re

from msc.support.diagnostics import Diagnostic, MscError

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh]?)")


def parse_duration(text: str) -> float:
    """Seconds from `60`, `0.5s`, `5m` or `1h`. Raises MSC0008."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise MscError(Diagnostic("MSC0008", f"'{text}' is not a time; write 60s, 5m or 1h"))
    return float(match.group(1)) * _SECONDS[match.group(2)]
