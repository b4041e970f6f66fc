"""The machine that msc runs on: the file of the most similar CPU, with the caches, cores and features found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from msc.support.processors import detect_cores
from msc.targets.detection import CacheFacts, CpuFacts, detect_cache_facts, detect_cpu
from msc.targets.machine import Level, Machine

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
