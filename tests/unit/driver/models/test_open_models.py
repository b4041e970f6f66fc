"""Models with open sizes at first contact: their names everywhere, and sizes as given inputs have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from onnx import ModelProto

import msc
from msc.driver.artifacts.model_on_call import ModelOnCall
from msc.driver.cli import command
from msc.support.diagnostics import MscError
from tests.unit.importers.models import model, node, tensor

MLP = model(
    [node("Gemm", ["x", "w"], ["y"])],
    [tensor("x", ["batch", 3])],
    [tensor("y", ["batch", 2])],
    {"w": np.arange(6, dtype=np.float32).reshape(3, 2)},
)
CONV = model(
    [node("Conv", ["x", "w"], ["y"], name="c")],
    [tensor("x", ["batch", 1, 3, 3])],
    [tensor("y", ["batch", 1, 3, 3])],
    {"w": np.full((1, 1, 1, 1), 2, np.float32)},
)
ANY_RANK = model([node("Neg", ["x"], ["y"])], [tensor("x", None)], [tensor("y", None)])
NAMELESS = model([node("Neg", ["x"], ["y"])], [tensor("x", [None, 2])], [tensor("y", None)])
TEXT = """builtin.module {
  func.func @main(%x: tensor<?x2xf32> {ms.name = "x", ms.dims = ["n", ""]}) -> tensor<?x2xf32> {
    %y = ms.exp %x
    func.return %y : tensor<?x2xf32>
  }
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(made: ModelProto | str) -> str:
    path = Path("m.mir" if isinstance(made, str) else "m.onnx")
    path.write_bytes(made.encode() if isinstance(made, str) else made.SerializeToString())
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def advice(result: Result) -> str:
    assert isinstance(result.exception, MscError)
    return str(result.exception)


@pytest.mark.parametrize("made", [MLP, CONV], ids=["mlp", "conv"])
def test_names_survive_and_the_advice_works(made: ModelProto, folder: Path) -> None:
    path = written(made)
    assert "--dim batch=1" in advice(run("compile", path, "-o", "m.so"))
    assert "did you mean 'batch'?" in advice(run("compile", path, "-o", "m.so", "--dim", "bach=1"))
    assert run("import", path).exit_code == 0
    assert 'ms.dims = ["batch"' in Path("m.mir").read_text()
    assert "--dim batch=1" in advice(run("compile", "m.mir", "-o", "m.so"))
    assert run("compile", "m.mir", "-o", "m.so", "--dim", "batch=1..4").exit_code == 0
    shown = run("inspect", "m.so").stdout
    assert "x: batch×" in shown
    assert "batch=1..4" in shown


def test_inspect_shows_open_sizes(folder: Path) -> None:
    for path in (written(MLP), written(TEXT)):
        name = "batch" if path.endswith("onnx") else "n"
        assert f"x: {name}×" in run("inspect", path).stdout
        assert json.loads(run("inspect", path, "--json").stdout)["inputs"][0]["shape"][0] == name


@pytest.mark.parametrize("made", [MLP, TEXT, NAMELESS], ids=["onnx", "mir", "nameless"])
def test_given_inputs_give_their_sizes(made: ModelProto | str, folder: Path) -> None:
    path, width = written(made), 3 if made is MLP else 2
    np.save("x.npy", np.ones((5, width), np.float32))
    result = run("run", path, "--input", "x=@x.npy")
    assert result.exit_code == 0, result.output
    assert "[5, 2]" in result.stdout
    assert run("bench", path, "--input", f"x=4x{width}xf32=1", "--seconds", "0.01").exit_code == 0
    assert run("verify", path, "--input", f"x=4x{width}xf32=1").exit_code == 0


def test_an_input_without_a_shape(folder: Path) -> None:
    path = written(ANY_RANK)
    assert "--input x=@file.npy" in advice(run("run", path, "--random", "0"))
    assert "[2, 2]" in run("run", path, "--input", "x=2x2xf32=1").stdout
    negated: Any = msc.compile(path)
    np.testing.assert_array_equal(negated(np.ones((1, 2, 1), np.float32)), -np.ones((1, 2, 1)))


def test_calls_decide_sizes_and_mistakes_are_named(folder: Path) -> None:
    function: Any = msc.compile(written(MLP))
    assert isinstance(function, ModelOnCall)
    assert "x: batch×3 f32" in repr(function)
    weights = np.arange(6, dtype=np.float32).reshape(3, 2)
    for batch in (0, 1, 4):
        x = np.full((batch, 3), 0.5, np.float32)
        np.testing.assert_allclose(function(x=x), x @ weights)
    for arrays, code in (((), "MSC0601"), ((np.ones(3, np.float32),), "MSC0603"), ((np.ones((1, 3)),), "MSC0604")):
        with pytest.raises(MscError, match=code):
            function(*arrays)
    with pytest.raises(MscError, match="MSC0207"):
        function.save("m.so")
    with pytest.raises(MscError, match="MSC0207"):
        _ = function.signature


def test_verify_tries_sizes_of_the_range(folder: Path) -> None:
    result = run("verify", written(TEXT), "--dim", "n=1..6")
    assert result.exit_code == 0, result.output
    for n in (1, 2, 4):
        assert f"model at n = {n} " in result.stdout
