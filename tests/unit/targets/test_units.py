"""Each instruction on registers of msc's machines: its C gives what its compute definition says, on random operands."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from msc.codegen.c.instructions import instruction, tile_function
from msc.codegen.c.prelude import Prelude
from msc.codegen.c.types import CType
from msc.targets.abilities import Unit
from msc.targets.catalogue import shipped
from msc.targets.detection import detect_cpu
from msc.targets.machine import Machine
from tests.unit.targets import bare_metal

MAIN = """
#include <stdio.h>
#include <stdlib.h>
int main(void)
{{
    uint32_t state = 1;
    for (int round = 0; round < 2000; ++round) {{
        union {{ uint32_t words[3][{n}]; {c} c[3]; {word} w[3]; }} x, got, said;
        for (int k = 0; k < 3 * {n}; ++k) {{
            state = state * 1664525u + 1013904223u;
            uint32_t bits = state ^ state >> 15;
            if ({is_float})
                bits = k < {n} ? 0x3f800000u | (bits & 0x7fffffu) : (bits & 0x80ff80ffu) | 0x3f003f00u;
            x.words[k / {n}][k % {n}] = bits;
        }}
        got.c[0] = {own}(x.c[0], x.w[1], x.w[2]);
        said.c[0] = {plain}(x.c[0], x.w[1], x.w[2]);
        for (int k = 0; k < {n}; ++k) {{
            float a, b;
            memcpy(&a, &got.words[0][k], 4);
            memcpy(&b, &said.words[0][k], 4);
            if ({is_float} ? fabsf(a - b) > 1e-5f : got.words[0][k] != said.words[0][k])
                return printf("lane %d\\n", k), 1;
        }}
    }}
    return 0;
}}
"""


def instructions() -> Iterator[tuple[str, Unit]]:
    """Each distinct instruction, and a machine with it."""
    seen = set[Unit]()
    for name, machine in shipped().items():
        for unit in machine.instructions:
            if unit.in_registers and unit not in seen:
                seen.add(unit)
                yield name, unit


def program(unit: Unit, lanes: int) -> str:
    """C that compares the unit's text with its compute definition."""
    (sum_,) = unit.c.types
    prelude, sums = Prelude(), CType(sum_, lanes if lanes > 1 else 0)
    prelude.headers |= {"math.h", "string.h"}
    types = (unit.a.types[0], unit.b.types[0])
    own = instruction(prelude, unit, types, sums)
    plain = instruction(prelude, replace(unit, name="plain", text="", narrower=()), types, sums)
    word = prelude.type_name(CType("u32", sums.lanes))
    names = {"own": own, "plain": plain, "c": sums.name, "word": word, "is_float": int(sums.is_float)}
    return prelude.text() + MAIN.format(n=lanes, **names)


FLAGS = {
    "avx512_bf16": "-mavx512bf16", "avx512_vnni": "-mavx512vnni", "avx_vnni": "-mavxvnni",
    "asimddp": "-march=armv8.2-a+dotprod", "avx2": "-mavx2", "avx512bw": "-mavx512bw",
}  # fmt: skip
"""Flags of GCC for features."""


