"""Temporary folders: what one process uses no other sweeps, at no moment."""

from __future__ import annotations

import multiprocessing

from msc.support.temporary import temporary_folder


def lost(count: int) -> int:
    """How many of so many folders went while they were in use."""
    gone = 0
    for _ in range(count):
        with temporary_folder("race") as folder:
            try:
                (folder / "file").write_text("x")
            except FileNotFoundError:
                gone += 1
    return gone


def test_processes_that_begin_at_once_leave_each_others_folders() -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert pool.map(lost, [400] * 3) == [0, 0, 0]
