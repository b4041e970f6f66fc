"""A model whose names are attacks, through every emitter: they stay names, and nothing else comes of them.

Each name holds the mark `@@`, which C, assembler, make and HTML have nowhere but in text. So a mark that stands outside
of a comment or a literal came out of a name.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import save
from xdsl.dialects.builtin import StringAttr

from msc.backends.registry import find_backend
from msc.backends.simulation.kernels import parse_kernels
from msc.codegen.davinci.emit_cce import emit_cce, emit_cce_kernels
from msc.dialects.gk import KernelOp
from msc.driver.artifacts.forms import forms_of
from msc.driver.cli import command
from msc.driver.passes.registry import new_context
from msc.ir.locations import format_module
from msc.ir.reading import parse_module
from msc.support.diagnostics import MscError

MARK = "@@"
EVIL = (
    "*/ int evil; /*", "*\\ int evil;", "/* evil", "// evil\\\n", "??/\nint evil;", "\nFORGED", "\r\nFORGED",
    "\x00", '");evil("', "'", "\\", "\\n", "/../../../../../../../../tmp/evil", "../evil", "..",
    "$(touch evil)", "`touch evil`", "$$evil", "#evil", "%s%n", "{evil}", "{0}", "\x1b[31m",
    "\x1b]0;evil\x07", "[/evil]", "[bold]", ":skull:", "\u202eevil", "\u2066", "\u2028FORGED", "\x85FORGED",
    "<script>evil</script>", "]]>", "-->", "&lt;", "=1+1", "int", "main", "NULL", "restrict", "dv_min", "é",
    "-rf", "a" * 10_000,
)  # fmt: skip
NAMES = (*(f"{text}{MARK}" for text in EVIL), "x", "X", "int", "run", "msc_run", "manifest.json")
FORBIDDEN = re.compile(r"[^\x20-\x7e\n\t\u00e9\u00d7]")
"""Characters that no text of msc's holds as they are."""


def quoted(text: str) -> str:
    """A string of the IR."""
    plain = "".join(
        chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode("utf-8", "surrogatepass")
    )
    return f'"{plain}"'


