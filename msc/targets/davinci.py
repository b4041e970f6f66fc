"""DaVinci (Ascend) cores as data: one TOML file a machine in `ascend/`, read into typed sections.

`base = "..."` in a file names another one for the figures that it lacks. Units are bytes, cycles of `clock.mhz`
and bytes per cycle. The files name the source of every figure.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.targets.abilities import PLAIN, Abilities, ElementType, Scope, Shape, Unit, UnitOperand
from msc.targets.reading import merged

DEFAULT_TARGET = "ascend910b1"
"""What `msc sim` simulates when no target is named."""

_FOLDER = Path(__file__).parent / "ascend"
_AXES = 16
"""The most nested loops that cores share."""


Names = tuple[str, ...]


@dataclass(frozen=True)
class Clock:
    """The clock of cube, vector and memory pipes."""

    mhz: float


@dataclass(frozen=True)
class Cores:
    """How many cores there are, and how they start: block k starts k * `launch_us` microseconds after block 0.

    `coupled` cores have a cube and a vector unit each; others are separate, two vector cores to a cube core.
    """

    cube: int
    vector: int
    coupled: bool
    launch_us: float


@dataclass(frozen=True)
class Buffers:
    """Bytes of each on-chip memory of a core, and what of L1 and UB msc's own tiles leave to the vendor's software."""

    l0a: int
    l0b: int
    l0c: int
    l1: int
    ub: int
    bt: int
    fb: int
    l1_reserved: int
    ub_reserved: int


@dataclass(frozen=True)
class Alignment:
    """The alignment of addresses in each memory, in bytes."""

    ub: int
    l1: int
    l0a: int
    l0b: int
    l0c: int
    bt: int
    fb: int


@dataclass(frozen=True)
class Queues:
    """Instruction queues and flags; `issue`, `flag`, `cross_core_flag` and `barrier` are cycles."""

    depth: int
    event_ids: int
    event_ids_free: int
    cross_core_flags: int
    issue: float
    flag: float
    cross_core_flag: float
    barrier: float


@dataclass(frozen=True)
class Features:
    """The data paths that a core has."""

    fixpipe_to_gm: bool
    fixpipe_to_ub: bool
    nd2nz: bool
    ub_to_l1: bool


@dataclass(frozen=True)
class Cube:
    """Mmad: `*_k` of a 16 x 16 x k step a cycle, `*_k0` the multiple that k is rounded up to.

    One Mmad ends `latency` cycles after its last step, the next one starts `gap` after it, and one that waited for its
    operands takes `restart` more. `inputs` are the types that it multiplies.
    """

    s4_k: int
    s8_k: int
    f16_k: int
    f32_k: int
    s4_k0: int
    s8_k0: int
    f16_k0: int
    f32_k0: int
    latency: float
    gap: float
    restart: float
    inputs: Names


@dataclass(frozen=True)
class Mte1:
    """L1 to L0A, L0B and the tables: bytes a cycle and the constant of each kind of load."""

    l0a: float
    l0b: float
    load2d: float
    load3d: float
    transpose: float
    sparse: float
    gap: float
    load3d_l0a_least: float
    load3d_l0b_least: float
    load3d_l0a_extra: int
    load3d_l0b_extra: int
    bt: float
    fb: float
    table: float
    l1_accesses: float
    l1_write: float
    l1_write_share: float


@dataclass(frozen=True)
class GlobalMemory:
    """One core's moves to and from global memory, in cycles a packet of up to `packet` bytes."""

    packet: int
    l1_start: float
    l1_packet: float
    l1_miss: float
    nd2nz_packet_512: float
    ub_start: float
    ub_packet: float
    ub_miss: float
    l0_packet: float
    write_start: float
    write_packet: float
    write_latency: float


@dataclass(frozen=True)
class Shared:
    """L2 and HBM, which all cores share: bytes and bytes a cycle; `memory` are the bytes of HBM."""

    memory: int
    l2: int
    line: int
    l2_read: float
    l2_write: float
    l2_mixed: float
    hbm: float
    same_line: float


@dataclass(frozen=True)
class Fixpipe:
    """L0C to L1 and UB, with conversion."""

    start: float
    l1: float
    l1_s8: float
    ub: float
    ub_start: float
    elements: float


@dataclass(frozen=True)
class Vector:
    """The vector unit: `start` + repeats * (cycles a repeat + conflicts); `rates` are elements a cycle of f16, f32."""

    start: float
    gap: float
    repeat_bytes: int
    banks: int
    bank_groups: int
    conflict: float
    write_conflict: float
    ub_to_ub: float
    rates: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Scalar:
    """Cycles of the scalar unit for a step of the high-level matmul API, and for one element by itself.

    `line` is the bytes of a line of its data cache: two cores never write to the same line.
    """

    high_level_step: float
    high_level_load: float
    constant_tiling: float
    cycles_per_element: float
    line: int


Curve = tuple[tuple[float, float], ...]
"""KB -> cycles."""


@dataclass(frozen=True)
class Cold:
    """The first move of a program on each path, as measured one by one."""

    gm_cbuf: Curve
    gm_ub: Curve
    gm_ca: Curve
    gm_cbuf_nd2nz: Curve
    ub_gm: Curve
    cc_gm: Curve


