"""A strategy that chooses an illegal schedule: an error in tests, elsewhere a slow kernel and a warning."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import msc
from msc.driver.cli import command
from msc.driver.options import CompileOptions
from msc.driver.reports.explanations import explain_model, explanation_text
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Block, Loop
from msc.schedule import schedule_kernels
from msc.schedule.strategy import Decision
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.notices import collected, warn

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
    with collected() as told:
        (kernel,) = explain_model(model, CompileOptions())
    assert [each.code for each in told] == ["MSC0520"]
    assert "kernel reduce_sum" in told[0].message
    assert not any("vector" in line for line in kernel.schedule)
    assert "is not legal: line " in explanation_text((kernel,))


def test_every_compilation_and_every_artifact_tells_of_it(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those from the cache, too: the next user of the model meets the same kernel."""
    monkeypatch.delenv(schedule_kernels.STRICT)
    monkeypatch.setenv("MSC_CACHE_DIR", str(Path(model).with_name("cache")))
    made = list[msc.CompiledModel]()
    for _ in range(3):
        with collected() as told:
            made.append(msc.compile(model))
        assert [each.code for each in told] == ["MSC0520"]
    for network in made:
        assert "without vectors" in network.signature.warnings[0]
    library = str(Path(model).with_suffix(".so"))
    made[-1].save(library)
    shown = CliRunner().invoke(command, ["inspect", library])
    assert "kernel reduce_sum" in shown.output
    for source, form in (("mir", "loop.mir"), ("loop.mir", "c"), ("mir", "c")):
        with collected() as told:
            emitted = CliRunner().invoke(command, ["compile", f"{model[:-3]}{source}", "-o", f"{model[:-3]}{form}"])
        assert (emitted.exit_code, len(told)) == (0, 1)


def test_a_warning_goes_to_the_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    warn(Diagnostic("MSC0520", "a kernel is slow", help="do this"))
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "warning[MSC0520]: a kernel is slow\nhelp: do this\n")


def test_msc_speaks_in_no_warnings_of_python() -> None:
    """They have no code, show lines of msc, and appear once."""
    wrong: list[str] = []
    for path in (ROOT / "msc").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
                name = ast.unparse(node.func)
                if name in ("warnings.warn", "warnings.warn_explicit", "warn_explicit"):
                    wrong.append(f"{path}:{node.lineno}")
            if isinstance(node, ast.ImportFrom) and node.module == "warnings":
                wrong.append(f"{path}:{node.lineno}")
    assert not wrong


def test_all_tests_are_strict() -> None:
    """Those of `python -m tests.NAME` too, which pytest's conftest files say nothing to."""
    environment = {name: value for name, value in os.environ.items() if name != schedule_kernels.STRICT}
    code = f"import os, tests.time_limit; raise SystemExit('{schedule_kernels.STRICT}' not in os.environ)"
    assert subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, check=False).returncode == 0
