"""Building: compilers that are missing or broken, weights, programs, bundles."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import which

import numpy as np
import pytest

from msc.driver.reports.benchmark import measure, summary
from msc.runtime.artifact import load
from msc.runtime.build import BuildOptions, build
from msc.runtime.bundle import Golden, write_bundle
from msc.runtime.flags import GCC_FLAGS, WARNING_FLAGS
from msc.runtime.program import CProgram, WeightSlot
from msc.runtime.toolchain import find_toolchain
from msc.runtime.weights import fill_room, write_weights
from msc.support.diagnostics import MscError
from tests.unit.compilers import COMPILERS

Weights = dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]]
X = np.arange(6, dtype=np.float32).reshape(2, 3)
N = np.array([10], np.int32)
Y = X * np.array([1, 2, 3], np.float32) + np.float32(10)
GOLDEN = Golden([X, N], [Y, np.array(Y.sum(), np.float64)], [(1e-5, 1e-4)] * 2)


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, program: CProgram, weights: Weights, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(MscError, match=r"MSC0502(.|\n)*help: install one"):
        build(program, weights, "so", tmp_path / "x.so")
    monkeypatch.setenv("CC", "no-such-compiler -m32")
    with pytest.raises(MscError, match=r"MSC0502.*no-such-compiler"):
        find_toolchain()


@pytest.mark.parametrize("command", ["gcc '", 'gcc "', "nowhere -x", "'"])
def test_a_compiler_that_is_no_command(
    monkeypatch: pytest.MonkeyPatch, program: CProgram, weights: Weights, tmp_path: Path, command: str
) -> None:
    monkeypatch.setenv("CC", command)
    with pytest.raises(MscError, match=r"MSC0502.*which does not run"):
        build(program, weights, "so", tmp_path / "x.so")


@pytest.mark.parametrize("behaviour", ["exit 3", "exit 0", "kill -SEGV $$", "head -c 1000000 /dev/zero >&2; exit 1"])
def test_a_broken_compiler(
    monkeypatch: pytest.MonkeyPatch, program: CProgram, weights: Weights, tmp_path: Path, behaviour: str
) -> None:
    """Whatever it does, the outcome is MSC0503 and nothing at the place of the result."""
    compiler = script(tmp_path / "cc", f'[ "$1" = --version ] && echo "fake 1.0" && exit 0\n{behaviour}')
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(MscError, match=r"MSC0503(.|\n)*its files are in"):
        build(program, weights, "so", tmp_path / "x.so")
    assert not (tmp_path / "x.so").exists()


def test_what_all_libraries_have_is_compiled_once_in_a_process(
    monkeypatch: pytest.MonkeyPatch, program: CProgram, weights: Weights, tmp_path: Path
) -> None:
    compiler = find_toolchain().command[0]
    monkeypatch.setenv("CC", str(script(tmp_path / "cc", f'echo "$@" >>"{tmp_path}/runs"\nexec {compiler} "$@"')))

    def compiled(name: str, *flags: str) -> int:
        (tmp_path / "runs").write_text("")
        model = load(build(program, weights, "so", tmp_path / name, BuildOptions(flags)))
        np.testing.assert_array_equal(model(X, N)[0], Y)
        return (tmp_path / "runs").read_text().count(" artifact_calls.c")

    assert [compiled("a.so"), compiled("b.so"), compiled("c.so", "-O1"), compiled("d.so", "-O1")] == [1, 0, 1, 0]


def test_rejected_c_shows_the_compiler_s_words(
    program_of: Callable[[str], CProgram], weights: Weights, tmp_path: Path
) -> None:
    with pytest.raises(MscError, match=r"MSC0503(.|\n)*unknown_name"):
        build(program_of("int f(void) { return unknown_name; }"), weights, "so", tmp_path / "x.so")


@pytest.mark.parametrize("bad", [{}, {"w": np.zeros(2, np.float32)}])
def test_weights_that_do_not_fit(program: CProgram, tmp_path: Path, bad: Weights) -> None:
    with pytest.raises(MscError, match=r"MSC0505.*'w' needs 12 bytes"):
        build(program, bad, "so", tmp_path / "x.so")


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("linker", ["bfd", "gold", "lld"])
def test_weights_with_any_linker(
    program: CProgram, weights: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str, linker: str
) -> None:
    """Some leave room in the file, to which the weights are written; others are given the bytes."""
    if which(f"ld.{linker}") is None:
        linker = "bfd"
    monkeypatch.setenv("CC", compiler)
    options = BuildOptions(flags=(f"-fuse-ld={linker}",))
    np.testing.assert_array_equal(load(build(program, weights, "so", tmp_path / "x.so", options))(X, N)[0], Y)
    assert (fill_room(tmp_path / "x.so", program, weights)) is (linker != "gold")


def test_nowhere_to_write(program: CProgram, weights: Weights, tmp_path: Path) -> None:
    with pytest.raises(MscError, match="MSC0004"):
        build(program, weights, "so", tmp_path / "none" / "x.so")


def test_names_that_look_like_options(program: CProgram, weights: Weights, tmp_path: Path) -> None:
    np.testing.assert_array_equal(load(build(program, weights, "so", tmp_path / "-o; touch x.so"))(X, N)[0], Y)


def test_object_links_into_a_c_program(program: CProgram, weights: Weights, tmp_path: Path) -> None:
    build(program, weights, "o", tmp_path / "scale.o")
    (tmp_path / "scale.h").write_text(program.header)
    (tmp_path / "use.c").write_text(
        """#include <stdio.h>
        #include "scale.h"
        int main(void) {
            float x[6] = {0, 1, 2, 3, 4, 5}, y[6]; int32_t n = 10; double sum; _Alignas(64) char w[64];
            if (scale_run(x, &n, y, &sum, w)) return 1;
            printf("%g", sum);
        }"""
    )
    command = [*find_toolchain().command, "use.c", "scale.o", "-o", "use"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert float(subprocess.check_output([tmp_path / "use"])) == Y.sum()


def test_program_reads_npy_files(program: CProgram, weights: Weights, tmp_path: Path) -> None:
    path = build(program, weights, "exe", tmp_path / "scale", BuildOptions(flags=WARNING_FLAGS))
    assert path.stat().st_mode & stat.S_IXUSR
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "n.npy", N)
    output = subprocess.check_output([path, f"x={tmp_path}/x.npy", f"n={tmp_path}/n.npy"], text=True)
    assert output == "y f32 [2, 3]: 10 12 16 13 18 25\nsum f64 []: 94\n"


@pytest.mark.parametrize("array", [X.T, X.astype(np.float64), np.asfortranarray(X), X[:1]])
def test_program_refuses_other_arrays(
    program: CProgram, weights: Weights, tmp_path: Path, array: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
) -> None:
    path = build(program, weights, "exe", tmp_path / "scale")
    np.save(tmp_path / "x.npy", array)
    result = subprocess.run([path, f"x={tmp_path}/x.npy"], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith(f"scale: cannot use '{tmp_path}/x.npy': it")
    assert result.stderr.endswith("; the input is x f32 [2, 3]\n")


@pytest.mark.parametrize("compiler", COMPILERS)
def test_bundle_builds_and_tests_itself(program: CProgram, weights: Weights, tmp_path: Path, compiler: str) -> None:
    folder = write_bundle(program, weights, GOLDEN, tmp_path / "bundle")
    write_bundle(program, weights, GOLDEN, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert set(manifest["files"]) == {path.name for path in folder.iterdir()}
    subprocess.run(["make", f"CC={compiler} -Wall -Wextra -Werror"], cwd=folder, check=True, capture_output=True)
    assert subprocess.check_output(["./selftest"], cwd=folder, text=True) == "PASS: scale\n"
    golden = bytearray((folder / "golden.bin").read_bytes())
    golden[-14] ^= 0x40
    (folder / "golden.bin").write_bytes(golden)
    result = subprocess.run(["./selftest"], cwd=folder, text=True, capture_output=True, check=False)
    assert result.returncode == 1
    assert result.stdout.startswith("FAIL: scale: output y, element 4 is 18")


@pytest.mark.parametrize("compiler", COMPILERS)
def test_bundle_fuses_every_product_and_sum(program: CProgram, weights: Weights, tmp_path: Path, compiler: str) -> None:
    folder = write_bundle(program, weights, GOLDEN, tmp_path / "bundle")
    commands = subprocess.check_output(["make", "-n", f"CC={compiler}", "scale.o"], cwd=folder, text=True)
    assert all((flag in commands) == (compiler == "gcc") for flag in GCC_FLAGS)


def test_bundle_takes_no_other_folder(program: CProgram, weights: Weights, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(MscError, match=r"MSC0004.*holds other files"):
        write_bundle(program, weights, GOLDEN, tmp_path)
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_timing() -> None:
    timing = summary([3.0, 1.0, 2.0, 4.0])
    assert (timing.minimum, timing.median, timing.percentile(100)) == (1, 2, 4)
    assert len(measure(lambda: None, seconds=0, least=7).samples) == 7


def test_a_compiler_for_another_machine(
    monkeypatch: pytest.MonkeyPatch, program: CProgram, weights: Weights, tmp_path: Path
) -> None:
    """No report of rejected C is asked for, and no files are left."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with pytest.raises(MscError, match=r"MSC0509.*does not build for -march=z80(.|\n)*CC=aarch64-linux-gnu-gcc"):
        build(replace(program, march=("-march=z80",)), weights, "so", tmp_path / "x.so")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("order", [1, -1])
