"""What `--without` turns off: each optimisation by name, as passes that are left out or run with an option.

Loads nothing: options of a compilation are checked before any compiler is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Switch:
    """An optimisation: without it the pass `passes` is left out or, with an `option`, runs with that."""

    name: str
    meaning: str
    passes: str
    option: str = ""


_ALL = (
    Switch("attention", "attention a block of queries and keys at a time", "block-attention"),
    Switch("batch-norms", "batch norms folded into convolutions", "fold-batch-norm"),
    Switch("blocks", "what kernels hand over a block at a time, in one function", "fuse-blocks"),
    Switch("cse", "what is computed twice computed once", "cse"),
    Switch("fusion", "several operations in one kernel", "cluster-kernels", "fuse=false"),
    Switch("invariants", "what loops compute again and again moved before them", "hoist-invariants"),
    Switch("layouts", "blocked layouts between kernels", "assign-layouts"),
    Switch("loops", "loops of independent iterations as one function", "outline-loops"),
    Switch("packing", "operands of products packed for their tiles", "pack-operands"),
    Switch("pads", "padding fused into the kernel before it", "fuse-pads"),
    Switch("prefetches", "panels of weights fetched ahead", "prefetch-streams"),
    Switch("products", "products of few rows a block of the reduction at a time", "block-products"),
    Switch("recurrences", "loops that carry states as one function", "outline-recurrences"),
    Switch("reuse", "buffers in the places of dead ones, results in place", "plan-memory", "reuse=false"),
    Switch("schedules", "shared loops, tiles, vectors and threads", "schedule-kernels", "plain=true"),
    Switch("sums", "long sums of f32 a block of their terms at a time", "block-sums"),
    Switch("vectors", "vector instructions", "vectorize", "enable=false"),
    Switch("views", "views moved away from between operations", "sink-views"),
    Switch("winograd", "convolutions by Winograd transforms", "winograd"),
)

SWITCHES = {switch.name: switch for switch in _ALL}
"""By name. Threads have an option of their own."""


def switched(passes: Iterable[str], without: Iterable[str]) -> tuple[str, ...]:
    """Specs of passes with optimisations turned off."""
    off = {SWITCHES[name].passes: SWITCHES[name] for name in without}
    kept = ((spec, off.get(spec.partition("{")[0])) for spec in passes)
    return tuple(
        spec if switch is None else _with_option(spec, switch.option)
        for spec, switch in kept
        if switch is None or switch.option
    )


def _with_option(spec: str, option: str) -> str:
    name, brace, options = spec.partition("{")
    return f"{name}{{{option} {options}" if brace else f"{name}{{{option}}}"


def unknown_switches(names: Sequence[str]) -> list[str]:
    """Those that are none, in order."""
    return [name for name in names if name not in SWITCHES]