@dataclass(frozen=True)
class DavinciTarget:
    """A machine of DaVinci cores."""

    name: str
    architecture: str
    clock: Clock
    cores: Cores
    buffers: Buffers
    alignment: Alignment
    queues: Queues
    features: Features
    cube: Cube
    mte1: Mte1
    gm: GlobalMemory
    shared: Shared
    fixpipe: Fixpipe
    vector: Vector
    scalar: Scalar
    cold: Cold

    @property
    def abilities(self) -> Abilities:
        """The memories of a core, and its cube: `mad` multiplies tiles of L0A and L0B into L0C.

        UB has no limit here: its buffers share room over time, and the code that makes a kernel knows how much.
        """
        sizes, align = self.buffers, self.alignment
        rooms = (
            Scope("l1", sizes.l1 - sizes.l1_reserved, align.l1),
            Scope("l0a", sizes.l0a, align.l0a),
            Scope("l0b", sizes.l0b, align.l0b),
            Scope("l0c", sizes.l0c, align.l0c),
            Scope("ub"),
        )
        cube = tuple(cast("tuple[ElementType, ...]", self.cube.inputs))
        unit = Unit(
            name="mad",
            computes="c[m, n] += a[m, k] * b[n, k]",
            shape=Shape(4095, 4095, 4095),
            step=Shape(16, 16, 16),
            a=UnitOperand(cube, "l0a"),
            b=UnitOperand(cube, "l0b"),
            c=UnitOperand(("f32", "i32"), "l0c"),
            cycles=1.0,
            latency=self.cube.latency,
        )
        scopes = {**PLAIN.scopes, **{room.name: room for room in rooms}}
        return Abilities(
            scopes,
            {unit.name: unit},
            overlaps=True,
            parallel=_AXES,
            cores=max(self.cores.cube, self.cores.vector),
            lanes=False,
            prefetches=False,
            shares_tails=True,
        )

    def microseconds(self, cycles: float) -> float:
        """Cycles of this machine as microseconds."""
        return cycles / self.clock.mhz

    @property
    def peak_macs(self) -> float:
        """f16 multiply-accumulates of one cube core in a cycle."""
        return 256.0 * self.cube.f16_k


@cache
def davinci_targets() -> tuple[str, ...]:
    """The names of all machines with a file."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("ascend*.toml")))


@cache
def davinci_target(name: str) -> DavinciTarget:
    """The machine `name`. Raises MSC1001 for a name without a file, MSC1002 for an invalid file."""
    if name not in davinci_targets():
        message = f"there is no DaVinci target '{name}'"
        advice = did_you_mean(name, davinci_targets()) or f"targets are {', '.join(davinci_targets())}"
        raise MscError(Diagnostic("MSC1001", message, help=advice))
    return davinci_target_of(_merged(name), f"{name}.toml")


def davinci_target_of(table: Mapping[str, Any], source: str) -> DavinciTarget:
    """The machine that a table of all sections describes. Raises MSC1002, which names `source`."""
    kinds: dict[str, type[Any]] = get_type_hints(DavinciTarget)
    sections = {name: kind for name, kind in kinds.items() if is_dataclass(kind)}
    unknown = table.keys() - sections.keys() - {"architecture", "base"}
    if unknown:
        raise _wrong(source, f"has no section '{min(unknown)}'", did_you_mean(min(unknown), sections))
    parts: dict[str, Any] = {name: _section(kind, table.get(name), name, source) for name, kind in sections.items()}
    return DavinciTarget(source.removesuffix(".toml"), str(table.get("architecture", "")), **parts)


_S = TypeVar("_S")


def _section(kind: type[_S], given: object, name: str, source: str) -> _S:
    if not isinstance(given, dict):
        raise _wrong(source, f"lacks the section [{name}]", None)
    values = cast("dict[str, object]", given)
    types = {field.name: str(field.type) for field in fields(cast("Any", kind))}
    unknown = values.keys() - types.keys()
    if unknown:
        raise _wrong(source, f"[{name}] has no '{min(unknown)}'", did_you_mean(min(unknown), types))
    missing = types.keys() - values.keys()
    if missing:
        raise _wrong(source, f"[{name}] lacks '{min(missing)}'", None)
    return kind(**{key: _value(values[key], types[key], f"{name}.{key}", source) for key in types})


def _value(given: object, kind: str, place: str, source: str) -> object:
    number = isinstance(given, int | float) and not isinstance(given, bool)
    match kind:
        case "bool" if isinstance(given, bool):
            return given
        case "int" if number and given == int(cast("float", given)):
            return int(cast("float", given))
        case "float" if number:
            return float(cast("float", given))
        case "Names" if isinstance(given, list) and all(isinstance(word, str) for word in cast("list[object]", given)):
            return tuple(cast("list[str]", given))
        case "Curve" if isinstance(given, list):
            return tuple((float(x), float(y)) for x, y in cast("list[list[float]]", given))
        case _ if kind.startswith("Mapping") and isinstance(given, dict):
            pairs = cast("dict[str, list[float]]", given)
            return {name: (float(pair[0]), float(pair[1])) for name, pair in pairs.items()}
        case _:
            raise _wrong(source, f"'{place}' is {given!r}, not of type {kind}", None)


def _merged(name: str) -> dict[str, Any]:
    own = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    base = own.get("base")
    return own if base is None else merged(_merged(str(base)), own)


def _wrong(source: str, what: str, advice: str | None) -> MscError:
    return MscError(Diagnostic("MSC1002", f"the machine file '{source}' {what}", help=advice))
