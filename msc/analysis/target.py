"""What a module is compiled for: the one place where passes ask for the machine and the threads."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from msc.dialects.ms.target import target_attribute
from msc.targets.catalogue import machine_named
from msc.targets.machine import Machine

DEFAULT_BACKEND, DEFAULT_MACHINE, DEFAULT_THREADS = "cpu", "native", 1
"""What a module without `ms.target` is compiled for."""


@dataclass(frozen=True)
class Target:
    """A back end by name, the machine, and the threads that were asked for: 0 is one on each core."""

    backend: str
    machine: Machine
    threads: int

    @property
    def team(self) -> int:
        """How many threads share a kernel on this machine."""
        return self.threads or self.machine.cores


def target_of(op: Operation) -> Target:
    """The target of the module around an operation. Raises MSC0501 for a machine that is not known."""
    found = target_attribute(op)
    if found is None:
        return Target(DEFAULT_BACKEND, machine_named(DEFAULT_MACHINE), DEFAULT_THREADS)
    return Target(found.backend.data, machine_named(found.machine.data), found.threads.data)
