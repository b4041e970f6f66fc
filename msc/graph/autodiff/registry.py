"""The table of gradients by formula: operation class -> the function that writes its adjoint.

What is not in the table is derived from its compute definition (`derived`), after its expansion if it is composite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.ir import SSAValue

from msc.dialects.ms.base import MsOp
from msc.support.families import Table

Contributions: TypeAlias = Sequence[SSAValue | None]
"""What operands get, in their order; None for nothing."""

Rule: TypeAlias = Callable[..., Contributions]
"""From an operation, an emitter and the gradient of each result to what its operands get.

Of an operation with several results, those that nothing depends on are given as zeros.
"""

gradient: Table[type[MsOp], Rule] = Table(
    "gradients", "msc.graph.autodiff.rules",
    "activations", "arithmetic", "convolution", "indexing", "linear", "logarithmic", "movement", "normalisation",
    "quantisation", "reductions", "collectives",
)  # fmt: skip
"""Declares how the gradient of operation classes is written."""
