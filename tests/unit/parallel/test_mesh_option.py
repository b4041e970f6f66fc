"""`--mesh`: C programs of many ranks, with the usual layouts where nothing is marked."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from msc.dialects.ms.collectives import CollectiveOp
from msc.driver.artifacts.emission import emit
from msc.driver.artifacts.forms import Output
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions, Reporting
from msc.support.diagnostics import MscError
from tests.unit.parallel.programs import mpirun, needs_mpi

SAMPLES = Path(__file__).parents[3] / "samples"


def collectives(model: str, mesh: str) -> Counter[str]:
    compilation = compile_model(str(SAMPLES / model / f"{model}.mir"), CompileOptions(mesh=mesh), stop_after="opt")
    found = (op.name for op in compilation.module.walk() if isinstance(op, CollectiveOp))
    return Counter(name.removeprefix("ms.") for name in found if name != "ms.all_slice")


def test_products_are_cut_by_columns_and_rows_in_turn() -> None:
    """Columns, rows with a sum, columns; then a softmax over a cut axis and the whole result."""
    assert collectives("mlp", "tp=2") == {"all_reduce": 3, "all_gather": 1}


def test_one_device_is_no_mesh() -> None:
    assert collectives("mlp", "") == {}
    assert collectives("mlp", "dp=1,tp=1") == {}


def test_mesh_that_is_none() -> None:
    with pytest.raises(MscError, match="MSC1100"):
        collectives("mlp", "dp:2")


@needs_mpi
def test_bundle_runs_without_python(tmp_path: Path) -> None:
    folder = tmp_path / "lenet5.bundle"
    emit(str(SAMPLES / "lenet5" / "lenet5.mir"), Output("bundle", folder), CompileOptions(mesh="tp=2"), Reporting())
    subprocess.run(["make", "-s", "CFLAGS=-std=c11 -O1"], cwd=folder, check=True, capture_output=True)
    ran = mpirun(2, ["./selftest"], folder)
    assert ran.returncode == 0, ran.stdout
    assert mpirun(1, ["./selftest"], folder).returncode != 0
