"""Schedules that several processes decide are those of one process."""

from __future__ import annotations

import os

import pytest

from msc.driver.compile import compile_model, stage_text
from msc.driver.options import CompileOptions
from msc.support import forked

LENET = "samples/lenet5/lenet5.mir"


def loops_of_lenet() -> str:
    return stage_text(compile_model(LENET, CompileOptions(march="x86-64-v3"), "loop"))


def test_processes_leave_the_same_module(monkeypatch: pytest.MonkeyPatch) -> None:
    forks, fork = list[int](), os.fork
    monkeypatch.setattr(forked, "_processors", lambda: 1)
    alone = loops_of_lenet()
    monkeypatch.setattr(forked, "_processors", lambda: 3)
    monkeypatch.setattr(forked, "_JOBS", 1)
    monkeypatch.setattr(forked, "_may_fork", lambda: True)

    def counted() -> int:
        process = fork()
        forks.append(process)
        return process

    monkeypatch.setattr(os, "fork", counted)
    assert loops_of_lenet() == alone
    assert len(forks) == 2
