"""The C of the modules in `c/`, against the CHECK lines in them; HEADER lines are about the header."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from msc.codegen.c import COptions, emit_c
from msc.runtime.artifact import CompiledModel

FOLDER = Path(__file__).parent / "c"
FILECHECK = Path(sys.executable).parent / "filecheck"


def filecheck(path: Path, text: str, prefix: str) -> None:
    command = [str(FILECHECK), f"--check-prefix={prefix}", str(path)]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{result.stdout}{result.stderr}\n{text}"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.mir")), ids=lambda path: path.stem)
def test_text(module_of: Callable[[str], ModuleOp], path: Path) -> None:
    text = path.read_text()
    threads = re.search(r"OPTIONS: threads=(\d+)", text)
    program = emit_c(module_of(text), COptions(threads=int(threads.group(1)) if threads else 1))
    filecheck(path, program.source, "CHECK")
    if "HEADER:" in text:
        filecheck(path, program.header, "HEADER")


@pytest.mark.parametrize(
    "path", sorted(p for p in FOLDER.glob("*.mir") if p.stem != "conv2d"), ids=lambda path: path.stem
)
@pytest.mark.parametrize("march", ["generic", "x86-64-v3", "native"])
def test_compiles_without_warnings(
    module_of: Callable[[str], ModuleOp], compiled: Callable[..., CompiledModel], path: Path, march: str
) -> None:
    assert compiled(module_of(path.read_text()), march=march).signature.name == path.stem
