"""Checks of the suites on a machine, and of the errors of its vector maths."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msc.codegen.c.vector_math import error_bound
from msc.runtime.flags import BUILD_FLAGS
from tests.conformance.running import reason
from tests.exhaustive_vector_math import Build, measure
from tests.switched.trying import Check
from tests.targets.elsewhere import compiled
from tests.targets.machines import MACHINES, Host

MATHS = "vector maths"
STEP = 4093
"""From one argument of a vector function to the next: a million of all."""


@dataclass(frozen=True)
class Outcome:
    """What came of a check on a machine: why it failed, or nothing."""

    machine: str
    suite: str
    name: str
    reason: str


def tried(machine: str, suite: str, check: Check, flags: Sequence[str], seconds: int) -> Outcome:
    """Do a check on a machine, with `flags` for the C compiler after msc's own."""
    with tempfile.TemporaryDirectory(prefix="msc-targets-", ignore_cleanup_errors=True) as folder:
        compile_ = partial(compiled, machine=MACHINES[machine], flags=flags, folder=Path(folder))
        return Outcome(machine, suite, check.name, reason(lambda: check.run(compile_), seconds))


def measured(machine: str, function: str, flags: Sequence[str], seconds: int) -> Outcome:
    """Whether a vector function keeps its stated bound on a machine."""
    return Outcome(machine, MATHS, function, reason(lambda: _measure(MACHINES[machine], function, flags), seconds))


def _measure(machine: Host, function: str, flags: Sequence[str]) -> None:
    target = machine.target
    march = () if machine.portable else target.flags
    build = Build(machine.toolchain.command, (*BUILD_FLAGS, *march, *flags), target.lanes(4), machine.command)
    with tempfile.TemporaryDirectory(prefix="msc-targets-") as folder:
        worst, where = measure(function, STEP, build, Path(folder))
    assert worst <= error_bound(function, "f32").ulp, f"{worst} ULP at {where}"
