"""The C texts that the simulator and a kernel for it are built of."""

from __future__ import annotations

from pathlib import Path

from msc.sim.headers import instructions_header, kernel_header, parameter_values, parameters_header
from msc.targets.davinci import DEFAULT_TARGET, davinci_target

_FOLDER = Path(__file__).parent / "core"

SIMULATOR_FLAGS = (
    "-std=gnu11",
    "-O3",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-Wall",
    "-Wextra",
    "-Wno-unused-const-variable",
    "-Wno-unused-variable",
)
"""gnu11: coroutines are POSIX's ucontext. No contraction: every sum rounds as the cube's."""

KERNEL_FLAGS = ("-std=c11", "-O1", "-fvisibility=hidden")
"""A kernel only issues instructions."""


CHECK_FLAGS = ("-std=c11", "-O0", "-fvisibility=hidden")
"""A kernel that runs once, to be checked, is not worth optimising."""


def simulator_sources() -> dict[str, str]:
    """File name -> text of everything that the simulator's library is compiled of."""
    files = [path for path in sorted(_FOLDER.iterdir()) if path.suffix in (".c", ".h")]
    texts = {path.name: path.read_text(encoding="utf-8") for path in files}
    names = tuple(parameter_values(davinci_target(DEFAULT_TARGET)))
    return texts | {"dv_isa.h": instructions_header(), "dv_params.h": parameters_header(names)}


def kernel_sources(text: str) -> dict[str, str]:
    """The same of a kernel's library, for its C text."""
    return {"kernel.c": text, **kernel_headers()}


def kernel_headers() -> dict[str, str]:
    """The headers that a kernel includes, by name."""
    core = (_FOLDER / "dv_core.h").read_text(encoding="utf-8")
    return {"cce.h": kernel_header(), "dv_core.h": core}


def launch_header() -> str:
    """`dv_launch.h`: what a compiled model calls."""
    return (_FOLDER / "dv_launch.h").read_text(encoding="utf-8")
