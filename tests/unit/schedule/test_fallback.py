"""A strategy that chooses an illegal schedule: an error in tests, elsewhere a slow kernel and a warning."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from msc.driver.options import CompileOptions
from msc.driver.reports.explanations import explain_model, explanation_text
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Block, Loop
from msc.schedule import schedule_kernels
from msc.schedule.strategy import Decision
from msc.support.diagnostics import MscError

ROOT = Path(__file__).resolve().parents[3]

MODEL = """func.func @main(%x: tensor<2x64xf32>) -> tensor<2xf32> {
  %y = ms.reduce_sum %x {axis = 1}
  func.return %y : tensor<2xf32>
}
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a sum, whose strategy runs the additions after what uses them."""
    choose = schedule_kernels.decide

    def backwards(model: KernelModel, *arguments: Sequence[object], **options: bool) -> Decision:
        decision = choose(model, *arguments, **options)  # pyright: ignore[reportArgumentType]
        (rows,) = decision.tree.body.nodes
        assert isinstance(rows, Loop)
        backwards = replace(rows, body=replace(rows.body, nodes=rows.body.nodes[::-1]))
        decision.tree = replace(decision.tree, body=Block((backwards,)))
        return decision

    monkeypatch.setattr(schedule_kernels, "decide", backwards)
    (tmp_path / "sum.mir").write_text(MODEL)
    return str(tmp_path / "sum.mir")


def test_it_fails_in_tests(model: str) -> None:
    with pytest.raises(MscError, match="is not legal") as raised:
        explain_model(model, CompileOptions())
    assert raised.value.diagnostics[0].code == "MSC0900"


def test_explain_tells_of_it(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(schedule_kernels.STRICT)
    with pytest.warns(RuntimeWarning, match="the schedule chosen for ms.reduce_sum .* is not legal: line [1-9]"):
        (kernel,) = explain_model(model, CompileOptions())
    assert not any("vector" in line for line in kernel.schedule)
    assert "that was not legal: a plain schedule is used" in explanation_text((kernel,))


def test_all_tests_are_strict() -> None:
    """Those of `python -m tests.NAME` too, which pytest's conftest files say nothing to."""
    environment = {name: value for name, value in os.environ.items() if name != schedule_kernels.STRICT}
    code = f"import os, tests.time_limit; raise SystemExit('{schedule_kernels.STRICT}' not in os.environ)"
    assert subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, check=False).returncode == 0
