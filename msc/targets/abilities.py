"""What the schedules of a machine may name: memories that arrays live in, and units that perform a band of loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

Role: TypeAlias = Literal["batch", "m", "n", "k"]
"""Of a dimension of a product, as in [batch, m, k] by [batch, k, n]."""


@dataclass(frozen=True)
class Scope:
    """A memory: `bytes` is 0 where there is no limit; what is in it begins at multiples of `align` bytes."""

    name: str
    bytes: int = 0
    align: int = 1


@dataclass(frozen=True)
class Unit:
    """A unit that multiplies `[m, k]` by `[k, n]`, at most `most` of each in one instruction.

    Where operands are in memories of their own, `reads` names that of A and that of B, or one for both, and `writes`
    that of the sums. `inputs` are the element types that it multiplies, `outputs` those of its sums. Each of m, n and k
    takes room in multiples of `step`.
    """

    name: str
    most: tuple[int, int, int]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reads: tuple[str, ...] = ()
    writes: str = ""
    step: tuple[int, int, int] = (1, 1, 1)

    def limit(self, role: Role) -> int:
        """How much of a role one instruction takes. Of a batch it takes one."""
        return 1 if role == "batch" else self.most["mnk".index(role)]

    def scope_of(self, operand: int) -> str:
        """Where operand 0 or 1 lies; empty: anywhere."""
        return self.reads[min(operand, len(self.reads) - 1)] if self.reads else ""


def _plain_scopes() -> Mapping[str, Scope]:
    return {name: Scope(name) for name in ("register", "stack", "workspace")}


@dataclass(frozen=True)
class Abilities:
    """The scopes and units of a machine by name.

    `overlaps`: whether something fills one buffer while another is read. `parallel`: how many loops in each other run
    in parallel. `lanes`: points of a vector loop are lanes of registers, which some statements and bounds do not allow.
    `prefetches`: whether it has caches, into which memory is requested ahead of its use. `shares_tails`: whether the
    tail of a parallel loop is an iteration like the others, which may be the only one; a processor's caller runs it.
    """

    scopes: Mapping[str, Scope] = field(default_factory=_plain_scopes)
    units: Mapping[str, Unit] = field(default_factory=dict[str, Unit])
    overlaps: bool = False
    parallel: int = 1
    lanes: bool = True
    prefetches: bool = True
    shares_tails: bool = False


PLAIN = Abilities()
"""Those of a processor without scratchpads and matrix units."""


class Device(Protocol):
    """What runs kernels: a processor, or the cores of an accelerator beside one."""

    @property
    def name(self) -> str: ...
    @property
    def abilities(self) -> Abilities:
        """What schedules may name there."""
        ...
