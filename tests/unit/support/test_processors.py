"""Free processors, by what Linux tells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from msc.support import processors


@pytest.fixture(autouse=True)
def eight_of_which_four_are_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def four(_process: int) -> set[int]:
        return {0, 1, 2, 3}

    monkeypatch.setattr(processors, "LOAD", tmp_path / "loadavg")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", four, raising=False)


@pytest.mark.parametrize(
    ("load", "own", "free"),
    [
        ("0.10 0.20 0.30 1/155 4116", 0, 4),
        ("0.10 0.20 0.30 0/155 4116", 0, 4),
        ("2.10 0.20 0.30 6/155 4116", 0, 3),
        ("2.10 0.20 0.30 7/155 4116", 1, 3),
        ("9.99 9.99 9.99 60/155 4116", 0, 1),
        ("nothing", 0, 4),
    ],
)
def test_those_that_others_use_are_not_free(load: str, own: int, free: int, tmp_path: Path) -> None:
    (tmp_path / "loadavg").write_text(load, "ascii")
    assert processors.free_processors(own) == free


def test_where_the_system_does_not_tell_all_are_free() -> None:
    assert processors.free_processors() == 4
