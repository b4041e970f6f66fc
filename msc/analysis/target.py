"""What a module is compiled for: the one place where passes ask for the machine and the threads."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from msc.dialects.ms.target import target_attribute
from msc.targets.catalogue import machine_named
from msc.targets.davinci import DEFAULT_TARGET, DavinciTarget, davinci_target, davinci_targets
from msc.targets.machine import Machine

DEFAULT_BACKEND, DEFAULT_MACHINE, DEFAULT_THREADS = "cpu", "native", 1
"""What a module without `ms.target` is compiled for."""


HOST_MACHINE = "generic"
"""The processor beside DaVinci cores, of which nothing is known."""


@dataclass(frozen=True)
class Target:
    """A back end by name, the machine, and the threads that were asked for: 0 is one on each core.

    Where kernels run on DaVinci cores, the machine is the processor beside them; `davinci_of` gives the cores.
    """

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
    name = found.machine.data
    host = HOST_MACHINE if name in davinci_targets() else name
    return Target(found.backend.data, machine_named(host), found.threads.data)


def is_davinci(op: Operation) -> bool:
    """Whether the kernels of the module around an operation run on DaVinci cores."""
    found = target_attribute(op)
    return found is not None and found.machine.data in davinci_targets()


def davinci_of(op: Operation) -> DavinciTarget:
    """The DaVinci machine of the module around an operation, the default one where it names none."""
    found = target_attribute(op)
    known = found is not None and found.machine.data in davinci_targets()
    return davinci_target(found.machine.data if found is not None and known else DEFAULT_TARGET)
