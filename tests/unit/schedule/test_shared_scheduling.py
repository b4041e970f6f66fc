"""Schedules that several processes decide are those of one process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from msc.driver.compile import compile_model, stage_text
from msc.driver.options import CompileOptions
from msc.schedule import schedule_kernels
from msc.support import forked

LENET = str(Path(__file__).resolve().parents[3] / "samples" / "lenet5" / "lenet5.mir")


def loops_of_lenet(threads: int) -> str:
    return stage_text(compile_model(LENET, CompileOptions(march="x86-64-v3", threads=threads), "loop"))


def last_decisions(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[int, forked.Lines]]:
    """`results` after which no decision can be made."""

    def results(
        function: Callable[..., forked.Lines], jobs: Sequence[object], among: Iterable[int]
    ) -> dict[int, forked.Lines]:
        found = forked.results(function, jobs, among)
        monkeypatch.setattr(schedule_kernels, "decide", None)
        return found

    return results


@pytest.mark.parametrize("threads", [1, 2])
def test_processes_leave_the_same_module(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    forks, fork = list[int](), os.fork
    monkeypatch.setattr(forked, "_processors", lambda: 1)
    alone = loops_of_lenet(threads)
    monkeypatch.setattr(schedule_kernels, "results", last_decisions(monkeypatch))
    monkeypatch.setattr(forked, "_processors", lambda: 3)
    monkeypatch.setattr(forked, "_JOBS", 1)
    monkeypatch.setattr(forked, "_may_fork", lambda: True)

    def counted() -> int:
        process = fork()
        forks.append(process)
        return process

    monkeypatch.setattr(os, "fork", counted)
    assert loops_of_lenet(threads) == alone
    passes = 2 if threads == 1 else 1  # compute-at-consumers compares chains for one thread
    assert len(forks) == 2 * passes