def model_text(names: Sequence[str]) -> str:
    arguments = ", ".join(f"%x{k}: tensor<1x4xf32> {{ms.name = {quoted(name)}}}" for k, name in enumerate(names))
    last = len(names) - 1
    sums = "\n".join(
        f"    %s{k} = ms.add %{'x0' if k == 1 else f's{k - 1}'}, %x{k} "
        f": (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32> loc({quoted(names[k])}:1:1)"
        for k in range(1, last + 1)
    )
    return f"""builtin.module @{quoted(EVIL[0] + MARK)} attributes {{ms.weights = "w.safetensors"}} {{
  ms.parameter @{quoted(EVIL[1] + MARK)} : tensor<4x4xf32>
  func.func @main({arguments}) -> (
    tensor<1x4xf32> {{ms.name = {quoted(EVIL[0] + MARK)}}}, tensor<1x4xf32> {{ms.name = "{MARK}"}}
  ) {{
{sums}
    %w = ms.get_parameter @{quoted(EVIL[1] + MARK)} : tensor<4x4xf32>
    %y = ms.matmul %s{last}, %w : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    %z = ms.relu %y : (tensor<1x4xf32>) -> tensor<1x4xf32>
    func.return %z, %s{last} : tensor<1x4xf32>, tensor<1x4xf32>
  }}
}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("names") / "a" / "b"
    place.mkdir(parents=True)
    (place / "m.mir").write_text(model_text(NAMES))
    (place / "few.mir").write_text(model_text(NAMES[::10]))  # for Ascend, whose kernels are slow to prove
    (place / "w.safetensors").write_bytes(save({EVIL[1] + MARK: np.ones((4, 4), np.float32)}))
    return place


def msc_of(folder: Path, *arguments: str) -> str:
    """What a command prints. It leaves nothing outside of the folder that it was given."""
    result = CliRunner().invoke(command, [*arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert {p.name for p in folder.parents[1].iterdir()} == {"a"}
    assert {p.name for p in folder.parent.iterdir()} == {"b"}
    return result.output


def code_of(text: str, tmp_path: Path) -> str:
    """C as the compiler sees it: without comments and literals, with trigraphs read."""
    source = tmp_path / "seen.c"
    source.write_text(re.sub(r"^\s*#\s*include.*$", "", text, flags=re.M))
    command = ["cc", "-E", "-P", "-trigraphs", "-w", source]
    seen = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', seen)


def check_c(text: str, tmp_path: Path) -> None:
    assert not FORBIDDEN.search(text)
    code = code_of(text, tmp_path)
    assert MARK not in code
    assert "int evil" not in code


BACKENDS = {"cpu": "m.mir", "ascend910b1": "few.mir"}


def emitted(folder: Path, backend: str, model: str) -> Iterator[tuple[str, Path]]:
    """All forms of a back end that are text, and the files of its bundle."""
    for form in forms_of(find_backend(backend)):
        if form in ("obj", "archive", "so", "exe", "onnx"):
            continue
        out = folder / f"out-{backend}-{form}" / "m"
        if form == "bundle":
            msc_of(folder, "compile", model, "--target", backend, "--emit", form, "-o", f"{out.parent}.bundle")
            yield from ((form, path) for path in Path(f"{out.parent}.bundle").iterdir())
            continue
        out.parent.mkdir(exist_ok=True)
        msc_of(
            folder,
            "compile",
            model,
            "--target",
            backend,
            "--emit",
            form,
            "-o",
            str(out.with_suffix(".c" if form == "c" else ".mir")),
        )
        yield from ((form, path) for path in out.parent.iterdir())


@pytest.mark.parametrize("backend", BACKENDS)
def test_names_stay_names_in_all_that_is_emitted(backend: str, folder: Path, tmp_path: Path) -> None:
    seen = set[str]()
    for form, path in emitted(folder, backend, str(folder / BACKENDS[backend])):
        seen.add(path.suffix or path.name)
        if path.suffix in (".bin",):
            continue
        text = path.read_text("utf-8")
        if path.suffix == ".c" or path.suffix == ".h":
            check_c(text, tmp_path)
        elif path.suffix == ".json":
            json.loads(text)
            assert not FORBIDDEN.search(text)
        elif path.suffix == ".mir":
            assert not FORBIDDEN.search(text)
            module = parse_module(new_context(), text, "m")
            again = format_module(module)
            assert format_module(parse_module(new_context(), again, "m")) == again, form
        else:
            assert MARK not in text, path.name
            assert not FORBIDDEN.search(text)
    assert {".c", ".h", ".mir"} <= seen
    if backend == "cpu":
        assert {"Makefile", ".md", ".json", ".S"} <= seen


def labelled(text: str) -> str:
    """A module at the `gk` stage, whose kernels have labels, reasons and origins that are attacks."""
    module = parse_module(new_context(), text, "m")
    for op in module.walk():
        if isinstance(op, KernelOp):
            op.properties["label"] = StringAttr(EVIL[0] + MARK)
    return format_module(module, debuginfo=True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_labels_of_kernels_stay_labels(backend: str, folder: Path, tmp_path: Path) -> None:
    stage, out = folder / f"{backend}.gk.mir", folder / f"{backend}.c"
    msc_of(folder, "compile", str(folder / BACKENDS[backend]), "--target", backend, "--emit", "gk", "-o", str(stage))
    own = folder / f"own-{backend}.gk.mir"
    own.write_text(labelled(stage.read_text()))
    msc_of(folder, "compile", str(own), "--target", backend, "-o", str(out))
    check_c(out.read_text(), tmp_path)


KERNEL = """davinci.kernel @{name} vector 1 (
  %x: !davinci.buffer<gm, f16, 4096>, %{value}: !davinci.buffer<gm, f16, 8192>
) {{
  %a = davinci.alloc at 0 : !davinci.buffer<ub, f16, 4096>
  davinci.copy_gm_to_ubuf %a[0], %x[0] {{bursts = 1, length = 256}}
  davinci.set_flag MTE2 -> MTE3, 0
  davinci.wait_flag MTE2 -> MTE3, 0
  davinci.copy_ubuf_to_gm %{value}[0], %a[0] {{bursts = 1, length = 256}}
}}
"""
VALUES = (
    "y",
    "int64_t",
    "dv_min",
    "PIPE_V",
    "get_block_idx",
    "copy_gm_to_ubuf",
    "half",
    "NULL",
    "linux",
    "arguments",
    "i",
)


def test_names_of_kernels_for_cores(folder: Path, tmp_path: Path) -> None:
    """Text that CCE's compiler sees, and the files of `msc sim`."""
    values = [VALUES[k % len(VALUES)] for k in range(len(set(NAMES)))]
    kernels = [KERNEL.format(name=quoted(n), value=v) for n, v in zip(sorted(set(NAMES)), values, strict=False)]
    text = "".join(kernels)
    for kernel in parse_kernels(text, "k"):
        check_c(emit_cce(kernel).text, tmp_path)
    check_c(emit_cce_kernels(parse_kernels(text, "k")).text, tmp_path)
    (folder / "k.dv.mir").write_text("".join(kernels[::4]))
    out = folder / "sim" / "results"
    for option in ("--csv", "--trace", "--svg"):
        out.mkdir(parents=True, exist_ok=True)
        target = out / "csv" if option == "--csv" else out / f"r.{option[2:]}"
        check_shown(msc_of(folder, "sim", str(folder / "k.dv.mir"), option, str(target)))
    check_shown(msc_of(folder, "sim", str(folder / "k.dv.mir"), "--json"))
    assert {p.name for p in (folder / "sim").iterdir()} == {"results"}
    count = len(kernels[::4])
    assert len(list(out.glob("r_*.trace"))) == len(list(out.glob("r_*.svg"))) == count
    assert len(list((out / "csv").glob("*.csv"))) == 2 * count
    assert not [p for p in out.rglob("*") if p.is_dir() and p != out / "csv"]


