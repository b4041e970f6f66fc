"""Names of a model and of its file reach neither C text, nor a shell, nor a file name unescaped."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import msc
from msc.driver.compile import compile_model, generate_c
from msc.driver.options import CompileOptions
from tests.unit.importers.models import HOSTILE_NAMES, model, node, tensor
from tests.unit.importers.test_import_verb import msc as command

N = 300
"""Elements of a weight: too many to stand in the text."""


def hostile() -> bytes:
    """Every name as input, node, weight and (with a dot) output."""
    nodes = [node("Add", [name, name + "w"], [name + "."], name=name) for name in HOSTILE_NAMES]
    weights = {name + "w": np.full(N, i, np.float32) for i, name in enumerate(HOSTILE_NAMES)}
    made = model(
        nodes,
        [tensor(name, [N]) for name in HOSTILE_NAMES],
        [tensor(name + ".", [N]) for name in HOSTILE_NAMES],
        weights,
    )
    return made.SerializeToString()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def test_names_do_not_reach_c(tmp_path: Path) -> None:
    """Outside of comments and string literals, where they are escaped, no text of the model stands in the C."""
    (tmp_path / "m.onnx").write_bytes(hostile())
    program = generate_c(compile_model(str(tmp_path / "m.onnx"), CompileOptions()))
    for text in (program.source, program.header):
        assert "\0" not in text
        code = re.sub(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', "", text, flags=re.DOTALL)
        for word in ("int evil", "<evil>", "touch pwned", "-rf", "\u202e", "%s%n", "../up", "??/"):
            assert word not in code


def test_a_model_of_hostile_names_runs(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(hostile())
    compiled = msc.compile(tmp_path / "m.onnx")
    results = compiled(*(np.ones(N, np.float32) for _ in HOSTILE_NAMES))
    np.testing.assert_array_equal([result[0] for result in results], np.arange(len(HOSTILE_NAMES)) + 1)


@pytest.mark.parametrize("stem", ["$(touch pwned)", "; touch pwned", "a\nb", "*/", "x'y\"z", "-o"])
def test_names_of_files(tmp_path: Path, stem: str) -> None:
    folder = tmp_path / stem.replace("/", "|")
    folder.mkdir()
    name = f"{stem.replace('/', '|')}.onnx"
    (folder / name).write_bytes(
        model([node("Neg", ["x"], ["y"])], [tensor("x", [2])], [tensor("y", [2])]).SerializeToString()
    )
    done: subprocess.CompletedProcess[str] = command("compile", f"./{name}", "-o", f"./{name}.so", folder=folder)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in folder.iterdir()} == {name, f"{name}.so"}
