"""What a person meets who does not know msc yet."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import msc
from msc import Tensor, nn
from msc.backends.registry import find_backend
from msc.driver.cli import command
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions
from msc.driver.verbs.model_options import parse_dims
from msc.driver.verification.differential import Settings, verify_model
from msc.support.diagnostics import MscError
from msc.support.files import read_source

TABLE = find_backend("cpu").table


@pytest.mark.parametrize("words", [["help"], ["help", "compile"], ["compile", "--help"]])
def test_help(words: list[str]) -> None:
    result = CliRunner().invoke(command, words)
    assert (result.exit_code, result.output[:6]) == (0, "Usage:")


def failure(model: Path) -> str:
    with pytest.raises(MscError) as error:
        read_model(str(model), CompileOptions()).weights()
    return str(error.value)


def test_weights_that_cannot_be_read_are_not_proposed(model: Path) -> None:
    weights = model.with_suffix(".safetensors")
    weights.rename(model.with_name("smal.safetensors"))
    assert "did you mean 'smal.safetensors'?" in failure(model)
    model.with_name("smal.safetensors").unlink()
    weights.mkdir()
    assert "did you mean" not in failure(model)


def test_what_weights_are(model: Path) -> None:
    model.with_suffix(".safetensors").unlink()
    text = failure(model)
    assert "MSC0301" in text
    assert "a tensor for each ms.parameter; --weights names its folder" in text


def test_a_line_that_names_the_weights(model: Path) -> None:
    model.write_text(model.read_text().replace('attributes {ms.weights = "small.safetensors"} ', ""))
    assert 'help: write builtin.module attributes {ms.weights = "small.safetensors"} { ... }' in failure(model)


def test_a_model_that_is_not_there(model: Path) -> None:
    assert "did you mean 'small.mir'?" in failure(model.with_name("smal.mir"))


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    text = failure(tmp_path)
    assert "MSC0006" in text
    assert "is a folder" in text


def test_mlir_is_mir() -> None:
    for name, stage in (("a.mlir", "graph"), ("a.gk.mlir", "gk")):
        found = TABLE.of_file(name)
        assert found is not None
        assert found.name == stage


@pytest.mark.parametrize(
    ("name", "near"), [("smal.mir", "small.mir"), ("smal.gk.mir", "small.mir"), ("nope.mir", None), ("x", None)]
)
def test_only_names_that_are_alike_are_proposed(model: Path, name: str, near: str | None) -> None:
    """`.mir` at the end of both makes no names alike."""
    (model.parent / "n5.mir").write_text("")
    with pytest.raises(MscError) as error:
        read_source(model.parent / name)
    assert error.value.diagnostics[0].help == (near and f"did you mean '{near}'?")


def test_what_explain_takes() -> None:
    result = CliRunner().invoke(command, ["explain", "nope"])
    assert isinstance(result.exception, MscError)
    assert "an operation ms.conv2d" in str(result.exception)
    printed = CliRunner().invoke(command, ["explain", "MSC0201", "--json"]).output
    assert json.loads(printed)["title"] == "shape conflict"


def test_a_size_that_is_too_long() -> None:
    with pytest.raises(MscError, match="at most 12 digits"):
        parse_dims(["batch=1..99999999999999"])


def test_a_block_without_a_name(model: Path) -> None:
    text = "func.func @main() {\n^0(%y: tensor<4xf32>):\n  func.return\n}\n"
    model.write_text(text)
    with pytest.raises(MscError, match=r"MSC0100.*no name of a block(.|\n)*\^bb0"):
        read_model(str(model), CompileOptions())


def test_a_reference_of_another_model(model: Path) -> None:
    other = model.with_name("other.mir")
    other.write_text("func.func @main(%q: tensor<7xf32>) -> tensor<7xf32> {\n  func.return %q : tensor<7xf32>\n}\n")
    with pytest.raises(MscError, match=r"MSC0008.*small.mir' takes .*, but the reference .* takes q: 7xf32"):
        verify_model(str(model), CompileOptions(), Settings(), str(other))


class Twice(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return x + x


def once(x: Tensor) -> Tensor:
    return x


@pytest.mark.parametrize("target", [Twice(), once, nn.ReLU()])
@pytest.mark.parametrize("count", [0, 2])
def test_examples_that_are_not_as_many_as_the_arguments(target: Any, count: int, tmp_path: Path) -> None:
    examples = [Tensor([1.0])] * count
    with pytest.raises(MscError, match=rf"MSC0008.* takes \w+, and {count} examples? came"):
        msc.compile(target, *examples)
    with pytest.raises(MscError, match="MSC0008"):
        msc.export(target, *examples, file_name=str(tmp_path / "x.mir"))


def test_examples_of_what_has_no_arguments(model: Path, tmp_path: Path) -> None:
    with pytest.raises(MscError, match=r"MSC0008.*examples of arguments go with a Cell"):
        msc.compile(str(model), Tensor([1.0]))
    wrong: Any
    for wrong in (3, str(model), nn.ReLU):
        with pytest.raises(MscError, match=r"MSC0008.*it takes a Cell or a function"):
            msc.export(wrong, Tensor([1.0]), file_name=str(tmp_path / "x.mir"))
