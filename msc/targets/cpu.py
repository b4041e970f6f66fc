"""CPUs as the scheduler and the C compiler see them: vector width, registers, caches, flags."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import gcd

from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.targets.detection import detect_caches, detect_cores, detect_flags, detect_machine

_KIB, _MIB = 1 << 10, 1 << 20


SUMS_IN_FLIGHT = 8
"""Multiply-adds that a core works on at a time: two a cycle, each of which takes four."""


WIDE = 4
"""Vectors in a row of a register tile that reads few elements of other operands for each multiply-add."""


LINE_PAIR_BYTES = 128
"""Two neighbouring cache lines, which a processor fetches together: rows written a line at a time cost more."""

MUCH_LESS = 1.1
"""How much less work a tile of another shape must be to be worth that its loads are more."""


SPARE_REGISTERS = 2
"""Of a register tile, besides accumulators and the vectors of a row: for the broadcast in use and the one after it."""


L1_WAY_BYTES = 4096
"""What one way of a first cache holds: a page, so that an address finds its set before it is translated."""


SPARE_WAYS = 2
"""Ways of each set that are left to what else is read, and to what is stored."""


L2_WAYS = 16
"""Lines of one set of a second cache: 8 to 20 in common machines."""


STACK = 448 * _KIB
"""Bytes of local arrays that a thread of a common system has room for: the smallest default, macOS's, is 512 KiB."""


@dataclass(frozen=True)
class CpuTarget:
    """A CPU: `march` are compiler flags, sizes are in bytes, `vector_registers` are the architectural ones.

    `stack` is what the local arrays of a kernel may take of it. `features` are what compilers may use of the CPU, as
    Linux names them in /proc/cpuinfo.
    """

    name: str
    march: tuple[str, ...]
    vector_bytes: int
    vector_registers: int
    l1: int = 32 * _KIB
    l2: int = 512 * _KIB
    l3: int = 8 * _MIB
    cores: int = 1
    fma: bool = False
    stack: int = STACK
    features: frozenset[str] = frozenset()

    def panels(self, element_bytes: int, rows: int | None = None, row_bytes: int = 0) -> tuple[int, ...]:
        """How many columns of a matrix may be stored together for a contraction, the best first.

        A register tile is two vectors wide: wider ones stream more of the panel from the second cache for each row that
        they compute. It is WIDE where the `rows` of `row_bytes` on the other side, which pass by once for each panel,
        are the greater stream (`rows_stream`). With so few rows that a tile has less than SUMS_IN_FLIGHT sums, WIDE
        vectors and up to twice as many keep the multiply-adds busy.
        """
        few = rows is not None and 2 * rows < SUMS_IN_FLIGHT
        wide = rows is not None and self.rows_stream(rows, row_bytes, element_bytes)
        widths = (WIDE, 5, 6, 7, 8, 3, 2, 1) if few else (WIDE, 2, 1) if wide else (2, 1)
        return tuple(k * self.lanes(element_bytes) for k in widths)

    def tile_rows(self, columns: int = 0, element_bytes: int = 4) -> int:
        """The rows of a register tile two vectors wide; one wide, where two leave too few sums in flight.

        Of a tile as wide as all `columns` where these leave a rest that is much less work as vectors along the rows,
        and there are rows enough to keep the multiply-adds busy with each vector of the columns.
        """
        whole, rest = divmod(columns, self.lanes(element_bytes))
        high = (self.vector_registers - SPARE_REGISTERS - whole - rest) // whole if whole and rest else 0
        if high >= SUMS_IN_FLIGHT and (high * whole + rest) * MUCH_LESS < high * (whole + 1):
            return high
        rows = (self.vector_registers - SPARE_REGISTERS - 2) // 2
        return rows if 2 * rows >= SUMS_IN_FLIGHT else self.vector_registers - SPARE_REGISTERS - 1

    def rows_stream(self, rows: int, row_bytes: int, element_bytes: int) -> bool:
        """Whether rows come from beyond the second cache and leave a WIDE panel in it."""
        return rows * row_bytes > self.l2 // 2 and self.keeps_wide_panel(row_bytes, element_bytes)

    def keeps_wide_panel(self, column_bytes: int, element_bytes: int) -> bool:
        """Whether WIDE vectors of columns find room in registers, and in the second cache while rows pass by."""
        return self.holds_wide_tiles and WIDE * self.lanes(element_bytes) * column_bytes <= self.l2 // 4

    @property
    def holds_wide_tiles(self) -> bool:
        """Whether registers hold rows enough of WIDE vectors that loading these is less work than the arithmetic."""
        return self.vector_registers >= 8 * WIDE

    def rows_kept(self, row_bytes: int) -> int:
        """How many rows so far apart find place in the first cache together: those far apart share sets."""
        apart = gcd(row_bytes, L1_WAY_BYTES)
        return L1_WAY_BYTES // apart * max(1, self.l1 // L1_WAY_BYTES - SPARE_WAYS)

    def rows_kept_beyond(self, row_bytes: int) -> int:
        """How many rows so far apart find place in the second cache together."""
        return self.l2 // gcd(row_bytes, self.l2 // L2_WAYS)

    def lanes(self, element_bytes: int) -> int:
        """Elements in one vector register."""
        return self.vector_bytes // element_bytes


