"""The machines that msc knows: the files beside this module, `native`, and files of users."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.processors import detect_cores
from msc.targets.abilities import Device
from msc.targets.davinci import davinci_target, davinci_targets
from msc.targets.detection import CacheFacts, CpuFacts, detect_cache_facts, detect_cpu
from msc.targets.files import SUFFIX, is_file
from msc.targets.machine import Level, Machine
from msc.targets.reading import Figures, over_base, parse, read_machine

NATIVE = "native"
_HOST = "generic"
"""The processor beside an accelerator; nothing is known about it."""
_FOLDER = Path(__file__).resolve().parent


def machine_named(name: str) -> Machine:
    """The machine with a name, in letters of any case, `native`, or that of a file: a name that ends with .toml.

    Raises MSC0501 for an unknown name; MSC0001 to MSC0003 and MSC0511 for an invalid file.
    """
    if name == NATIVE:
        return native_of(list(shipped().values()))
    if is_file(name):
        return _of_file(name)
    stem = _aliases().get(name.lower(), name.lower())
    if stem not in _stems():
        message = f"unknown CPU target '{name}'; known: {', '.join(machine_names())}"
        advice = _advice(name) or did_you_mean(name, machine_names()) or _GENERAL
        raise MscError(Diagnostic("MSC0501", message, help=advice))
    return shipped()[stem]


_GENERAL = f"'generic' is for any CPU; a machine of your own is a file, NAME{SUFFIX}"
_MEANT = {
    "x86-64-v4": "avx512 avx512f avx-512 skylake-avx512 skylakex icelake icelake-server tigerlake rocketlake",
    "x86-64-v3": "avx2 avx fma haswell broadwell skylake alderlake raptorlake znver1 znver2 znver3 zen2 zen3",
    "x86-64-v2": "sse sse2 sse3 ssse3 sse4 sse4.2 nehalem westmere sandybridge ivybridge x86-64 x86_64 amd64 x64",
    "znver4": "zen4",
    "znver5": "zen5",
    "armv8-a": "arm64 aarch64 armv8.2-a armv9 armv9-a sve apple-m1 apple-m2 graviton neoverse-n1 cortex-a72 cortex-a53",
    "neon": "asimd",
    "rvv": "riscv64 riscv rv64 rv64gc rv64gcv",
}
"""Machine -> other names of CPUs and instruction sets for which it is right."""
_SMALL = ("armv4", "armv5", "armv6", "armv7", "cortex-m", "cortex-r", "rv32", "thumb", "esp32", "avr", "mips")
"""How names of small processors begin."""


def _advice(name: str) -> str | None:
    """The machine that is meant by a name from elsewhere."""
    plain = name.lower()
    meant = next((machine for machine, words in _MEANT.items() if plain in words.split()), None)
    if meant is not None and meant in machine_names():
        return f"'{meant}' has these instructions; 'native' is this machine"
    chip = next((alias for alias in _aliases() if plain.startswith(alias)), None)
    if chip is not None:
        return f"'{chip}' is '{_aliases()[chip]}'"
    small = plain.startswith(_SMALL)
    return f"'generic' is C for any CPU; its compiler gets -mcpu={name} or the like" if small else None


def cores_named(name: str) -> Device:
    """What runs the kernels of a machine: its processor, or DaVinci cores. Raises as `machine_named`."""
    return davinci_target(name) if name in davinci_targets() else machine_named(name)


def host_named(name: str) -> Machine:
    """The processor of a machine; a plain one beside DaVinci cores. Raises as `machine_named`."""
    return machine_named(_HOST if name in davinci_targets() else name)


def machine_names() -> tuple[str, ...]:
    """Every name that `machine_named` knows."""
    return (*_stems(), *_aliases(), NATIVE)


@cache
def shipped() -> Mapping[str, Machine]:
    """The machines of msc by name."""
    return {stem: read_machine(_FOLDER / f"{stem}{SUFFIX}", _figures, _stems()) for stem in _stems()}


def _of_file(name: str) -> Machine:
    return read_machine(Path(name), _figures, _stems())


@cache
def _stems() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _FOLDER.glob(f"*{SUFFIX}")))


@cache
def _aliases() -> Mapping[str, str]:
    return {alias: name for name, machine in shipped().items() for alias in machine.aliases}


def _figures(stem: str) -> Figures:
    """The figures of one of msc's files, merged over those of its base."""
    path = _FOLDER / f"{stem}{SUFFIX}"
    figures = parse(path.read_text(encoding="utf-8"), str(path))
    base = figures.pop("base", None)
    return figures if base is None else over_base(figures, _figures(base))


