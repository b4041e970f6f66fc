"""A machine as data: memory levels, vectors, issue ports, latencies, matrix units, costs of threads and of code.

The TOML files beside this module hold all figures, one file for each machine (`msc.targets.reading`, docs/targets.md).
Sizes are bytes, times are cycles of the core's clock, and a rate is that of one core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd, prod
from typing import Literal, TypeAlias

from msc.targets.abilities import PLAIN, Abilities, Scope, Unit, figure

Sharing: TypeAlias = Literal["core", "machine"]


@dataclass(frozen=True, kw_only=True)
class Level:
    """A level of memory: a cache, or memory itself, which is the last."""

    name: str
    bytes: int = figure("capacity in bytes; none: main memory, without a limit", 0)
    bytes_per_cycle: float = figure("bytes per cycle that one core sustains from it", least=1e-3)
    latency: float = figure("cycles of a load from it")
    line: int = figure("bytes of a line", least=1)
    ways: int = figure("associativity: lines of one set; 0: fully associative", 0)
    shared_by: Sharing = figure("`core`: one for each core; `machine`: one for all", "core")

    @property
    def way_bytes(self) -> int:
        """The distance in bytes between lines that map to one set."""
        return self.bytes // self.ways if self.ways else self.line

    def with_bytes(self, size: int) -> Level:
        """The level with another capacity: more or fewer ways of the same size."""
        return replace(self, bytes=size, ways=size // self.way_bytes if self.ways else 0)

    def lines_apart(self, distance: int, spare_ways: int) -> int:
        """How many lines `distance` bytes apart it holds at once: distant lines map to few sets."""
        if not self.ways:
            return max(1, self.bytes // self.line)
        return self._sets(distance) * max(1, self.ways - spare_ways)

    def lines_of(self, rows: Sequence[tuple[int, int]]) -> int:
        """How many lines it holds at once; `rows` has their number and distance in bytes in each direction."""
        if not self.ways:
            return max(1, self.bytes // self.line)
        sets = prod(min(count, self._sets(distance)) for count, distance in rows)
        return min(sets, self._sets(gcd(*(distance for _, distance in rows)))) * self.ways

    def _sets(self, distance: int) -> int:
        """The number of sets that lines `distance` bytes apart map to."""
        return self.way_bytes // gcd(distance, self.way_bytes)


@dataclass(frozen=True, kw_only=True)
class Scratchpad:
    """A memory that code fills explicitly. Schedules name it as a scope."""

    name: str
    bytes: int = figure("capacity in bytes", least=1)
    bytes_per_cycle: float = figure("bytes per cycle between it and the level that fills it", least=1e-3)
    latency: float = figure("cycles until the first bytes of a copy arrive")
    align: int = figure("alignment of its arrays in bytes", least=1)
    beside: str = figure("the level of memory or the scratchpad that fills it")
    shared_by: Sharing = figure("`core`: one for each core; `machine`: one for all", "core")


@dataclass(frozen=True, kw_only=True)
class Board:
    """A computer without an operating system that an emulator has; bundles get what starts a program on it."""

    name: str
    emulator: str = figure("the program that emulates it, as its name of a machine")
    compiler: str = figure("the C compiler for it")
    start: str = figure("its start-up code: `cortex-m` or `riscv32`")
    code: int = figure("the address of the memory for code and weights")
    code_bytes: int = figure("its bytes", least=1)
    data: int = figure("the address of the memory for data")
    data_bytes: int = figure("its bytes", least=1)
    tick: float = figure("nanoseconds of a tick of its counter", least=0.01)
    linked: tuple[str, ...] = figure("flags with which programs for it are compiled and linked", ())


@dataclass(frozen=True)
class Vectors:
    """Vector registers."""

    bits: int = figure("bits of a register; 32 or less: no vectors", least=8, most=2048)
    registers: int = figure("number of registers", least=1)
    fma: bool = figure("whether a multiply-add is one instruction")
    unit: int = figure("bits of one execution unit, if that is narrower than a register; 0: the same", 0)
    integers: int = figure("number of registers for integers, if they have others; 0: the same", 0)


@dataclass(frozen=True)
class Ports:
    """Vector instructions that a core issues per cycle."""

    arithmetic: float = figure("products and multiply-adds", least=0.1)
    beside: float = figure("other arithmetic on ports of its own; 0: the same ports do both")
    load: float = figure("loads", least=0.1)
    store: float = figure("stores", least=0.1)
    shuffle: float = figure("shuffles, which move lanes; they also take ports of arithmetic", least=0.1)
    split: float = figure("additional loads or stores that an access across two lines counts as")
    misses: float = figure("cache misses that a core waits for at a time", least=1)


@dataclass(frozen=True)
class Latency:
    """Latencies of instructions, in cycles."""

    multiply_add: float = figure("of a multiply-add", least=1, most=1000)
    add: float = figure("of an addition, or of a maximum", least=1, most=1000)
    reduce_lanes: float = figure("of the sum of the lanes of a vector", least=0)
    integers: float = figure("of a product or a sum of integers, where another; 0: the same", 0)


@dataclass(frozen=True)
class Synchronisation:
    """Cycles that sharing work among threads costs."""

    call: float = figure("of the call of a kernel's function")
    team: float = figure("of sharing a kernel: waking the team, and data that later kernels fetch from other cores")
    following: float = figure("of sharing a kernel that reads results of several threads")
    awake: float = figure("of sharing a kernel in a loop, whose team is awake")
    fetched_byte: float = figure("of a byte that one core wrote and another reads")


@dataclass(frozen=True)
class Operators:
    """Vector instructions of operators that take several."""

    division: float = figure("div, rem, mod, sqrt, rsqrt")
    exponential: float = figure("exp, log, sigmoid, tanh, erf and similar functions")
    trigonometric: float = figure("sin, cos, tan, their inverses and hyperbolic functions")
    power: float = figure("pow, atan2")


@dataclass(frozen=True)
class CodeCosts:
    """Costs of compiled loops, in cycles unless the text says otherwise."""

    window: float = figure("instructions of the reorder window")
    overlap: float = figure("share of loads and streams that arithmetic does not hide", most=1)
    exposed: float = figure("share of the time of each cache that other work does not hide", most=1)
    exposed_memory: float = figure(
        "share of the time of memory, or of the other work if that is less, that is not hidden", most=1
    )
    lost: float = figure("latencies that loads wait for each line that is lost as rows map to few sets")
    lost_stores: float = figure("latencies that stores wait for each such line, one after the other")
    iteration: float = figure("of an iteration of a loop")
    entry: float = figure("of entering an innermost loop")
    short_entry: float = figure("of entering an innermost loop that the C compiler unrolls")
    tile: float = figure("of entering a register tile")
    step: float = figure("of a step of a register tile, for its loop")
    register_buffer: int = figure("bytes of a local array up to which C compilers may keep it in registers")
    stacked: int = figure("L2 divided by this limits the bytes of blocks on the stack, whose pages are small", least=1)
    prefetch_bytes: int = figure("distance of a prefetch in bytes of the stream", least=1)
    panel_rate: float = figure("bytes per cycle from L2 during the arithmetic of a tile", least=1e-3)
    row_rate: float = figure("bytes per cycle from beyond L2 for rows that are not contiguous", least=1e-3)
    far_element: float = figure("of an element of a row, if each pass reads the rows from L3")
    spill: float = figure("of a spilled value: a store and a load")
    spare_registers: int = figure("registers for values that C compilers load early")
    tight: float = figure("of each spare register that a tile uses")
    unrolled: int = figure("iterations up to which C compilers unroll an innermost loop")
    unrolled_sums: int = figure("sums in all iterations of a loop up to which they unroll it")
    straight: int = figure("instructions up to which they replace loops by straight-line code")
    divided: float = figure(
        "instructions to compute the address of an element from its block and its index in the block"
    )
    packed_rows: int = figure("fewest rows for which packing the matrix that they read pays")
    copied_mask: int = figure("heads above which a transposed copy of the mask that they read pays")


@dataclass(frozen=True)
class Machine:
    """Everything that compilation knows about a machine: equal machines give equal C.

    `levels` begins with the nearest and ends with memory.
    """

    name: str
    levels: tuple[Level, ...]
    vectors: Vectors
    ports: Ports
    latency: Latency
    synchronisation: Synchronisation
    operators: Operators
    code: CodeCosts
    cores: int = figure("cores", least=1)
    stack: int = figure("stack of a thread in bytes, for local arrays")
    page: int = figure("bytes of a page", least=64)
    streams: int = figure("pages whose reads the hardware prefetcher follows at a time", least=1)
    index: Literal[32, 64] = figure("bits of addresses, and of indices in C", 64)
    align: int = figure("bytes to which workspaces, weights and the buffers in them are aligned", 64, least=1, most=64)
    ram: int = figure("bytes of RAM for workspace and stack; 0: no limit", 0)
    flash: int = figure("bytes of flash for weights; 0: no limit", 0)
    architecture: str = figure("as `uname -m` names it; empty: any", "")
    flags: tuple[str, ...] = figure("flags of the C compiler", ())
    features: frozenset[str] = figure(
        "features of the CPU that C compilers may use, as /proc/cpuinfo names them", frozenset()
    )
    instructions: tuple[Unit, ...] = ()
    scratchpads: tuple[Scratchpad, ...] = ()
    boards: tuple[Board, ...] = ()
    ghz: float = figure("the clock under wide arithmetic, in GHz; 0: unknown", 0.0)
    aliases: tuple[str, ...] = figure("other names of the file", ())
    vendor: str = figure("`vendor_id` or `CPU implementer` in /proc/cpuinfo; empty: any", "")
    families: tuple[int, ...] = figure("its `cpu family`; none: any", ())
    models: tuple[int, ...] = figure("its `model` or `CPU part`; none: any", ())

    @cached_property
    def caches(self) -> tuple[Level, ...]:
        """The levels in front of memory."""
        return self.levels[:-1]

    @property
    def memory(self) -> Level:
        """Main memory, the last level."""
        return self.levels[-1]

    @property
    def abilities(self) -> Abilities:
        """The memories with their capacities, including scratchpads, and the matrix units."""
        room = {"register": self.register_file, "stack": self.stack_of_places}
        plain = {name: Scope(name, room.get(name, 0)) for name in PLAIN.scopes}
        pads = {pad.name: Scope(pad.name, pad.bytes, pad.align) for pad in self.scratchpads}
        return Abilities({**plain, **pads}, {unit.name: unit for unit in self.units}, prefetches=not self.is_bare)

    @property
    def is_bare(self) -> bool:
        """Whether programs run without an operating system, as on microcontrollers: memory is scarce there."""
        return bool(self.boards)

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The instructions of matrix products whose features the machine has."""
        return tuple(unit for unit in self.instructions if self.features.issuperset(unit.needs))

    @property
    def scopes(self) -> tuple[str, ...]:
        """The names of the scratchpads, which schedules may place arrays in."""
        return tuple(pad.name for pad in self.scratchpads)

    @property
    def l1(self) -> int:
        """Bytes of L1."""
        return self.caches[0].bytes

    @property
    def l2(self) -> int:
        """Bytes of L2, or of the last cache if there are fewer."""
        return self.caches[:2][-1].bytes

    @property
    def l3(self) -> int:
        """Bytes of L3, or of the last cache if there are fewer."""
        return self.caches[:3][-1].bytes

    @property
    def line(self) -> int:
        """Bytes of a line of L1."""
        return self.caches[0].line

    @property
    def line_pair(self) -> int:
        """Bytes of two adjacent lines, which processors fetch together: writing rows a line at a time costs more."""
        return 2 * self.line

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector register."""
        return self.vectors.bits // 8

    @property
    def part(self) -> float:
        """The fraction of a vector that one execution unit processes at a time."""
        return self.vectors.unit / self.vectors.bits if self.vectors.unit else 1.0

    @property
    def vector_registers(self) -> int:
        """The architectural vector registers."""
        return self.vectors.registers

    def of(self, dtype: str) -> Machine:
        """The machine as arithmetic on elements of a type finds it: with the registers and latencies of integers."""
        return self._of_integers if "i" in dtype else self

    @cached_property
    def _of_integers(self) -> Machine:
        vectors, latency = self.vectors, self.latency
        if not vectors.integers and not latency.integers:
            return self
        add, product = latency.integers or latency.add, latency.integers or latency.multiply_add
        return replace(
            self,
            vectors=replace(vectors, registers=vectors.integers or vectors.registers),
            latency=replace(latency, add=add, multiply_add=product),
        )

    @property
    def fma(self) -> bool:
        """Whether a multiply-add is one instruction."""
        return self.vectors.fma

    @property
    def vector_flops(self) -> float:
        """Operations on f32 that a core issues per cycle on vectors; a multiply-add is two.

        Ports count whole vectors, even if units are narrower.
        """
        return self.ports.arithmetic * self.lanes(4) * (2 if self.fma else 1)

    @property
    def flops(self) -> float:
        """Operations that a core issues per cycle, on vectors or on the fastest matrix unit with scratchpads."""
        units = (unit for unit in self.units if not unit.in_registers and not unit.is_function)
        return max([self.vector_flops, *(2 * unit.shape.points / unit.cycles for unit in units)])

    @property
    def register_file(self) -> int:
        """Bytes of all vector registers."""
        return self.vector_registers * self.vector_bytes

    @property
    def stack_of_places(self) -> int:
        """Bytes of the stack for arrays that schedules place there.

        The rest is for register tiles. A nest has up to four: a whole one, and the tails of its rows, of its columns
        and of both.
        """
        return self.stack - 4 * self.register_file

    @property
    def sums_in_flight(self) -> int:
        """Multiply-adds that a core works on at a time: those issued per cycle, times the latency of one."""
        return int(self.ports.arithmetic * self.latency.multiply_add)

    @property
    def chains(self) -> int:
        """Independent sums of a long reduction along the lanes, which hide the latency of an addition."""
        return int(self.latency.multiply_add)

    def lanes(self, element_bytes: int) -> int:
        """Elements in one register of vectors; one where there are none."""
        return max(1, self.vector_bytes // element_bytes)

    def with_bytes(self, **sizes: int) -> Machine:
        """The machine with other capacities of the levels named: more or fewer ways of the same size."""
        levels = (level.with_bytes(sizes[level.name]) if level.name in sizes else level for level in self.levels)
        return replace(self, levels=tuple(levels))


FIGURES: Mapping[str, type] = {
    "memory": Level,
    "vectors": Vectors,
    "ports": Ports,
    "latency": Latency,
    "unit": Unit,
    "scratchpad": Scratchpad,
    "board": Board,
    "synchronisation": Synchronisation,
    "operators": Operators,
    "code": CodeCosts,
}
"""The tables of a file, and their classes. Each table of `memory`, `unit`, `scratchpad` and `board` has a name."""
