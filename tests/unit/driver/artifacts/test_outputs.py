"""Forms of output: bundles that test themselves, programs, objects, kept temporaries."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from xdsl.dialects.builtin import ModuleOp

import msc
from msc.backends.stage import Stage
from msc.driver import compile as compilation
from msc.driver.artifacts.emission import emit
from msc.driver.artifacts.forms import Output, choose_output
from msc.driver.options import CompileOptions, Reporting
from msc.driver.verbs.compile import command
from msc.runtime.program import CProgram
from msc.schedule.schedule_kernels import ScheduleKernels
from msc.support import forked
from msc.support.diagnostics import Diagnostic, MscError


def compile_to(*arguments: str | Path) -> None:
    result = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def test_a_bundle_builds_and_passes_its_own_test(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "small.bundle"
    compile_to(model, "-o", folder)
    subprocess.run(["make", "-s"], cwd=folder, check=True, capture_output=True)
    result = subprocess.run(["./selftest"], cwd=folder, check=True, capture_output=True, text=True)
    assert result.stdout.startswith("PASS")


def test_a_bundle_of_narrow_outputs_passes_too(tmp_path: Path) -> None:
    """Which are rounded to a unit of their own, more than an f32 may be off."""
    head = "func.func @main(%x: tensor<4x8xf16>) -> tensor<4x8xf16>"
    text = f"{head} {{\n%y = ms.softmax %x\nfunc.return %y : tensor<4x8xf16>\n}}"
    source, folder = tmp_path / "half.mir", tmp_path / "half.bundle"
    source.write_text(text)
    compile_to(source, "-o", folder)
    assert ", 0.004}}" in (folder / "selftest.c").read_text()
    subprocess.run(["make", "-s"], cwd=folder, check=True, capture_output=True)
    subprocess.run(["./selftest"], cwd=folder, check=True, capture_output=True)


def test_c_comes_with_all_that_it_needs(model: Path, tmp_path: Path) -> None:
    compile_to(model, "-o", tmp_path / "any.c", "--name", "net", "--march", "generic")
    assert {p.name for p in tmp_path.iterdir()} >= {"any.c", "net.h", "net_weights.S", "net_weights.S.bin"}
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-c"]
    subprocess.run(["cc", *flags, "any.c"], cwd=tmp_path, check=True, capture_output=True)


def test_an_input_without_elements_is_no_unused_parameter(tmp_path: Path) -> None:
    source = tmp_path / "empty.mir"
    signature = "(%x: tensor<4xf32>, %like: tensor<0xf32>) -> tensor<4xf32>"
    source.write_text(f"func.func @main{signature} {{\n%y = ms.relu %x\nfunc.return %y : tensor<4xf32>\n}}")
    compile_to(source, "-o", tmp_path / "empty.c")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-march=native", "-c"]
    subprocess.run(["cc", *flags, "empty.c"], cwd=tmp_path, check=True, capture_output=True)


_MAIN = """#include <stdio.h>
#include "any.h"
static SMALL_STATIC_WORKSPACE(workspace);
int main(void)
{
    float x[12] = {1}, y[8];
    if (small_run(x, y, workspace) != SMALL_OK)
        return 1;
    for (int k = 0; k < 8; ++k)
        printf("%.5f ", y[k]);
    return 0;
}
"""


@pytest.mark.parametrize("place", [".", "elsewhere", "/"])
@pytest.mark.parametrize("compiler", ["cc", "clang-16"])
def test_c_with_weights_builds_from_any_folder(compiler: str, place: str, model: Path, tmp_path: Path) -> None:
    if compiler != "cc" and shutil.which(compiler) is None:
        compiler = "gcc"
    out, other = tmp_path / "the output's $folder", tmp_path / "elsewhere"
    out.mkdir()
    other.mkdir()
    compile_to(model, "-o", out / "any.c", "--name", "small", "--march", "generic")
    (other / "main.c").write_text(_MAIN.replace("any.h", "small.h"))
    sources = [str(out / "any.c"), str(out / "small_weights.S"), str(other / "main.c")]
    command = [compiler, "-O1", "-I", str(out), *sources, "-lm", "-o", str(other / "program")]
    subprocess.run(command, cwd=tmp_path / place, check=True, capture_output=True)
    result = subprocess.run([str(other / "program")], check=True, capture_output=True, text=True)
    x = np.zeros((2, 6), np.float32)
    x[0, 0] = 1
    np.testing.assert_allclose(np.array(result.stdout.split(), float), msc.compile(model)(x).ravel(), atol=1e-5)


def test_temporaries_are_kept(model: Path, tmp_path: Path) -> None:
    compile_to(model, "-o", tmp_path / "m.so", "--save-temps", tmp_path / "temps")
    assert (tmp_path / "temps" / "small.c").is_file()


@pytest.mark.parametrize(
    ("out", "form"),
    [("a.c", "c"), ("a.o", "obj"), ("a.so", "so"), ("a", "exe"), ("a.opt.mir", "opt"), ("a.mir", "graph")],
)
def test_the_extension_decides(out: str, form: str, tmp_path: Path) -> None:
    assert choose_output(None, str(tmp_path / out)).form == form
    assert choose_output("bundle", str(tmp_path / out)).form == "bundle"


def test_a_failed_compilation_leaves_the_old_output(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.so"
    out.write_bytes(b"old")
    (tmp_path / "small.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
    with pytest.raises(MscError, match="MSC0302"):
        compile_to(model, "-o", out)
    assert out.read_bytes() == b"old"
    assert {p.name for p in tmp_path.iterdir()} == {"m.so", "small.mir", "small.safetensors"}


def have_processors(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many for processes of msc, whatever threads the test runner has, which verify small modules too."""
    monkeypatch.setattr(compilation, "WORTH_A_PROCESS", 0)
    monkeypatch.setattr(forked, "_processors", lambda: count)
    monkeypatch.setattr(forked, "_may_fork", lambda: True)


