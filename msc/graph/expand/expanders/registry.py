"""The table of expanders: operation class -> the function that rewrites it into basic operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xdsl.ir import SSAValue

from msc.dialects.ms.base import MsOp
from msc.support.families import Table

Expander: TypeAlias = Callable[..., SSAValue]
"""From an operation and an emitter to the value that replaces the operation's one result."""

expander: Table[type[MsOp], Expander] = Table(
    "expanders", "msc.graph.expand.expanders",
    "activations", "normalisation", "ordering", "linear", "convolution", "pooling", "reductions", "shapes", "indexing",
    "collectives",
)  # fmt: skip
"""Declares the expander of operation classes."""
