"""MLIR itself reads what `convert-loop-to-scf` writes: `iree-opt` parses and verifies the generic form."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from msc.backends.registry import find_backend
from msc.driver.passes.opt import OptOptions, run_opt

TABLE = find_backend("cpu").table

ROOT = Path(__file__).parents[5]
PROGRAMS = sorted((ROOT / "tests" / "unit" / "codegen" / "c").glob("*.mir"))
LOOPS = ROOT / "tests" / "lit" / "lowering" / "cpu" / "upstream" / "convert-loop-to-scf.mir"
CONTROL = ROOT / "tests" / "lit" / "lowering" / "cpu" / "bufferize" / "bufferize.mir"


def test_there_are_programs() -> None:
    assert len(PROGRAMS) >= 5


@pytest.fixture(scope="module")
def mlir() -> str:
    """The MLIR tool that comes with iree-base-compiler, which the test extra installs."""
    beside = str(Path(sys.executable).parent)
    tool = shutil.which("iree-opt", path=os.pathsep.join((beside, os.environ.get("PATH", ""))))
    if tool is None:
        pytest.fail("iree-opt is missing: pip install iree-base-compiler")
    return tool


def accepted(tool: str, text: str) -> None:
    done = subprocess.run([tool, "--verify-each", "-"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]


@pytest.mark.parametrize("program", [LOOPS, *PROGRAMS], ids=lambda path: path.stem)
def test_mlir_accepts_loops(mlir: str, program: Path) -> None:
    accepted(mlir, run_opt(str(program), OptOptions("convert-loop-to-scf", generic=True)))


@pytest.mark.parametrize("sample", ["mlp", "lenet5", "attention"])
def test_mlir_accepts_compiled_models(mlir: str, sample: str) -> None:
    passes = [run.name for name in ("opt", "gk", "loop") for run in TABLE[name].passes]
    source = ROOT / "samples" / sample / f"{sample}.mir"
    options = OptOptions(
        ", ".join([*passes, "convert-loop-to-scf"]), generic=True, verify_each=False, march="x86-64-v3", threads=2
    )
    accepted(mlir, run_opt(str(source), options))


@pytest.mark.parametrize("pipeline", ["bufferize", "bufferize, plan-memory"])
def test_mlir_accepts_entry_functions(mlir: str, pipeline: str) -> None:
    options = OptOptions(f"{pipeline}, convert-loop-to-scf", generic=True, split_input_file=True)
    for part in run_opt(str(CONTROL), options).split("// -----"):
        accepted(mlir, part)


@pytest.mark.parametrize(
    "operation",
    [
        "arith.addf %f, %f : f32",
        "arith.maximumf %f, %f : f32",
        "arith.cmpf olt, %f, %f : f32",
        "arith.fptosi %f : f32 to i32",
        "arith.truncf %f : f32 to bf16",
        "math.erf %f : f32",
        "math.powf %f, %f : f32",
        "math.fma %f, %f, %f : f32",
        "math.roundeven %f : f32",
        "vector.reduction <maximumf>, %v : vector<8xf32> into f32",
        "vector.broadcast %f : f32 to vector<8xf32>",
        "math.tanh %v : vector<8xf32>",
    ],
)
def test_mlir_accepts_scalar_operations(mlir: str, tmp_path: Path, operation: str) -> None:
    source = tmp_path / "one.loop.mir"
    source.write_text(
        "builtin.module {\nfunc.func @k(%x: memref<8xf32>) attributes {loop.outputs = 1 : i64} {\n"
        "%f = loop.load %x[0] : memref<8xf32>\n%v = loop.load %x[0] : memref<8xf32>, vector<8xf32>\n"
        f"%r = {operation}\nfunc.return\n}}\n}}\n"
    )
    accepted(mlir, run_opt(str(source), OptOptions("convert-loop-to-scf", generic=True)))
