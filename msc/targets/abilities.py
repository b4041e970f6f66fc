"""What the schedules of a machine may name: memories that arrays live in, and units that perform a band of loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal, Protocol, TypeAlias

Role: TypeAlias = Literal["batch", "m", "n", "k"]
"""Of a dimension of a product, as in [batch, m, k] by [batch, k, n]."""


@dataclass(frozen=True)
class Scope:
    """A memory. `bytes` is 0 if there is no limit; arrays in it begin at multiples of `align` bytes."""

    name: str
    bytes: int = 0
    align: int = 1


ElementType: TypeAlias = Literal["f16", "bf16", "f32", "f64", "i8", "ui8", "i16", "ui16", "i32", "ui32"]
BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "i8": 8, "ui8": 8, "i16": 16, "ui16": 16, "i32": 32, "ui32": 32}
"""Bits of each type."""
REGISTER, MEMORY = "register", "memory"
"""Places of operands: registers, and wherever an array lies."""


def figure(text: str, default: Any = None, *, least: float = 0, most: float = inf) -> Any:
    """A field that a machine file gives: its text, its default (None: required), its least and greatest value.

    A default means that the machine has none of something. All other figures are required.
    """
    metadata = {"text": text, "least": least, "most": most}
    return field(metadata=metadata) if default is None else field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Shape:
    """Points of an instruction by role."""

    m: int = figure("rows of a and c", 1, least=1)
    n: int = figure("columns of b and c", 1, least=1)
    k: int = figure("terms of each sum", 1, least=1)

    def __bool__(self) -> bool:
        return self.points > 0

    def of(self, role: Role) -> int:
        """The points of a role; 1 for a batch."""
        return 1 if role == "batch" else {"m": self.m, "n": self.n, "k": self.k}[role]

    @property
    def points(self) -> int:
        """The products of one instruction."""
        return self.m * self.n * self.k

    def __str__(self) -> str:
        return f"{self.m} x {self.n} x {self.k}"


@dataclass(frozen=True)
class UnitOperand:
    """An operand of an instruction."""

    types: tuple[ElementType, ...] = figure("its element types")
    place: str = figure("where it lies: `register`, a scratchpad, or `memory`: anywhere", REGISTER)


LANES = "c[n] += a[n, k] * b[n, k]"
"""What instructions on registers compute."""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """An instruction, or an execution unit, with its own compute definition.

    In registers that is `c[n] += a[n, k] * b[n, k]`: n are the lanes, and each lane of a and b has the terms k, which
    together have the bits of an element of c. In scratchpads and memory it is a product of matrices, and one takes
    `shape` points or fewer of each role; scratchpads round m, n and k up to multiples of `step`.
    """

    name: str
    computes: str = figure(f"its compute definition: in registers `{LANES}`, else as `c[m, n] += a[m, k] * b[k, n]`")
    shape: Shape = figure("points of one instruction, such as `{ n = 16, k = 4 }`")
    a: UnitOperand = figure('the left factor, such as `{ types = ["f16"], place = "PAD" }`')
    b: UnitOperand = figure("the right factor")
    c: UnitOperand = figure("the sums")
    cycles: float = figure(
        "between the starts of two; in registers: of a port of arithmetic; of a function: of a step", least=1e-3
    )
    latency: float = figure("of one")
    step: Shape = figure(
        "multiples to which scratchpads round m, n and k; of a function: its steps; none: the shape", Shape(0, 0, 0)
    )
    text: str = figure(
        "its C: in registers an expression of a, b and c; in memory the intrinsic of AMX that multiplies tiles", ""
    )
    narrower: tuple[str, ...] = figure("in registers: the same for half as many lanes, for a quarter, ...", ())
    header: str = figure("the header of C that declares it", "")
    macros: tuple[str, ...] = figure("macros of C compilers that have it; without them C computes `computes`", ())
    needs: tuple[str, ...] = figure("features of the CPU that it needs", ())

    @property
    def in_registers(self) -> bool:
        """Whether it is an instruction on registers."""
        return all(operand.place == REGISTER for operand in self.operands)

    @property
    def is_function(self) -> bool:
        """Whether C calls it on arrays in memory: b has the terms of 32 bits side by side, as in registers."""
        return bool(self.text) and all(operand.place == MEMORY for operand in self.operands)

    def terms(self, extent: int) -> int:
        """The terms of a step of a function that divide an extent into equal steps of whole words; 0 if none do."""
        word = 32 // BITS[self.b.types[0]]
        return next((k for k in range(self.step.k, 0, -word) if extent % k == 0), 0)

    @property
    def operands(self) -> tuple[UnitOperand, UnitOperand, UnitOperand]:
        """a, b and c."""
        return self.a, self.b, self.c

    @property
    def steps(self) -> Shape:
        """The multiples of m, n and k in scratchpads."""
        return self.step or self.shape

    def limit(self, role: Role) -> int:
        """The most points of a role inside one instruction; lanes are a vector loop around it."""
        return 1 if self.in_registers and role != "k" else self.shape.of(role)

    def scope_of(self, operand: int) -> str:
        """The memory of operand 0, 1 or, for the sums, 2; empty: any."""
        place = self.operands[operand].place
        return "" if place in (REGISTER, MEMORY) else place

    def order(self, a: str, b: str, c: str) -> tuple[int, int] | None:
        """Which factors of these types its a and b are; None if it takes no such product."""
        if c not in self.c.types:
            return None
        orders = ((0, 1), (1, 0)) if self.in_registers else ((0, 1),)
        types = (a, b)
        return next((o for o in orders if types[o[0]] in self.a.types and types[o[1]] in self.b.types), None)

    def text_for(self, lanes: int) -> str:
        """The C of one for some lanes; empty where no instruction has as many."""
        texts = enumerate((self.text, *self.narrower))
        return next((text for k, text in texts if self.shape.n >> k == lanes), "")


def _plain_scopes() -> Mapping[str, Scope]:
    return {name: Scope(name) for name in ("register", "stack", "workspace")}


@dataclass(frozen=True)
class Abilities:
    """The scopes and units of a machine by name.

    `overlaps`: whether one buffer can be filled while another is read. `parallel`: how many nested loops may run in
    parallel, `cores` the most cores that one may name. `lanes`: whether points of a vector loop are lanes of registers,
    which some statements and bounds do not allow. `prefetches`: whether it has caches that prefetches fill.
    `shares_tails`: whether the tail of a parallel loop is an iteration like the others, and may be the only one; on a
    processor, the calling thread runs it.
    """

    scopes: Mapping[str, Scope] = field(default_factory=_plain_scopes)
    units: Mapping[str, Unit] = field(default_factory=dict[str, Unit])
    overlaps: bool = False
    parallel: int = 1
    cores: int = 0
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
