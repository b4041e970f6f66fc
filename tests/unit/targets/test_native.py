"""Which machine is the one that runs: from recorded texts of /proc/cpuinfo, and caches as Linux tells of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from msc.runtime.toolchain import find_toolchain
from msc.targets.catalogue import detected, most_similar, shipped
from msc.targets.detection import CacheFacts, CpuFacts, cpu_facts, detect_cache_facts, detect_machine
from msc.targets.machine import Machine

RECORDED = Path(__file__).with_name("cpuinfo")
MACHINES = tuple(shipped().values())


def facts(name: str, architecture: str) -> CpuFacts:
    return cpu_facts((RECORDED / f"{name}.txt").read_text(encoding="utf-8"), architecture)


def machine(cpu: CpuFacts, *caches: CacheFacts, cores: int = 4) -> Machine:
    return detected(MACHINES, cpu, caches, cores)


@pytest.mark.parametrize(
    ("recorded", "architecture", "base"),
    [
        ("cascadelake", "x86_64", "cascadelake"),
        ("icelake", "x86_64", "x86-64-v4"),
        ("zen4", "x86_64", "znver4"),
        ("zen4", "amd64", "znver4"),
        ("zen5", "x86_64", "znver5"),
        ("zen3", "x86_64", "x86-64-v3"),
        ("nehalem", "x86_64", "x86-64-v2"),
        ("graviton2", "aarch64", "neon"),
        ("graviton2", "arm64", "neon"),
        ("riscv-v", "riscv64", "rvv"),
        ("riscv", "riscv64", "generic"),
    ],
)
def test_the_most_similar_file_is_taken(recorded: str, architecture: str, base: str) -> None:
    assert most_similar(MACHINES, facts(recorded, architecture)).name == base


def test_an_unknown_machine_is_generic() -> None:
    assert most_similar(MACHINES, CpuFacts("s390x")).name == "generic"
    assert most_similar(MACHINES, CpuFacts("x86_64")).name == "generic"


def test_two_machines_with_the_same_registers_differ() -> None:
    intel, amd = machine(facts("cascadelake", "x86_64")), machine(facts("zen4", "x86_64"))
    assert (intel.vectors.bits, intel.vectors.registers) == (amd.vectors.bits, amd.vectors.registers)
    assert (["vdpbf16ps" in each.abilities.units for each in (intel, amd)]) == [False, True]
    assert intel.ports != amd.ports
    assert intel.code != amd.code
    assert intel.levels != amd.levels


def test_caches_and_cores_are_those_found() -> None:
    found = machine(
        facts("icelake", "x86_64"), CacheFacts(1, 48 << 10, 12, 64), CacheFacts(2, 1280 << 10, 20, 64), cores=3
    )
    l1, l2, *_ = found.levels
    assert (l1.bytes, l1.ways, l1.way_bytes) == (48 << 10, 12, 4096)
    assert (l2.bytes, l2.ways) == (1280 << 10, 20)
    assert found.cores == 3
    assert found.levels[2:] == shipped()["x86-64-v4"].levels[2:]


def test_flags_and_features() -> None:
    intel = machine(facts("cascadelake", "x86_64"))
    assert intel.flags == ("-march=native", "-mprefer-vector-width=512")
    assert "avx512_vnni" in intel.features
    assert "syscall" not in intel.features
    assert machine(facts("graviton2", "aarch64")).flags == ("-mcpu=native",)


def test_compilers_do_not_tune_for_zen() -> None:
    """They would read vectors from memory for each multiply-add of a few."""
    assert machine(facts("zen3", "x86_64")).flags == ("-march=native", "-mtune=generic")
    for name in ("zen4", "zen5"):
        assert [flag for flag in machine(facts(name, "x86_64")).flags if "tune" in flag] == ["-mtune=skylake-avx512"]


def test_facts_of_caches(tmp_path: Path) -> None:
    told = {"index0": ("1", "Data", "32K", "8", "64"), "index1": ("1", "Instruction", "32K", "8", "64"),
            "index2": ("2", "Unified", "1M", "", "")}  # fmt: skip
    for index, values in told.items():
        (tmp_path / index).mkdir()
        names = ("level", "type", "size", "ways_of_associativity", "coherency_line_size")
        for name, value in zip(names, values, strict=True):
            (tmp_path / index / name).write_text(value + "\n", encoding="ascii")
    assert detect_cache_facts(tmp_path) == (CacheFacts(1, 32 << 10, 8, 64), CacheFacts(2, 1 << 20))
    assert detect_cache_facts(tmp_path / "none") == ()


@pytest.mark.parametrize("name", ["znver4", "znver5"])
def test_compilers_older_than_a_processor_take_its_flags(name: str, tmp_path: Path) -> None:
    """GCC 12 knows neither by name: what they have is spelt out."""
    flags = shipped()[name].flags
    assert not any(flag.startswith("-march=znver") for flag in flags)
    if detect_machine() == "x86_64":
        source = tmp_path / "empty.c"
        source.write_text("int empty;\n", encoding="utf-8")
        find_toolchain().run([*flags, "-c", source.name, "-o", "empty.o"], tmp_path)
        assert (tmp_path / "empty.o").exists()