def check_shown(text: str) -> None:
    """What stands on a terminal: no control characters, and no line that a name made up."""
    assert not FORBIDDEN.search(text)
    assert not any(line.startswith("FORGED") for line in text.splitlines())


@pytest.mark.parametrize("verb", ["inspect", "explain", "run", "verify", "opt"])
def test_names_on_terminals(verb: str, folder: Path) -> None:
    extra = ("--random", "0") if verb == "run" else ()
    check_shown(msc_of(folder, verb, str(folder / "m.mir"), *extra))


def test_files_named_after_outputs(folder: Path) -> None:
    out = folder / "outputs" / "o"
    out.parent.mkdir()
    msc_of(folder, "run", str(folder / "m.mir"), "--random", "0", "--output-dir", str(out))
    assert len(list(out.glob("*.npy"))) == 2
    assert [p.name for p in out.parent.iterdir()] == ["o"]


def test_names_in_errors(folder: Path) -> None:
    for name in NAMES[: len(EVIL)]:
        path = folder / "wrong.mir"
        path.write_text(
            f"func.func @main(%x: tensor<1x4xf32> {{ms.name = {quoted(name)}}}) -> tensor<1x4xf32> {{\n"
            f"%0 = ms.cast %x {{dtype = {quoted(name)}}}\nfunc.return %0 : tensor<1x4xf32>\n}}\n"
        )
        result = CliRunner().invoke(command, ["inspect", str(path)])
        assert isinstance(result.exception, MscError)
        check_shown(str(result.exception))


def test_names_in_onnx(folder: Path) -> None:
    onnx = pytest.importorskip("onnx")
    msc_of(folder, "compile", str(folder / "m.mir"), "-o", str(folder / "m.onnx"))
    onnx.checker.check_model(onnx.load(folder / "m.onnx"))
    assert msc_of(folder, "inspect", str(folder / "m.onnx"))
