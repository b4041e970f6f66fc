"""Looking at an artifact reads it, and runs nothing of it."""

from __future__ import annotations

import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest

from msc.driver.options import CompileOptions
from msc.driver.reports.inspection import inspect_file
from msc.runtime.artifact import load, signature_of
from msc.runtime.build import build
from msc.runtime.program import CProgram
from msc.runtime.seal import append_seal
from msc.support.diagnostics import MscError
from tests.unit.runtime.test_loading import Weights

CONSTRUCTOR = (
    '#include <stdio.h>\n__attribute__((constructor)) static void run(void) {{ fclose(fopen("{mark}", "w")); }}\n'
)


def foreign(folder: Path, signature: str) -> tuple[Path, Path]:
    """A library with the seal of msc and a constructor, and the file that its constructor makes."""
    path, mark, source = folder / "foreign.so", folder / "ran", folder / "foreign.c"
    source.write_text(CONSTRUCTOR.format(mark=mark))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, source], check=True)
    append_seal(path, signature)
    return path, mark


def test_nothing_of_an_artifact_runs(program: CProgram, weights: Weights, tmp_path: Path) -> None:
    path, mark = foreign(tmp_path, program.signature.to_json())
    report = inspect_file(str(path), CompileOptions())
    assert report.kind == "compiled model"
    assert report.inputs
    assert not mark.exists()
    with pytest.raises(MscError):
        load(path)
    assert mark.exists(), "this library runs where it is loaded"


def test_the_report_is_that_of_the_model(program: CProgram, weights: Weights, tmp_path: Path) -> None:
    path = tmp_path / "a.so"
    build(program, weights, "so", path)
    assert asdict(signature_of(path)) == asdict(load(path).signature)


@pytest.mark.parametrize("cut", [0, 1, 100])
def test_damaged_artifacts_are_refused(cut: int, program: CProgram, tmp_path: Path) -> None:
    path, mark = foreign(tmp_path, program.signature.to_json())
    data = bytearray(path.read_bytes())
    if cut:
        del data[-cut:]
    else:
        data[200] ^= 1
    path.write_bytes(data)
    with pytest.raises(MscError, match="MSC0504"):
        inspect_file(str(path), CompileOptions())
    assert not mark.exists()
