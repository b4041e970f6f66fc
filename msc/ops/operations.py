"""`msc.ops` under the path that MindSpore's early releases have: `from msc.ops import operations as P`."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(import_module("msc.ops"), name)