@pytest.mark.parametrize("processors", [1, 2])
@pytest.mark.parametrize("is_emitted", [True, False])
def test_what_is_wrong_with_the_last_stage_ends_the_build(
    is_emitted: bool, processors: int, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is verified while C is written and compiled; where no C can be made of it, it is what is said."""
    have_processors(processors, monkeypatch)

    def wrong(module: ModuleOp, stage: Stage) -> tuple[Diagnostic, ...]:
        return (Diagnostic("MSC0209", "'loop.wrong' is not an operation"),) if stage.name == "loop" else ()

    def fails(*_: object) -> CProgram:
        raise AssertionError("no C of this")

    out = tmp_path / "m.so"
    out.write_bytes(b"old")
    monkeypatch.setattr("msc.driver.compile.stage_diagnostics", wrong)
    if not is_emitted:
        monkeypatch.setattr("msc.codegen.c.emit_c", fails)
    with pytest.raises(MscError) as error:
        emit(str(model), Output("so", out), CompileOptions(), Reporting(), force=True)
    assert [d.code for d in error.value.diagnostics] == ["MSC0901", "MSC0209"]
    assert out.read_bytes() == b"old"


@pytest.mark.parametrize("processors", [1, 2])
@pytest.mark.parametrize("is_made", [True, False])
def test_what_is_wrong_with_an_earlier_stage_is_said_in_place_of_what_follows(
    is_made: bool, processors: int, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is verified while the next stage is made, if another processor can; that may not succeed then."""
    have_processors(processors, monkeypatch)

    def wrong(module: ModuleOp, stage: Stage) -> tuple[Diagnostic, ...]:
        return (Diagnostic("MSC0209", "'gk.wrong' is not an operation"),) if stage.name == "gk" else ()

    def fails(*_: object) -> None:
        raise AssertionError("no schedule of this")

    monkeypatch.setattr("msc.driver.compile.stage_diagnostics", wrong)
    if not is_made:
        monkeypatch.setattr(ScheduleKernels, "apply", fails)
    with pytest.raises(MscError) as error:
        emit(str(model), Output("so", tmp_path / "m.so"), CompileOptions(), Reporting())
    assert [d.code for d in error.value.diagnostics] == ["MSC0901", "MSC0209"]
    assert not (tmp_path / "m.so").exists()


def test_what_fails_after_a_stage_that_is_in_order_is_told(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_processors(2, monkeypatch)

    def fails(*_: object) -> None:
        raise MscError(Diagnostic("MSC0408", "no schedule of this"))

    monkeypatch.setattr(ScheduleKernels, "apply", fails)
    with pytest.raises(MscError, match="MSC0408"):
        emit(str(model), Output("so", tmp_path / "m.so"), CompileOptions(), Reporting())


@pytest.mark.parametrize("processors", [1, 2])
def test_the_last_stage_is_verified_once(
    processors: int, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another process, where there can be one, and then no more in this one."""
    have_processors(processors, monkeypatch)
    here = list[str]()

    def noted(module: ModuleOp, stage: Stage) -> tuple[Diagnostic, ...]:
        here.append(stage.name)
        return ()

    monkeypatch.setattr("msc.driver.compile.stage_diagnostics", noted)
    compilation = emit(str(model), Output("so", tmp_path / "m.so"), CompileOptions(), Reporting())
    assert here.count("loop") == (1 if processors == 1 else 0)
    assert [step.name for step in compilation.steps if step.stage == "loop"].count("verify") == 1