# The machine that msc runs on: the file of the most similar CPU, with the caches, cores and features found.
_COMPILED = re.compile(
    r"popcnt|ssse3|sse4.*|abm|avx.*|amx.*|bmi[12]|f16c|fma4?|gfni|movbe|xop"
    r"|asimd.+|fphp|atomics|bf16|crc32|fcma|i8mm|jscvt|lrcpc|sve.*"
)
"""CPU flags whose instructions a compiler uses by itself."""

_SAME = {"amd64": "x86_64", "arm64": "aarch64"}
"""Other names of architectures."""


def native_of(machines: Sequence[Machine]) -> Machine:
    """The machine that msc runs on, based on the most similar of `machines`."""
    return detected(machines, detect_cpu(), detect_cache_facts(), detect_cores())


def detected(machines: Sequence[Machine], cpu: CpuFacts, caches: Sequence[CacheFacts], cores: int) -> Machine:
    """The machine with these CPU, caches and cores."""
    base = most_similar(machines, cpu)
    features = frozenset(flag for flag in cpu.flags if _COMPILED.fullmatch(flag))
    levels = tuple(_as_found(level, base.caches, caches) for level in base.levels)
    return replace(
        base,
        name="native",
        flags=_native_flags(base, cpu.vendor),
        cores=cores,
        features=features,
        levels=levels,
        aliases=(),
    )


def most_similar(machines: Sequence[Machine], cpu: CpuFacts) -> Machine:
    """The most specific of the machines whose programs the CPU can run."""
    able = [m for m in machines if _fits(m, cpu)]
    return max(able, key=lambda m: (bool(m.models), bool(m.families), bool(m.vendor), len(m.features), m.architecture))


def _fits(machine: Machine, cpu: CpuFacts) -> bool:
    architecture = _SAME.get(cpu.architecture, cpu.architecture)
    return (
        machine.architecture in ("", architecture)
        and machine.features <= cpu.flags
        and machine.vendor in ("", cpu.vendor)
        and (not machine.families or cpu.family in machine.families)
        and (not machine.models or cpu.model in machine.models)
    )


def _native_flags(base: Machine, vendor: str) -> tuple[str, ...]:
    """The compiler's flags for the CPU that it runs on, with the base's flags for vectors and tuning.

    If it tunes for Zen, GCC reads a vector from memory again for each of a few multiply-adds that use it: loads then
    bound products of few rows.
    """
    match base.architecture:
        case "aarch64":
            return ("-mcpu=native",)
        case "riscv64":
            return base.flags
        case _:
            is_tuned = any(flag.startswith("-mtune=") for flag in base.flags)
            tuning = ("-mtune=generic",) if vendor == "AuthenticAMD" and not is_tuned else ()
            return ("-march=native", *base.flags[1:], *tuning)


def _as_found(level: Level, caches: Sequence[Level], found: Sequence[CacheFacts]) -> Level:
    """A level with the size, ways and line that the system reports for that cache."""
    facts = next((f for f in found if level in caches and f.level == caches.index(level) + 1), None)
    if facts is None:
        return level
    line, ways = facts.line or level.line, facts.ways or level.ways
    even = ways and facts.bytes % (ways * line) == 0
    return replace(level, bytes=facts.bytes, line=line, ways=ways if even else 0)
