"""Formats are asked by the driver, which names none; one from outside works as msc's own."""

import ast
import importlib
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import msc
from msc.backends.registry import BACKENDS, DEFAULT
from msc.driver.cli import command
from msc.formats.registry import FORMATS, format_of
from msc.support.diagnostics import MscError

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "lines_format"
DRIVER = Path(msc.__file__).parent / "driver"
BROKEN = {"no_module": "there_is_none:Any", "no_format": "broken_format:Other", "half": "broken_format:Half"}
MODULE = """
from msc.formats.format import Format


class Other:
    name = "no_format"


class Half(Format):
    name = "half"
    title = "a half"
"""
LINES = """{"input": [2, 3]}
{"dense": [[1.0, -2.0, 0.5], [0.25, 1.0, -1.0]], "bias": [0.5, -0.5]}
{"relu": true}
{"dense": [[2.0, -1.0]], "bias": [1.0]}
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example and broken packages on the path, with the metadata that an installer would make."""
    points = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]["msc.formats"]
    info = tmp_path / "site" / "formats-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info.parent / "broken_format.py").write_text(MODULE, "utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: formats\nVersion: 0.1.0\n", "utf-8")
    lines = [f"{name} = {value}" for name, value in {**points, **BROKEN}.items()]
    (info / "entry_points.txt").write_text("\n".join(["[msc.formats]", *lines]), "utf-8")
    monkeypatch.setattr(sys, "path", [str(info.parent), str(EXAMPLE), *sys.path])
    importlib.invalidate_caches()
    FORMATS.forget()
    yield
    FORMATS.forget()
    for name in ("lines_format", "broken_format"):
        sys.modules.pop(name, None)


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net.lines"
    path.write_text(LINES, "utf-8")
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, list(map(str, arguments)), catch_exceptions=False)


X = np.array([[1, 2, 3], [-1, 0.5, 0.25]], np.float32)


def expected() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    (_, first, _, second) = map(json.loads, LINES.splitlines())
    hidden = np.maximum(X @ np.array(first["dense"]).T + first["bias"], 0)
    return (hidden @ np.array(second["dense"]).T + second["bias"]).astype(np.float32)


def test_a_format_takes_a_package_of_two_files() -> None:
    assert len([path for path in EXAMPLE.glob("*.*") if path.is_file()]) == 2


def test_the_command_line_compiles_runs_and_inspects_it(net: Path) -> None:
    assert run("compile", net, "-o", "net.c").exit_code == 0
    values = ",".join(map(str, X.reshape(-1).tolist()))
    ran = run("run", net, "--input", f"x0=2x3xf32={values}", "--json")
    (output,) = json.loads(ran.stdout).values()
    np.testing.assert_allclose(output["data"], expected().reshape(-1), rtol=1e-5)
    report = json.loads(run("inspect", net, "--json").stdout)
    assert report["operations"]["ms.dense"] == 2
    assert run("verify", net).exit_code == 0


def test_it_is_converted_to_and_fro(net: Path) -> None:
    assert run("import", net, "-o", "net.mir").exit_code == 0
    assert run("compile", "net.mir", "-o", "again.lines").exit_code == 0
    assert Path("again.lines").read_text("utf-8") == LINES
    assert run("compile", net, "-o", "net.onnx").exit_code == 0
    np.testing.assert_allclose(np.asarray(msc.compile("net.onnx")(X)), expected(), rtol=1e-5)
    with pytest.raises(MscError, match="MSC0720"):
        run("compile", ROOT / "samples" / "lenet5" / "lenet5.mir", "-o", "other.lines")
    assert not Path("other.lines").exists()


def test_python_compiles_and_exports_it(net: Path) -> None:
    np.testing.assert_allclose(np.asarray(msc.compile(net)(X)), expected(), rtol=1e-5)
    cell = msc.nn.SequentialCell(msc.nn.Dense(3, 2), msc.nn.ReLU())
    name = msc.export(cell, msc.Tensor(X), file_name="cell", file_format="LINES")
    assert name == "cell.lines"
    np.testing.assert_allclose(np.asarray(msc.compile(name)(X)), cell(msc.Tensor(X)).asnumpy(), rtol=1e-5)


def test_its_mistakes_have_places(net: Path) -> None:
    net.write_text(LINES + "nonsense\n", "utf-8")
    with pytest.raises(MscError, match=r"(?s)MSC0006.*net.lines:5:1"):
        msc.compile(net)


def test_the_doctor_lists_all_formats() -> None:
    found = run("doctor").stdout
    for each in FORMATS.found():
        assert each.name in found
        assert each.extensions[0] in found


def test_broken_packages_are_told_of_and_stop_nothing() -> None:
    for name in BROKEN:
        with pytest.raises(MscError, match="MSC0580"):
            FORMATS.find(name)
    assert {"mir", "onnx", "python", "safetensors", "tflite", "lines"} == {each.name for each in FORMATS.found()}
    assert format_of("net.unknown") is None


def words() -> re.Pattern[str]:
    """Names and extensions of all formats but msc's own text and Python, and names of back ends and of their code."""
    foreign = [FORMATS.find(name) for name in FORMATS.own if FORMATS.find(name).holds not in ("ir", "program")]
    formats = [word for each in foreign for word in (each.name, *each.extensions, *each.references)]
    machines = [name for name in BACKENDS.own if name != DEFAULT]
    named = "|".join(rf"(?<![\w.]){re.escape(word)}(?!\w)" for word in (*formats, *machines, "ascend", "davinci"))
    return re.compile(rf"^{DEFAULT}$|(backends|lowering) {DEFAULT}(?!\w)|codegen c(?!\w)|(?i:{named})")


def spelled(path: Path) -> Iterator[tuple[int, str]]:
    """What a file of Python names: modules, names, attributes, and the strings in it that are no documentation."""
    tree = ast.parse(path.read_text("utf-8"))
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in documentation:
                yield node.lineno, text
            case ast.Name(id=text) | ast.Attribute(attr=text):
                yield node.lineno, text.replace("_", " ")
            case ast.ImportFrom(module=str(text)) | ast.alias(name=text):
                yield node.lineno, text.replace(".", " ").replace("_", " ")
            case _:
                pass


def test_the_driver_names_no_format_and_no_back_end() -> None:
    wanted = words()
    found = [
        f"{path.relative_to(DRIVER)}:{line}: {text}"
        for path in sorted(DRIVER.rglob("*.py"))
        for line, text in spelled(path)
        if wanted.search(text)
    ]
    assert not found, "\n".join(found)
