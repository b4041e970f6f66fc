"""An option that changes nothing is refused or named; values are in range."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from msc.backends.registry import find_backend
from msc.driver.cli import command
from msc.driver.verbs.applicable_options import acts, check_applicable, idle_options
from msc.driver.verbs.cell_options import CELL_OPTIONS
from msc.driver.verbs.model_options import with_compile_options
from msc.support.diagnostics import MscError

CPU = find_backend("cpu")
TABLE, ACTS = CPU.table, acts(CPU)
LIMITS = ("--ram-limit", "--rom-limit", "--stack-limit")


def codes(*arguments: object) -> tuple[int, str]:
    """The exit code of usage, or the code of the error."""
    result = CliRunner().invoke(command, list(map(str, arguments)))
    if isinstance(result.exception, MscError):
        return 1, result.exception.diagnostics[0].code
    return result.exit_code, ""


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("none") / "m.so"


@pytest.mark.parametrize("option", sorted(ACTS.keys() - {"--name", "--profile", "--save-temps", *LIMITS}))
def test_an_artifact_is_as_it_was_compiled(artifact: Path, option: str) -> None:
    value = {
        "--dim": "n=3",
        "--input-value": "x=3",
        "--no-cache": "",
        "--no-winograd": "",
        "--flush-subnormals": "",
        "--check-indices": "",
    }
    words = [option, *filter(None, [value.get(option, {"--max-memory": "1G", "--threads": "2"}.get(option, "cpu"))])]
    for verb in ("run", "bench"):
        assert codes(verb, artifact, *words) == (1, "MSC0014")


def test_options_by_kind_of_model(model: Path, tmp_path: Path) -> None:
    assert codes("compile", model, "--input-value", "x=3") == (1, "MSC0014")
    assert codes("compile", tmp_path / "x.onnx", "--weights", ".") == (1, "MSC0014")
    assert codes("compile", tmp_path / "x.loop.mir", "--tuned", "t.json") == (1, "MSC0014")
    assert codes("compile", tmp_path / "x.loop.mir", "--without", "fusion") == (1, "MSC0014")
    assert codes("tune", model, "--tuned", "t.json", "--budget", "0") == (1, "MSC0014")
    check_applicable(["--march", "--threads", "--dim", "--tuned"], "m.mir", TABLE["gk"], ["vectors"])


def test_options_for_later_stages_are_named(model: Path) -> None:
    given = ["--tuned", "--march", "--flush-subnormals", "--dim"]
    assert idle_options(given, "gk") == ["--tuned", "--flush-subnormals"]
    result = CliRunner().invoke(command, ["compile", str(model), "--emit", "opt", "--threads", "2"])
    assert "note: --threads changes nothing up to stage 'opt'" in result.stderr


def test_every_shared_option_says_where_it_acts() -> None:
    def none(**_: object) -> None:
        """A command without options of its own."""

    import click

    collected = click.command()(with_compile_options(none))
    assert {p.opts[-1] for p in collected.params} <= {*ACTS, *CELL_OPTIONS}


@pytest.mark.parametrize("option", [("--init", "w.safetensors"), ("--input", "x=1x3xf32")])
def test_options_of_cells_are_refused_elsewhere(option: tuple[str, str]) -> None:
    assert codes("compile", "model.mir", *option) == (1, "MSC0014")


@pytest.mark.parametrize(
    "words",
    [
        ("--dim", "n=1..8", "--dim", "n=3"),
        ("--input-value", "a=1", "--input-value", "a=1"),
        ("--emit", "gk", "--stop-after", "c"),
        ("--stop-after", "so"),
        ("--threads", "1", "--threads", "2"),
        ("--march", "generic", "--march", "native"),
    ],
)
def test_contradictions(model: Path, words: tuple[str, ...]) -> None:
    path = model.with_suffix(".onnx") if "--input-value" in words else model
    assert codes("compile", path, *words) in ((1, "MSC0008"), (1, "MSC0007"), (2, ""))


@pytest.mark.parametrize(
    ("verb", "option"),
    [
        *(("bench", option) for option in ("--seconds", "--warm-up", "--random")),
        *(("run", option) for option in ("--atol", "--rtol", "--random")),
        *(("verify", option) for option in ("--atol", "--rtol", "--random", "--loop-limit")),
        ("tune", "--random"),
    ],
)
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "x", "1e999", ""])
def test_numbers_are_in_range(model: Path, verb: str, option: str, value: str) -> None:
    assert codes(verb, model, option, value) == (2, "")
