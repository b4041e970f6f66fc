"""`python -m tests.schedules` shows which picks changed since they were recorded; this is about what it shows."""

from __future__ import annotations

from tests.schedules.records import MACHINES, difference, layers


def test_a_changed_pick_is_shown_with_its_layer() -> None:
    kept = MACHINES[0].path.read_text(encoding="utf-8")
    name = next(name for name in layers() if name.startswith("exp"))
    before, heading, after = kept.partition(f"{name}:\n")
    changes = difference(MACHINES[0], before + heading + after.replace(" vector", "", 1)).splitlines()
    assert next(line for line in changes if line.startswith(("-  ", "+  "))).endswith("i1 vector")
    assert f" {name}:" in changes


def test_every_layer_has_kernels_in_every_record() -> None:
    for machine in MACHINES:
        lines = machine.path.read_text(encoding="utf-8").splitlines()
        headings = [k for k, line in enumerate(lines) if not line.startswith(" ")]
        assert [lines[k] for k in headings] == [f"{name}:" for name in layers()]
        assert all(lines[k + 1].startswith("  ") for k in headings)
