"""Kills a run at random moments until it is through, and compares it with one that nobody killed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msc
from tests.killed_runs.program import KINDS

__all__ = ["KINDS", "Whole", "check", "whole_run"]

STEP = 0.002
"""Seconds between looks whether a run has begun."""


@dataclass(frozen=True)
class Whole:
    """A run that ended by itself: the rows of each step, the bytes of its last checkpoint, and how long it took."""

    order: dict[str, str]
    state: dict[str, bytes]
    seconds: float


def whole_run(kind: str, folder: Path) -> Whole:
    """Make a run. Raises CalledProcessError where it fails."""
    folder.mkdir()
    process = _started(kind, folder)
    _wait_for_a_step(process, folder, 0)
    start = time.perf_counter()
    _finish(process)
    return Whole(dict(_lines(folder)), _last_state(folder), time.perf_counter() - start)


def check(kind: str, folder: Path, whole: Whole, kills: int, chance: random.Random) -> int:
    """Kill a run up to `kills` times, then let it end: how often it was killed.

    Raises AssertionError where it took other rows or ends in other bits than the whole run.
    """
    folder.mkdir()
    killed = 0
    for _ in range(kills):
        process = _started(kind, folder)
        _wait_for_a_step(process, folder, len(_lines(folder)))
        time.sleep(chance.uniform(0, whole.seconds / 2))
        process.kill()
        killed += process.wait() < 0
    _finish(_started(kind, folder))
    for step, rows in _lines(folder):
        assert whole.order[step] == rows, f"{kind}: step {step} takes rows {rows}, not {whole.order[step]}"
    assert _lines(folder)[-1][0] == [*whole.order][-1], f"{kind}: it ends at another step"
    state = _last_state(folder)
    assert state.keys() == whole.state.keys()
    other = [name for name, value in state.items() if value != whole.state[name]]
    assert not other, f"{kind}: {', '.join(other)} have other bits"
    return killed


def _started(kind: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.killed_runs.program", kind, str(folder)]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def _wait_for_a_step(process: subprocess.Popen[bytes], folder: Path, steps: int) -> None:
    """Until the run took a step more than `steps`, or ended."""
    while process.poll() is None and len(_lines(folder)) <= steps:
        time.sleep(STEP)


def _finish(process: subprocess.Popen[bytes]) -> None:
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()


def _lines(folder: Path) -> list[tuple[str, str]]:
    """The steps with their rows, in the order in which they were taken."""
    path = folder / "order"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [(step, rows) for step, _, rows in (line.partition(": ") for line in lines)]


def _last_state(folder: Path) -> dict[str, bytes]:
    """Every entry of the last checkpoint."""
    files = {int(msc.load_checkpoint(path)["step_num"]): path for path in (folder / "saved").glob("*.ckpt")}
    return {name: value.asnumpy().tobytes() for name, value in msc.load_checkpoint(files[max(files)]).items()}
