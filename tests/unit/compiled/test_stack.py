"""Local arrays on the stack: as many bytes as a model's header says, and for those that are too large the workspace."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from msc.driver.compile import compile_model, generate_c
from msc.driver.options import CompileOptions
from msc.runtime.flags import BUILD_FLAGS
from msc.runtime.program import CProgram
from msc.targets.catalogue import machine_named

PRODUCT = """builtin.module @product {{
  func.func @main(%x: tensor<256x{k}xf32>, %y: tensor<{k}x{n}xf32>) -> tensor<256x{n}xf32> {{
    %0 = ms.matmul %x, %y
    func.return %0 : tensor<256x{n}xf32>
  }}
}}
"""
STACK = machine_named("x86-64-v4").stack
BESIDE = 8192
"""Bytes of spilled registers, saved ones and alignment in a frame, and of what calls it."""


def program(folder: Path, k: int, n: int, threads: int = 1) -> CProgram:
    path = folder / "net.mir"
    path.write_text(PRODUCT.format(k=k, n=n), encoding="utf-8")
    return generate_c(compile_model(str(path), CompileOptions(march="x86-64-v4", threads=threads)))


def frames(made: CProgram, folder: Path) -> list[int]:
    """The bytes of stack of each function, as GCC reports them."""
    name = made.signature.name
    (folder / f"{name}.c").write_text(made.source, encoding="utf-8")
    (folder / f"{name}.h").write_text(made.header, encoding="utf-8")
    flags = [*BUILD_FLAGS, *made.march, "-fstack-usage", "-c", f"{name}.c", "-o", f"{name}.o"]
    subprocess.run(["gcc", *flags], cwd=folder, check=True, capture_output=True)
    lines = (folder / f"{name}.su").read_text(encoding="utf-8").splitlines()
    return [int(line.split("\t")[1]) for line in lines]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [1024, 1040])
def test_functions_take_what_the_header_says(tmp_path: Path, n: int, threads: int) -> None:
    made = program(tmp_path, 1024, n, threads)
    stack = made.signature.stack_bytes
    assert made.signature.workspace_bytes == 0
    assert 1024 * 64 * 4 <= stack <= STACK
    assert f"#define PRODUCT_STACK_BYTES {stack}\n" in made.header
    assert re.search(rf"stack: {stack} bytes at most \*/\n", made.source)
    assert stack - BESIDE < max(frames(made, tmp_path)) < stack + BESIDE


def test_tiles_in_registers_have_room_beside_what_fills_the_stack(tmp_path: Path) -> None:
    """Blocks of a long reduction copy tiles of sums: the sums and a panel of 256 x 64 would fill the stack alone."""
    for n in range(320, 464, 16):
        assert program(tmp_path, 8192, n).signature.stack_bytes <= STACK


def test_what_no_stack_has_room_for_lies_in_the_workspace(tmp_path: Path) -> None:
    made = program(tmp_path, 8192, 512)
    assert made.signature.stack_bytes < STACK
    assert made.signature.workspace_bytes > STACK
