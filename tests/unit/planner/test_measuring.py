"""A cluster is measured by the ranks of an MPI program, which may be one."""

import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from msc.driver.cli import command
from msc.planner.cluster import cluster_named


class Ranks:
    """Four ranks of one host, all in this process: collectives give each the data of this one."""

    def __init__(self, size: int) -> None:
        self.size = size

    def Get_size(self) -> int:
        return self.size

    def Get_rank(self) -> int:
        return 0

    def Split_type(self, kind: int) -> "Ranks":
        assert kind == 5
        return self

    def Split(self, colour: int, key: int) -> "Ranks":
        assert (colour, key) == (0, 0)
        return Ranks(1)

    def Barrier(self) -> None: ...

    def Bcast(self, data: Any, root: int) -> None: ...

    def Allreduce(self, data: Any, out: Any) -> None:
        out[:] = data

    def bcast(self, value: Any, root: int) -> Any:
        return value

    def allreduce(self, value: Any) -> Any:
        return value

    def allgather(self, value: Any) -> list[Any]:
        return [value] * self.size


class Library:
    COMM_TYPE_SHARED = 5
    COMM_WORLD = Ranks(4)


def test_ranks_of_one_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msc.planner.measuring.library", Library)
    path = tmp_path / "mine.toml"
    for _ in range(2):  # what it wrote itself is replaced
        done = CliRunner().invoke(command, ["parallel", "measure", "-o", str(path)])
        assert done.exit_code == 0, done.output
    cluster = cluster_named(str(path))
    assert [(link.name, link.size) for link in cluster.links] == [("host", 4)]
    assert cluster.peaks.f32 > 0
    assert cluster.links[0].bandwidth > 0


def test_without_mpi_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)
    done = CliRunner().invoke(command, ["parallel", "measure", "-o", str(tmp_path / "c.toml")])
    assert "MSC1126" in str(done.exception)
