"""What a user chooses about the C that is generated."""

from __future__ import annotations

from dataclasses import dataclass, field

from msc.targets.catalogue import machine_named
from msc.targets.machine import Machine


@dataclass(frozen=True)
class COptions:
    """`name` replaces the module's name; `threads` 1 starts none, 0 is one for each processor.

    `export_kernels` makes kernels callable from outside (msc verify); `profile` adds a table of kernels with timers
    (msc bench). `flush_subnormals` computes with zeros in the place of subnormal numbers.
    """

    target: Machine = field(default_factory=lambda: machine_named("generic"))
    name: str | None = None
    threads: int = 1
    export_kernels: bool = False
    profile: bool = False
    flush_subnormals: bool = False
