"""What people type who come from other tools: options, machines, names, files, values. Each is answered."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from msc.driver.cli import VERBS, command
from msc.driver.verbs import verb
from msc.driver.verbs.explain import meanings
from msc.driver.verbs.opt import translated
from msc.support.diagnostics import MscError, did_you_mean
from msc.targets import catalogue

MODEL = """func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = ms.relu %x
  func.return %y : tensor<2x3xf32>
}
"""
OPEN = """func.func @main(%x: tensor<?x4xf32> {ms.dims = ["b", ""]}, %t: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %y = ms.add %x, %t
  func.return %y : tensor<8x4xf32>
}
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "net.mir"
    path.write_text(MODEL)
    return str(path)


def said(*words: str) -> str:
    result = CliRunner().invoke(command, words)
    assert result.exit_code != 0
    return result.output + (str(result.exception) if isinstance(result.exception, MscError) else "")


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("bench", "--iterations", "3"), "--seconds"),
        (("bench", "-n", "3"), "--seconds"),
        (("compile", "-v"), "--timing"),
        (("compile", "-O3"), "msc always optimises"),
        (("compile", "--mcpu=avx2"), "--march"),
        (("run", "--seed", "1"), "--random"),
        (("compile", "--thread", "1"), "--threads"),
        (("doctor", "--nothing-like-it"), "--json"),
    ],
)
def test_options_of_other_tools(words: tuple[str, ...], answer: str) -> None:
    text = said(*words)
    assert "there is no option" in text
    assert answer in text


def test_every_option_that_is_proposed_exists() -> None:
    group: click.Group = command
    commands = [group.get_command(click.Context(group), name) or group for name in VERBS]
    there = {option for each in commands for parameter in each.params for option in parameter.opts}
    proposed: dict[str, str] = verb._MEANT  # pyright: ignore[reportPrivateUsage]
    assert {option.split()[0] for option in proposed.values()} <= there


def test_every_machine_that_is_proposed_exists() -> None:
    proposed: dict[str, str] = catalogue._MEANT  # pyright: ignore[reportPrivateUsage]
    assert proposed.keys() <= set(catalogue.machine_names())
    for machine, words in proposed.items():
        for word in words.split():
            with pytest.raises(MscError, match=f"'{machine}'"):
                catalogue.machine_named(word)


@pytest.mark.parametrize("name", ["armv6", "cortex-r5", "esp32-s3"])
def test_small_processors(name: str) -> None:
    with pytest.raises(MscError, match="'generic'"):
        catalogue.machine_named(name)


@pytest.mark.parametrize(
    ("name", "known", "answer"),
    [
        ("fuse", ["fusion", "reuse", "sink-views"], "'fusion'"),
        ("conv", ["cond", "conv1d", "conv2d", "conv2d_transpose"], "conv1d or conv2d"),
        ("relu6x", ["relu", "relu6"], "'relu6'"),
        ("nothing", ["a", "b"], None),
    ],
)
def test_near_names(name: str, known: list[str], answer: str | None) -> None:
    told = did_you_mean(name, known)
    assert told is None if answer is None else answer in (told or "")


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        *(("conv2d", "ms.conv2d"), ("Conv2D", "ms.conv2d"), ("torch.nn.functional.relu", "ms.relu")),
        *(("LogSoftmax", "ms.log_softmax"), ("P.MatMul", "ms.matmul"), ("Gemm", "ms.dense"), ("linear", "ms.dense")),
    ],
)
def test_an_operation_by_any_name(name: str, operation: str) -> None:
    assert meanings(name)["ms"] == operation
    shown = CliRunner().invoke(command, ["explain", name])
    assert shown.output.startswith(f"{operation}:")
    assert json.loads(CliRunner().invoke(command, ["explain", name, "--json"]).output)["operation"]["name"] == operation


def test_other_names_are_explained() -> None:
    assert "value_and_grad" in CliRunner().invoke(command, ["explain", "backward"]).output
    assert "msc.nn.CrossEntropyLoss(" in CliRunner().invoke(command, ["explain", "CrossEntropyLoss"]).output
    assert "did you mean" in said("explain", "relux")
    assert "MSC0005" in said("explain", "MSC9999")


@pytest.mark.parametrize(
    ("value", "answer"),
    [("cat.jpg", "x=@cat.npy"), ("2x3xf32", "x=2x3xf32=0"), ("what", "NAME=2x3xf32="), ("1,2", "NAME=2x3xf32=")],
)
def test_the_forms_of_an_input_are_shown(model: str, value: str, answer: str) -> None:
    text = said("run", model, "--input", f"x={value}")
    assert "MSC0607" in text
    assert answer in text


def test_open_sizes_are_offered_a_range(tmp_path: Path) -> None:
    (tmp_path / "open.mir").write_text(OPEN)
    assert "--dim b=1..64" in said("run", str(tmp_path / "open.mir"))
    for code in ("MSC0207", "MSC0713"):
        assert "1..64" in CliRunner().invoke(command, ["explain", code]).output


def test_a_shape_that_does_not_fit_at_the_end_of_a_range(tmp_path: Path) -> None:
    (tmp_path / "open.mir").write_text(OPEN)
    text = said("compile", str(tmp_path / "open.mir"), "--dim", "b=8..64", "-o", str(tmp_path / "o.c"))
    assert "b=64 of --dim b=8..64" in text


def test_what_was_written_is_told(model: str, tmp_path: Path) -> None:
    out = tmp_path / "made.c"
    result = CliRunner().invoke(command, ["compile", model, "-o", str(out)])
    assert result.exit_code == 0
    told = {Path(name.strip()) for name in result.output.removeprefix("wrote ").split(",")}
    assert told == {path for path in tmp_path.iterdir() if str(path) != model}


def test_a_model_of_msc_is_not_imported(model: str) -> None:
    text = said("import", model)
    assert "MSC0006" in text
    assert "msc compile" in text


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        (["--cse"], ["--passes", "cse"]),
        (["-x", "--cse", "a.mir", "--dce"], ["-x", "a.mir", "--passes", "cse,dce"]),
        (["--schedule-kernels=plain=true"], ["--passes", "schedule-kernels{plain=true}"]),
        (["--pass-pipeline=builtin.module(cse, dce)"], ["--passes=cse, dce"]),
        (["--pass-pipeline", "cse"], ["--passes", "cse"]),
        (["--mlir-print-ir-after-all"], ["--print-ir-after=all"]),
        (["--print-ir-after-all"], ["--print-ir-after=all"]),
        (["--mlir-timing"], ["--timing"]),
        (["--generic", "-p", "cse"], ["--generic", "-p", "cse"]),
    ],
)
def test_the_options_of_mlir_opt(given: list[str], ours: list[str]) -> None:
    assert translated(given) == ours


def test_mlir_opt_as_it_is_known(model: str) -> None:
    printed = CliRunner().invoke(command, ["opt", model, "--cse", "--mlir-timing"])
    assert printed.exit_code == 0
    assert "ms.relu" in printed.stdout
    assert "cse" in printed.stderr
