"""MPI, where programs of several ranks need it: what its compiler adds, as `mpicc` tells."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from msc.support.diagnostics import Diagnostic, MscError

HEADER = "#include <mpi.h>"
"""What the C of a program contains whose ranks meet."""

INSTALL = "apt-get install openmpi-bin libopenmpi-dev, and pip install 'msc-compiler[parallel]' for programs in Python"

_QUESTIONS = {
    "compile": (("--showme:compile",), ("-compile_info",)),
    "link": (("--showme:link",), ("-link_info",)),
}
"""What OpenMPI and MPICH are asked."""


def needs_mpi(source: str) -> bool:
    """Whether C text is that of a program whose ranks meet."""
    return HEADER in source


def mpi_flags(stage: Literal["compile", "link"]) -> tuple[str, ...]:
    """What MPI's compiler adds to compile or to link. Raises MSC1105 if there is none."""
    return _flags(stage, os.environ.get("MPICC", "mpicc"), os.environ.get("PATH", ""))


@lru_cache(maxsize=8)
def _flags(stage: str, command: str, path: str) -> tuple[str, ...]:
    program = shutil.which(command, path=path)
    for question in _QUESTIONS[stage] if program else ():
        answer = _asked([program or "", *question])
        if answer is not None:
            return tuple(word for word in shlex.split(answer) if word.startswith(("-I", "-L", "-l", "-Wl,", "-D")))
    message = f"the program runs on several ranks, which meet through MPI, and there is no '{command}'"
    raise MscError(Diagnostic("MSC1105", message, help=INSTALL))


def _asked(command: Sequence[str]) -> str | None:
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout if found.returncode == 0 else None
