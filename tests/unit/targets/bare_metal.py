"""Programs for a Cortex-M4 without an operating system, run by QEMU's board MPS2-AN386."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from msc.targets.catalogue import machine_named

COMPILER, EMULATOR = "arm-none-eabi-gcc", "qemu-system-arm"
PACKAGES = (
    "gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"
    " gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-system-misc"
)
START = """
extern void _start(void);
static void reset(void)
{
    *(volatile unsigned *)0xE000ED88 |= 0xFu << 20; /* the FPU */
    __asm__ volatile("dsb; isb");
    _start();
}
__attribute__((section(".isr"), used)) void *const vectors[] = {(void *)0x20400000, reset, reset, reset};
"""


def tools_or_skip(*tools: str) -> None:
    """Skip where the tools are missing; where `.ci/run` could install them, that is an error."""
    missing = [tool for tool in (tools or (COMPILER, EMULATOR)) if shutil.which(tool) is None]
    if missing and not (os.environ.get("MSC_TESTS_NEED_TOOLS") and COMPILER in tools):
        pytest.skip(f"{' and '.join(missing)} not found: apt-get install {PACKAGES}")
    assert not missing


def made(folder: Path, target: str, *variables: str, status: int = 0) -> str:
    """What `make` of a bundle prints; it must return `status`."""
    command = ["make", "-C", folder, target, *variables]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout


def run(folder: Path, sources: Sequence[Path]) -> str:
    """What a program of some C files prints; it must return 0."""
    start, program = folder / "start.c", folder / "program.elf"
    start.write_text(START, encoding="utf-8")
    flags = [
        "-std=c11",
        "-O2",
        "-mthumb",
        "--specs=rdimon.specs",
        "-Wl,--section-start=.isr=0",
        *machine_named("cortex-m4").flags,
    ]
    build = [COMPILER, *flags, "-I", folder, *sources, start, "-o", program, "-lm"]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    board = [EMULATOR, "-M", "mps2-an386", "-nographic", "-monitor", "none", "-semihosting", "-kernel", program]
    ran = subprocess.run(board, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout
