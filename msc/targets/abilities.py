"""What the schedules of a machine may name: memories that arrays live in, and units that perform a band of loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

Role: TypeAlias = Literal["batch", "m", "n", "k"]
"""Of a dimension of a product, as in [batch, m, k] by [batch, k, n]."""


@dataclass(frozen=True)
class Scope:
    """A memory. `bytes` is 0 if there is no limit; arrays in it begin at multiples of `align` bytes."""

    name: str
    bytes: int = 0
    align: int = 1


@dataclass(frozen=True)
class Unit:
    """A unit that multiplies `[m, k]` by `[k, n]`, at most `most` of each in one instruction.

    If operands have memories of their own, `reads` names those of A and of B, or one for both, and `writes` that of the
    sums. `inputs` are the element types that it multiplies, `outputs` those of its sums. In memory, m, n and k are
    rounded up to multiples of `step`.
    """

    name: str
    most: tuple[int, int, int]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reads: tuple[str, ...] = ()
    writes: str = ""
    step: tuple[int, int, int] = (1, 1, 1)

    def limit(self, role: Role) -> int:
        """The largest extent of a role in one instruction; 1 for a batch."""
        return 1 if role == "batch" else self.most["mnk".index(role)]

    def scope_of(self, operand: int) -> str:
        """The memory of operand 0 or 1; empty: any."""
        return self.reads[min(operand, len(self.reads) - 1)] if self.reads else ""


def _plain_scopes() -> Mapping[str, Scope]:
    return {name: Scope(name) for name in ("register", "stack", "workspace")}


@dataclass(frozen=True)
class Abilities:
    """The scopes and units of a machine by name.

    `overlaps`: whether one buffer can be filled while another is read. `parallel`: how many nested loops may run in
    parallel. `lanes`: whether points of a vector loop are lanes of registers, which some statements and bounds do not
    allow. `prefetches`: whether it has caches that prefetches fill. `shares_tails`: whether the tail of a parallel loop
    is an iteration like the others, and may be the only one; on a processor, the calling thread runs it.
    """

    scopes: Mapping[str, Scope] = field(default_factory=_plain_scopes)
    units: Mapping[str, Unit] = field(default_factory=dict[str, Unit])
    overlaps: bool = False
    parallel: int = 1
    lanes: bool = True
    prefetches: bool = True
    shares_tails: bool = False


PLAIN = Abilities()
"""The abilities of a processor without scratchpads and matrix units."""


class Device(Protocol):
    """What runs kernels: a processor, or the cores of an accelerator beside one."""

    @property
    def name(self) -> str: ...
    @property
    def abilities(self) -> Abilities:
        """What schedules may name there."""
        ...