_V2 = frozenset({"popcnt", "sse4_1", "sse4_2", "ssse3"})
_V3 = _V2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}

_PLAIN = (
    CpuTarget("generic", (), 16, 16),
    CpuTarget("x86-64-v2", ("-march=x86-64-v2",), 16, 16, features=_V2),
    CpuTarget("x86-64-v3", ("-march=x86-64-v3",), 32, 16, fma=True, features=_V3),
    CpuTarget(
        "x86-64-v4", ("-march=x86-64-v4", "-mprefer-vector-width=512"), 64, 32, 32 * _KIB, _MIB, fma=True, features=_V4
    ),
    CpuTarget("armv8-a", ("-march=armv8-a",), 16, 32, 32 * _KIB, fma=True),
)
_NAMED: Mapping[str, CpuTarget] = {target.name: target for target in _PLAIN}
_ALIASES = {"neon": "armv8-a", "armv8": "armv8-a"}


def target_names() -> tuple[str, ...]:
    """Every name that `cpu_target` knows."""
    return (*_NAMED, *_ALIASES, "native")


def cpu_target(name: str) -> CpuTarget:
    """The target of a name, `native` being this machine. Raises MSC0501 for an unknown name."""
    if name == "native":
        return native()
    found = _NAMED.get(_ALIASES.get(name, name))
    if found is None:
        message = f"unknown CPU target '{name}'; known: {', '.join(target_names())}"
        raise MscError(Diagnostic("MSC0501", message, help=did_you_mean(name, target_names())))
    return found


def native() -> CpuTarget:
    """The machine msc runs on: vector width from its CPU flags, cache sizes as the kernel reports them."""
    l1, l2, l3 = detect_caches()
    flags = detect_flags()
    base = _base(detect_machine(), flags)
    march = ("-march=native", *base.march[1:]) if base.march[:1] != ("-march=armv8-a",) else ("-mcpu=native",)
    measured = {key: size for key, size in (("l1", l1), ("l2", l2), ("l3", l3)) if size}
    features = frozenset(flag for flag in flags if _COMPILED.fullmatch(flag))
    return replace(base, name="native", march=march, cores=detect_cores(), features=features, **measured)


_COMPILED = re.compile(
    r"popcnt|ssse3|sse4.*|abm|avx.*|amx.*|bmi[12]|f16c|fma4?|gfni|movbe|xop"
    r"|asimd.+|fphp|atomics|bf16|crc32|fcma|i8mm|jscvt|lrcpc|sve.*"
)
"""CPU flags that a compiler uses unasked once it may."""

_X86: tuple[tuple[Callable[[frozenset[str]], bool], str], ...] = (
    (lambda flags: flags >= _V4, "x86-64-v4"),
    (lambda flags: flags >= _V3, "x86-64-v3"),
    (lambda flags: flags >= _V2, "x86-64-v2"),
)


def _base(machine: str, flags: frozenset[str]) -> CpuTarget:
    if machine in ("aarch64", "arm64"):
        return _NAMED["armv8-a"]
    name = next((name for has, name in _X86 if has(flags)), "generic")
    return _NAMED[name]
