"""The machine is measured once, and trouble with the measuring programs is reported."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from msc.runtime import machine
from msc.runtime.machine import Roofline, machine_from_json, measured_machine
from msc.support.diagnostics import MscError


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_measured_machine_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    measurements = list[int]()

    def measured(threads: int) -> Roofline:
        measurements.append(threads)
        return Roofline("a CPU", 4, 1e9, 2e9, threads)

    monkeypatch.setattr(machine, "probe", measured)
    assert measured_machine(2) == measured_machine(2) == Roofline("a CPU", 4, 1e9, 2e9, 2)
    assert measured_machine(1).threads == 1
    assert measurements == [2, 1]


def test_bandwidth_is_that_of_the_bytes_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "WORKING_SETS", (1 << 16, 1 << 20))
    found = machine.probe(2)
    (small, fast), (large, slow) = found.bandwidths
    assert (small, large) == (2 << 16, 2 << 20)
    assert found.bandwidth(1) == found.bandwidth(small) == fast
    assert found.bandwidth(small + 1) == found.bandwidth(large + 1) == found.bytes_per_second == slow
    assert machine_from_json(json.loads(json.dumps(asdict(found)))) == found


def test_a_compiler_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "a compiler" && exit 0\necho "no" >&2; exit 1\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(MscError) as raised:
        measured_machine()
    assert [d.code for d in raised.value.diagnostics] == ["MSC0508"]


@pytest.mark.parametrize("data", [None, [], {"cpu": "x"}])
def test_other_json_is_no_machine(data: object) -> None:
    with pytest.raises(ValueError, match="not a machine"):
        machine_from_json(data)
