"""What a person meets who does not know msc yet."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from msc.backends.registry import find_backend
from msc.driver.cli import command
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions
from msc.support.diagnostics import MscError

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


def test_a_line_that_names_the_weights(model: Path) -> None:
    model.write_text(model.read_text().replace('attributes {ms.weights = "small.safetensors"} ', ""))
    assert 'help: write builtin.module attributes {ms.weights = "small.safetensors"} { ... }' in failure(model)


def test_a_model_that_is_not_there(model: Path) -> None:
    assert "did you mean 'small.mir'?" in failure(model.with_name("smal.mir"))


def test_mlir_is_mir() -> None:
    for name, stage in (("a.mlir", "graph"), ("a.gk.mlir", "gk")):
        found = TABLE.of_file(name)
        assert found is not None
        assert found.name == stage
