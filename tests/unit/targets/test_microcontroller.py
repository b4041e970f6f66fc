"""C for a Cortex-M4 runs on its emulator, and machines say how much RAM and flash they have."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import msc
from msc.codegen.c.emit import check_memory
from msc.driver.cli import command
from msc.runtime import firmware
from msc.runtime.program import Signature
from msc.support.diagnostics import MscError
from msc.targets.catalogue import machine_named
from tests.unit.targets import bare_metal

MODEL = """
func.func @main(%x: tensor<1x28xf32>, %w: tensor<28x10xf32>, %b: tensor<10xf32>) -> tensor<1x10xf32> {
  %y = ms.matmul %x, %w
  %z = ms.add %y, %b
  %r = ms.relu %z
  func.return %r : tensor<1x10xf32>
}
"""


def bundle(folder: Path, march: str) -> Path:
    (folder / "net.mir").write_text(MODEL, encoding="utf-8")
    words = ["compile", str(folder / "net.mir"), "--march", march, "-o", str(folder / "net.bundle"), "--name", "net"]
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 0, result.output
    return folder / "net.bundle"


@pytest.mark.parametrize("machine", ["cortex-m0plus", "cortex-m4", "cortex-m55", "rv32imc"])
def test_a_bundle_tests_itself_on_a_board(tmp_path: Path, machine: str) -> None:
    board = machine_named(machine).boards[0]
    bare_metal.tools_or_skip(board.compiler, board.emulator)
    folder = bundle(tmp_path, machine)
    text = (folder / "net.c").read_text(encoding="utf-8")
    assert "int64_t" not in text
    assert ("vector_size" in text) == (machine == "cortex-m55")
    printed = bare_metal.made(folder, "run")
    assert "PASS: net" in printed
    kernels = "-DSELFTEST_KERNELS -DNET_HOOK=selftest_hook -O2"
    bare_metal.made(folder, "clean")
    assert "matmul" in bare_metal.made(folder, "run", f"CFLAGS={kernels} -std=c99")
    golden = (folder / "golden.h").read_text(encoding="utf-8")
    (folder / "golden.h").write_text(
        golden.replace("golden_output0[10] = {\n    ", "golden_output0[10] = {\n    9.0f + ")
    )
    bare_metal.made(folder, "clean")
    assert "FAIL: net: output" in bare_metal.made(folder, "run", status=2)


def test_a_bundle_is_c99_and_has_a_class_for_cpp(tmp_path: Path) -> None:
    folder = bundle(tmp_path, "cortex-m4")
    warnings = [*firmware.WARNINGS, "-Wno-psabi", "-fsyntax-only", "-I", str(folder)]
    for compiler in ("gcc", "clang"):
        if shutil.which(compiler):
            command_ = [compiler, "-std=c99", *warnings, folder / "net.c"]
            subprocess.run(command_, check=True)
    if shutil.which("g++"):
        (tmp_path / "use.cpp").write_text(
            '#include "net.hpp"\nfloat x[28], w[280], b[10], y[10];\nNet net;\nint main() { return net(x, w, b, y); }\n'
        )
        subprocess.run(["g++", *warnings, tmp_path / "use.cpp"], check=True)
    undefined = {"malloc", "printf", "free"}
    assert not undefined & set((folder / "net.c").read_text(encoding="utf-8").replace("(", " ").split())


def test_a_machine_has_so_much_memory(tmp_path: Path) -> None:
    (tmp_path / "chip.toml").write_text('base = "cortex-m4"\nram = 16\n', encoding="utf-8")
    with pytest.raises(MscError, match=r"MSC0530.*workspace and stack take"):
        msc.compile(MODEL, march=str(tmp_path / "chip.toml"))
    signature, chip = sample_signature(weights_bytes=2000), replace(machine_named("cortex-m4"), flash=1000)
    with pytest.raises(MscError, match=r"MSC0530.*weights take 2000 bytes of flash, of which cortex-m4 has 1000"):
        check_memory(chip, signature)
    check_memory(replace(chip, flash=2000), signature)


def sample_signature(weights_bytes: int) -> Signature:
    return Signature(
        name="net", inputs=(), outputs=(), workspace_bytes=0, weights_bytes=weights_bytes, msc_version="", target=""
    )


@pytest.mark.parametrize(("bits", "registers"), [(8, 1), (32, 4), (64, 6)])
def test_narrow_machines_are_machines(tmp_path: Path, bits: int, registers: int) -> None:
    """With one lane, and with two; results are those of NumPy."""
    (tmp_path / "small.toml").write_text(
        f'base = "generic"\n[vectors]\nbits = {bits}\nregisters = {registers}\n', encoding="utf-8"
    )
    net = msc.compile(MODEL, march=str(tmp_path / "small.toml"))
    rng = np.random.default_rng(1)
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 28), (28, 10), (10,)))
    np.testing.assert_allclose(np.asarray(net(x, w, b)), np.maximum(x @ w + b, 0), rtol=1e-5, atol=1e-6)
