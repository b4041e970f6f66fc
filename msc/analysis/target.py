"""What a module is compiled for: the one place where passes ask for the machine and the threads."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from msc.dialects.ms.target import target_attribute
from msc.targets.abilities import Device
from msc.targets.catalogue import cores_named, host_named
from msc.targets.machine import Machine

DEFAULT_BACKEND, DEFAULT_MACHINE, DEFAULT_THREADS = "cpu", "native", 1
"""What a module without `ms.target` is compiled for."""


@dataclass(frozen=True)
class Target:
    """A back end by name, the machine, and the threads that were asked for: 0 is one on each core.

    `machine` is the processor, `cores` what runs kernels: the same, or an accelerator beside it.
    """

    backend: str
    machine: Machine
    threads: int
    cores: Device

    @property
    def team(self) -> int:
        """How many threads share a kernel on this machine."""
        return self.threads or self.machine.cores

    @property
    def accelerator(self) -> str:
        """The name of the accelerator that runs kernels; empty where the processor does."""
        return "" if self.cores is self.machine else self.cores.name


def target_of(op: Operation) -> Target:
    """The target of the module around an operation. Raises MSC0501 for a machine that is not known."""
    found = target_attribute(op)
    if found is None:
        backend, name, threads = DEFAULT_BACKEND, DEFAULT_MACHINE, DEFAULT_THREADS
    else:
        backend, name, threads = found.backend.data, found.machine.data, found.threads.data
    cores = cores_named(name)
    return Target(backend, cores if isinstance(cores, Machine) else host_named(name), threads, cores)
