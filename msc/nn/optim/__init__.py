"""Optimisers as cells: each call updates parameters by their gradients."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """The optimisers under the path that MindSpore has: `from msc.nn.optim import Momentum`."""
    if name.startswith("_") or not name[0].isupper():
        raise AttributeError(name)
    return getattr(import_module("msc.nn"), name)