def test_a_weight_of_no_elements_stands_before_or_behind_the_one_at_its_offset(program: CProgram, order: int) -> None:
    slots = (WeightSlot("w", 0, "f32", (3,)), WeightSlot("none", 0, "f32", (0, 5)))[::order]
    arrays = {"w": np.ones(3, np.float32), "none": np.zeros((0, 5), np.float32)}
    file = io.BytesIO()
    write_weights(replace(program, weights=slots), arrays, file)
    assert file.getvalue().rstrip(b"\0") == arrays["w"].tobytes().rstrip(b"\0")


@pytest.mark.parametrize("command", ["./tools/my-cc", "my-cc", "/bin/sh tools/my-cc"])
def test_a_compiler_named_from_the_working_folder(
    monkeypatch: pytest.MonkeyPatch, program: CProgram, weights: Weights, tmp_path: Path, command: str
) -> None:
    """It runs in a temporary folder, where a relative path leads elsewhere."""
    (tmp_path / "tools").mkdir()
    script(tmp_path / "tools/my-cc", 'exec gcc "$@"')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"tools{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CC", command)
    assert build(program, weights, "o", tmp_path / "x.o").is_file()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("fatal error: error writing to /tmp/cc1.s: No space left on device", r"MSC0021.*no room(.|\n)*TMPDIR"),
        ("/usr/bin/ld: final link failed: File too large", r"MSC0021.*no room"),
        ("gcc: fatal error: Killed signal terminated program cc1", r"MSC0020.*not enough memory"),
        ("cc1: out of memory allocating 65536 bytes", r"MSC0020.*not enough memory"),
    ],
)
def test_what_the_system_refuses_the_compiler_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, program: CProgram, weights: Weights, tmp_path: Path, said: str, told: str
) -> None:
    compiler = script(tmp_path / "cc", f'case "$*" in --version) echo gcc 12;; *) echo "{said}" >&2; exit 1;; esac')
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(MscError, match=told) as error:
        build(program, weights, "o", tmp_path / "x.o")
    assert "report" not in str(error.value)
