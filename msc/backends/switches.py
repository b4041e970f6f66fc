"""Optimisations that `--without` turns off: passes that are left out, or run with an option."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Switch:
    """An optimisation: without it the pass is left out or, where there are `options`, runs with those."""

    name: str
    meaning: str
    pass_name: str
    options: Mapping[str, object] = field(default_factory=dict[str, object])


COMMON_SWITCHES = (
    Switch("batch-norms", "batch norms folded into convolutions", "fold-batch-norm"),
    Switch("cse", "common subexpression elimination", "cse"),
    Switch("fusion", "several operations in one kernel", "cluster-kernels", {"fuse": False}),
    Switch("invariants", "loop-invariant code motion", "hoist-invariants"),
    Switch("views", "views moved below the operations that they separate", "sink-views"),
)
"""Those of the stages that all back ends share."""
