"""The machines that generated C is tested on: this one as each of its targets, and others by emulation."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from msc.runtime.toolchain import Toolchain
from msc.targets.catalogue import machine_named
from msc.targets.detection import detect_cpu, detect_machine
from msc.targets.machine import Machine


@dataclass(frozen=True)
class Host:
    """A CPU of msc, the C compiler that builds for it, what runs its programs here, and the packages that these are in.

    Without an emulator, programs run as they are, on a machine of the architecture `native` if that is given. What is
    `portable` is built without the flags of the CPU: schedules for it, in the instructions of any other.
    """

    march: str
    compiler: str
    emulator: str = ""
    packages: str = ""
    native: str = ""
    portable: bool = False

    @property
    def target(self) -> Machine:
        return machine_named(self.march)

    @property
    def command(self) -> tuple[str, ...]:
        return tuple(shlex.split(self.emulator))

    @property
    def toolchain(self) -> Toolchain:
        return Toolchain(tuple(shlex.split(self.compiler)), self.compiler)

    def missing(self) -> str:
        """What keeps programs from being built and run here; empty if nothing does."""
        tools = [shlex.split(text)[0] for text in (self.compiler, self.emulator) if text]
        absent = [tool for tool in tools if shutil.which(tool) is None]
        if absent:
            return f"{' and '.join(absent)} not found: apt-get install {self.packages}"
        if self.emulator:
            return ""
        if self.native not in ("", detect_machine()):
            return f"this machine is no {self.native}"
        if not self.portable and machine_named("native").vector_bytes < self.target.vector_bytes:
            return f"this machine has no vectors of {self.target.vector_bytes} bytes"
        absent = self.target.features - detect_cpu().flags
        return f"this machine has no {', '.join(sorted(absent))}" if absent and not self.portable else ""


_ARM = "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
_RUN_ARM = "qemu-aarch64 -L /usr/aarch64-linux-gnu"
_RISCV = "gcc-riscv64-linux-gnu libc6-dev-riscv64-cross"


def _x86(march: str, compiler: str) -> Host:
    return Host(march, compiler, packages=compiler, native="x86_64")


MACHINES: Mapping[str, Host] = {
    "avx512": _x86("x86-64-v4", "gcc"),
    "avx512 clang": _x86("x86-64-v4", "clang"),
    "avx2": _x86("x86-64-v3", "gcc"),
    "avx2 clang": _x86("x86-64-v3", "clang"),
    "generic": Host("generic", "gcc", packages="gcc"),
    "generic clang": Host("generic", "clang", packages="clang"),
    "neon": Host("neon", "aarch64-linux-gnu-gcc", _RUN_ARM, f"{_ARM} qemu-user"),
    "neon clang": Host("neon", "clang --target=aarch64-linux-gnu", _RUN_ARM, f"clang {_ARM} qemu-user"),
    "neon schedules": Host("neon", "gcc", packages="gcc", portable=True),
    "scalar": Host("generic", "riscv64-linux-gnu-gcc", "qemu-riscv64 -L /usr/riscv64-linux-gnu", f"{_RISCV} qemu-user"),
}
"""By name: `scalar` is a machine without vector instructions, RV64GC; `neon schedules` needs no other machine."""