TILES = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{{
    static const int sizes[][5] = {{
        {{1, 1, 4, 1, 1}}, {{17, 31, 100, 3, 2}}, {{64, 32, 192, 1, 1}}, {{33, 16, 52, 2, 3}}
    }};
    static uint8_t a[64 * 256 + 4096], b[64 * 128 + 8192];
    static int32_t got[64][40], said[64][40];
    for (unsigned k = 0; k < sizeof a; ++k)
        a[k] = (uint8_t)rand();
    for (unsigned k = 0; k < sizeof b; ++k)
        b[k] = (uint8_t)rand();
    for (int each = 0; each < 4; ++each) {{
        const int *size = sizes[each];
        const int64_t taps[6] = {{size[3], 256, 4096, size[4], 4, 128}};
        for (int k = 0; k < 64 * 40; ++k)
            (&got[0][0])[k] = (&said[0][0])[k] = rand();
        {own}(&got[0][0], 160, a, 200, b, 128, size[0], size[1], size[2], taps);
        for (int m = 0; m < size[0]; ++m)
            for (int n = 0; n < size[1]; ++n)
                for (int p = 0; p < size[3]; ++p)
                    for (int q = 0; q < size[4]; ++q)
                        for (int k = 0; k < size[2]; ++k)
                            said[m][n] += (({a} *)a)[m * 200 + p * 256 + q * 4 + k] *
                                (({b} *)b)[k / 4 * 128 + n * 4 + k % 4 + p * 4096 + q * 128];
        if (memcmp(got, said, sizeof got) != 0)
            return printf("sizes %d\\n", each), 1;
    }}
    return 0;
}}
"""


FUNCTIONS = {unit.name: unit for unit in shipped()["sapphirerapids"].units if unit.is_function}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_c_of_each_function_is_its_definition(tmp_path: Path, name: str) -> None:
    """With tiles where the processor has them, and as C compilers without tiles see it."""
    unit = FUNCTIONS[name]
    prelude, machine, path = Prelude(), shipped()["sapphirerapids"], tmp_path / "tiles.c"
    names = {"own": tile_function(prelude, unit), "a": TYPES[unit.a.types[0]], "b": TYPES[unit.b.types[0]]}
    path.write_text(prelude.text() + TILES.format(**names), encoding="utf-8")
    for flags in ([], ["-mamx-tile", "-mamx-int8"])[: 1 + _runs_here(unit, machine)]:
        if machine.architecture not in ("", detect_cpu().architecture):
            pytest.skip("tiles are of x86-64")
        command = ["cc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", *flags, "-o", tmp_path / "tiles", path]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr
        run = subprocess.run([tmp_path / "tiles"], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout


TYPES = {"ui8": "uint8_t", "i8": "int8_t"}


def compiler_of(machine: Machine) -> tuple[str, list[str]]:
    """The C compiler for a machine's architecture, and what runs its programs here; skips where there is none."""
    here = detect_cpu().architecture
    if machine.architecture in ("", here):
        return "cc", []
    compiler, runner = f"{machine.architecture}-linux-gnu-gcc", f"qemu-{machine.architecture}"
    if shutil.which(compiler) is None or shutil.which(runner) is None:
        pytest.skip(f"needs {compiler} and {runner}")
    return compiler, [runner, "-cpu", "max", "-L", f"/usr/{machine.architecture}-linux-gnu"]


@pytest.mark.parametrize(("name", "unit"), list(instructions()), ids=lambda each: getattr(each, "name", each))
def test_the_c_of_each_unit_is_its_definition(tmp_path: Path, name: str, unit: Unit) -> None:
    machine = shipped()[name]
    for lanes in (unit.shape.n >> k for k in range(1 + len(unit.narrower))):
        path = tmp_path / f"{lanes}.c"
        path.write_text(program(unit, lanes), encoding="utf-8")
        if name.startswith("cortex-m"):
            bare_metal.tools_or_skip()
            bare_metal.run(tmp_path, [path])
        else:
            _build_and_run(path, unit, machine)
    if not _runs_here(unit, machine):
        pytest.skip(f"compiled, not run: this processor lacks {', '.join(unit.needs)}")


def _build_and_run(path: Path, unit: Unit, machine: Machine) -> None:
    (compiler, runner), binary = compiler_of(machine), path.with_suffix("")
    flags = ["-std=c11", "-O2", "-ffp-contract=fast", *machine.flags, *(FLAGS[need] for need in unit.needs)]
    built = subprocess.run([compiler, *flags, "-o", binary, path, "-lm"], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    if _runs_here(unit, machine):
        run = subprocess.run([*runner, binary], capture_output=True, text=True, check=False)
        assert run.returncode == 0, f"{unit.name}, {path.name}: {run.stdout}{run.stderr}"


def _runs_here(unit: Unit, machine: Machine) -> bool:
    """Whether this processor has the instruction; an emulator has all."""
    cpu = detect_cpu()
    return machine.architecture not in ("", cpu.architecture) or set(unit.needs) <= cpu.flags
