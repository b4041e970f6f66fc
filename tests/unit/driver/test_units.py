"""A model compiled as several files is the model compiled as one: same bits, same symbols."""

from __future__ import annotations

import subprocess
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from msc.driver.compile import Compilation, compile_model, generate_c
from msc.driver.options import CompileOptions
from msc.runtime.artifact import load
from msc.runtime.build import BuildOptions, Kind, build
from msc.runtime.flags import WARNING_FLAGS
from tests.unit.driver.test_scaling import write_model


@pytest.fixture(autouse=True)
def _short_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msc.runtime.units._UNIT_BYTES", 1000)


def built(compilation: Compilation, kind: Kind, processors: int, folder: Path) -> Path:
    """The C, clean of warnings; with several processors in several files."""
    program = generate_c(compilation)
    assert program.split is not None
    assert program.split.count(4) > 1
    options = BuildOptions(flags=WARNING_FLAGS, processors=processors)
    return build(program, compilation.parameters(), kind, folder / f"{processors}.{kind}", options)


def symbols(path: Path, *flags: str) -> str:
    """Those that others see, without their addresses."""
    text = subprocess.check_output(["nm", "--defined-only", "--format=posix", *flags, path], text=True)
    return "\n".join(" ".join(line.split()[:2]) for line in text.splitlines())


@pytest.mark.parametrize(("threads", "export_kernels"), [(1, False), (2, False), (1, True)])
def test_several_files_are_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, export_kernels: bool
) -> None:
    monkeypatch.setattr("msc.schedule.threads.Surroundings.cost", Mock(return_value=float("-inf")))
    options = CompileOptions(threads=threads, export_kernels=export_kernels)
    compilation = compile_model(str(write_model(tmp_path, "convolution", 2)), options)
    assert ("msc_share" in generate_c(compilation).source) is (threads == 2)
    one, several = (built(compilation, "so", processors, tmp_path) for processors in (1, 4))
    assert symbols(one, "--dynamic") == symbols(several, "--dynamic")
    x = np.random.default_rng(0).standard_normal((1, 16, 8, 8)).astype(np.float32)
    np.testing.assert_array_equal(load(one)(x)[0], load(several)(x)[0], strict=True)


def test_an_object_shows_no_kernels(tmp_path: Path) -> None:
    """It is compiled as one file: kernels of several would be names in the program that it is linked into."""
    compilation = compile_model(str(write_model(tmp_path, "convolution", 2)), CompileOptions())
    one, several = (symbols(built(compilation, "o", processors, tmp_path), "-g") for processors in (1, 4))
    assert one == several
    assert "conv2d" not in several
