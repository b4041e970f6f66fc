"""C for a Cortex-M4 runs on its emulator, and machines say how much RAM and flash they have."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import msc
from msc.driver.cli import command
from msc.runtime import budgets, firmware
from msc.runtime.layouts import LAYOUTS
from msc.runtime.program import CProgram, Signature
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


DEEP = """
func.func @main(%x: tensor<9x28xf32>, %w: tensor<28x10xf32>, %v: tensor<10x30xf32>) -> tensor<9x30xf32> {
  %y = ms.matmul %x, %w
  %r = ms.relu %y
  %z = ms.matmul %r, %v
  %s = ms.softmax %z
  func.return %s : tensor<9x30xf32>
}
"""


def bundle(folder: Path, march: str, model: str = MODEL, *options: str) -> Path:
    (folder / "net.mir").write_text(model, encoding="utf-8")
    words = ["compile", str(folder / "net.mir"), "--march", march, "-o", str(folder / "net.bundle"), "--name", "net"]
    result = CliRunner().invoke(command, [*words, *options])
    if result.exception is not None:
        raise result.exception
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


SKETCH = """
#include <cstdint>
struct Port { void begin(long); template <class T> void print(T); template <class T> void println(T); } Serial;
unsigned long micros();
void delay(int);
"""


def test_layouts_hold_what_their_build_systems_take(tmp_path: Path) -> None:
    """All C of a layout builds, files that it names are there, and one layout takes the place of another."""
    bare_metal.tools_or_skip(bare_metal.COMPILER)
    board = machine_named("cortex-m4")
    for layout in LAYOUTS:
        folder = bundle(tmp_path, "cortex-m4", DEEP, "--layout", layout)
        sources = sorted(folder.rglob("*.c"))
        assert {s.name for s in sources} == {"net.c", "weight.c" if layout == "lite" else "net_weights.c"} - (
            set() if "WEIGHTS_BYTES 0" not in next(folder.rglob("net.h")).read_text() else {"weight.c", "net_weights.c"}
        )
        for source in sources:
            check = [bare_metal.COMPILER, *board.flags, "-std=c99", *firmware.WARNINGS, "-fsyntax-only", source]
            subprocess.run(check, check=True)
        for lists in folder.rglob("CMakeLists.txt"):
            text = lists.read_text(encoding="utf-8")
            assert re.findall(r'"([^"]+\.c)"', text), text
            assert all((lists.parent / name).is_file() for name in re.findall(r'"([^"]+\.c)"', text))
        assert not any("@" in file.read_text("utf-8") for file in folder.rglob("*") if file.suffix in (".txt", ".yml"))
        for sketch in folder.rglob("*.ino") if shutil.which("g++") else ():
            (tmp_path / "sketch.cpp").write_text(SKETCH + sketch.read_text(encoding="utf-8"), encoding="utf-8")
            subprocess.run(["g++", "-fsyntax-only", "-I", folder / "src", tmp_path / "sketch.cpp"], check=True)
        assert (folder / "zephyr" / "module.yml").exists() == (layout == "zephyr")
        assert all(any(path.iterdir()) for path in folder.rglob("*") if path.is_dir())
    with pytest.raises(MscError, match="MSC0532"):
        bundle(tmp_path, "cortex-m4", DEEP, "--layout", "keil")
    with pytest.raises(MscError, match="MSC0532"):
        bundle(tmp_path, "generic", DEEP, "--layout", "zephyr")
    with pytest.raises(MscError, match="MSC0534"):
        bundle(tmp_path, "cortex-m4", DEEP, "--threads", "2")


def test_micro_param_of_mindspore_lite(tmp_path: Path) -> None:
    config = tmp_path / "lite.cfg"
    config.write_text("[micro_param]\nenable_micro=true\ntarget=Cortex-M\ncodegen_mode=Inference\n", encoding="utf-8")
    (tmp_path / "in.mir").write_text(MODEL, encoding="utf-8")
    words = ["compile", str(tmp_path / "in.mir"), "-o", str(tmp_path / "out.bundle"), "--config", str(config)]
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 0, result.output
    assert {"net.c", "net.h", "weight.h", "CMakeLists.txt"} <= {f.name for f in (tmp_path / "out.bundle/src").iterdir()}
    wrong = ["target=AVR", "codegen_mode=Train", "support_parallel=2", "enable_micro=false", "speed=1"]
    for line in wrong:
        config.write_text(f"[micro_param]\n{line}\n", encoding="utf-8")
        assert "MSC0533" in str(CliRunner().invoke(command, words).exception), line
    config.write_text("[other]\n", encoding="utf-8")
    assert "MSC0533" in str(CliRunner().invoke(command, words).exception)


def test_a_machine_has_so_much_memory(tmp_path: Path) -> None:
    (tmp_path / "chip.toml").write_text('base = "cortex-m4"\nram = 16\n', encoding="utf-8")
    with pytest.raises(MscError, match=r"MSC0530.*bytes of RAM"):
        bundle(tmp_path, str(tmp_path / "chip.toml"), DEEP)


@pytest.mark.parametrize("kind", ["ram", "rom", "stack"])
def test_limits_are_exact_to_the_byte(tmp_path: Path, kind: str) -> None:
    """A program that takes what it may is compiled, and its C says so; with a byte less it is refused."""
    bare_metal.tools_or_skip(bare_metal.COMPILER)
    text = (bundle(tmp_path, "cortex-m4", DEEP) / "net.h").read_text(encoding="utf-8")
    sizes = dict(re.findall(r"#define NET_(\w+)_BYTES (\d+)", text))
    parts = {"ram": ("WORKSPACE", "STACK"), "rom": ("WEIGHTS", "CODE"), "stack": ("STACK",)}[kind]
    taken = sum(int(sizes[part]) for part in parts)
    folder = bundle(tmp_path, "cortex-m4", DEEP, f"--{kind}-limit", str(taken))
    assert f"<= {taken}" in (folder / "net.c").read_text(encoding="utf-8")
    with pytest.raises(MscError, match=rf"MSC0530.*1 more than {taken - 1}"):
        bundle(tmp_path, "cortex-m4", DEEP, f"--{kind}-limit", str(taken - 1))


def test_the_bound_of_the_stack() -> None:
    frames = {"net_run": 40, "net.c:a": 16, "net.c:b": 24}
    nodes = "".join(
        f'node: {{ title: "{n}" label: "{n}\\nnet.c:1:1\\n{s} bytes (static)" }}\n' for n, s in frames.items()
    )
    nodes += 'node: { title: "memset" label: "memset\\n<built-in>" shape : ellipse }\n'
    calls = [("net_run", "net.c:a"), ("net_run", "net.c:b"), ("net.c:a", "memset")]
    edges = "".join(f'edge: {{ sourcename: "{a}" targetname: "{b}" }}\n' for a, b in calls)
    assert budgets.stack_bound(nodes + edges, PROGRAM) == 40 + 16 + 32
    with pytest.raises(MscError, match=r"MSC0531.*calls itself"):
        budgets.stack_bound(f'{nodes}{edges}edge: {{ sourcename: "net.c:b" targetname: "net.c:b" }}', PROGRAM)
    with pytest.raises(MscError, match=r"MSC0531.*does not know"):
        budgets.stack_bound(nodes.replace("24 bytes (static)", "24 bytes (dynamic)"), PROGRAM)


RESCALED = """
func.func @main(%x: tensor<24x22xi8>, %d: tensor<24x22xi8>) -> (tensor<24x22xi8>, tensor<24x22xi32>) {{
  %m = ms.constant dense<{multipliers}> : tensor<22xi32>
  %s = ms.constant dense<{shifts}> : tensor<22xi32>
  %z = ms.constant dense<-7> : tensor<i8>
  %n = ms.constant dense<21> : tensor<i32>
  %a = ms.cast %x {{dtype = i32}}
  %b = ms.cast %d {{dtype = i32}}
  %c = ms.shift_left %a, %n
  %e = ms.add %c, %b
  %y = ms.rescale %e, %m, %s, %z {{dtype = i8, narrow = true}}
  %w = ms.rescale %e, %m, %s {{dtype = i32, narrow = true}}
  func.return %y, %w : tensor<24x22xi8>, tensor<24x22xi32>
}}
"""


@pytest.mark.parametrize("machine", ["cortex-m0plus", "cortex-m4"])
def test_narrow_factors_are_exact(tmp_path: Path, machine: str) -> None:
    """By an instruction for upper halves, and of halves; numbers are next to ties, and as large as they may be."""
    bare_metal.tools_or_skip(bare_metal.COMPILER, bare_metal.EMULATOR)
    draw = np.random.default_rng(1)
    multipliers = [1 << 30, (1 << 31) - 1, *map(int, draw.integers(1 << 30, 1 << 31, 20))]
    model = RESCALED.format(multipliers=multipliers, shifts=[-k for k in range(1, 23)])
    folder = bundle(tmp_path, machine, model)
    assert "mulhr_i32" in (folder / "net.c").read_text(encoding="utf-8")
    assert "PASS: net" in bare_metal.made(folder, "run")


PROGRAM = CProgram("", "", Signature("net", (), (), 0, 0, "", ""), (), ())


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
