"""docs/schedules.md: its program by moves gives the schedule of the sample."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_the_moves_give_the_schedule_of_the_sample(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "schedules.md").read_text("utf-8"), re.DOTALL)
    exec(program, {})
    sample = (ROOT / "samples" / "matmul" / "two_levels.gk.mir").read_text("utf-8")
    (schedule,) = re.findall(r"gk\.schedule<\[(.*?)\]>", sample, re.DOTALL)
    assert capsys.readouterr().out.splitlines() == re.findall(r'"(.*?)"', schedule)
