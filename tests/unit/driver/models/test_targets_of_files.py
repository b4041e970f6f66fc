"""What a stage file is compiled for: what it says, unless the options say otherwise, of which a note tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions

SAMPLE = Path(__file__).parents[4] / "samples" / "matmul" / "two_levels.gk.mir"


def noted(path: Path, options: CompileOptions, capsys: pytest.CaptureFixture[str]) -> str:
    compile_model(str(path), options, "loop")
    return capsys.readouterr().err


def test_another_machine_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    assert noted(SAMPLE, CompileOptions(), capsys) == ""
    assert "was made for cpu x86-64-v3" in noted(SAMPLE, CompileOptions(march="x86-64-v4"), capsys)


def test_a_person_need_not_describe_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "native.gk.mir"
    path.write_text(SAMPLE.read_text("utf-8").replace("x86-64-v3", "native"), "utf-8")
    assert noted(path, CompileOptions(), capsys) == ""
