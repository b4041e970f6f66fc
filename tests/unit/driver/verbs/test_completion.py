"""What a shell proposes: values of options, codes and operations, and else files."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from msc.driver.cli import command


def proposals(*words: str) -> list[str]:
    completion = ShellComplete(command, {}, "msc", "_MSC_COMPLETE")
    return [item.value for item in completion.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("compile", "m.mir", "--march", "x86-64-v3"), ["x86-64-v3"]),
        (("compile", "m.mir", "--emit", "bu"), ["bundle"]),
        (("compile", "m.mir", "--stop-after", "g"), ["graph", "gk"]),
        (("compile", "m.mir", "--without", "fusion,wino"), ["fusion,winograd"]),
        (("opt", "m.mir", "-p", "cse,dc"), ["cse,dce"]),
        (("explain", "ms.conv2d_"), ["ms.conv2d_transpose"]),
        (("explain", "MSC0201"), ["MSC0201"]),
    ],
)
def test_values_are_proposed(words: tuple[str, ...], expected: list[str]) -> None:
    assert proposals(*words) == expected


def test_what_is_given_already_is_not_proposed_again() -> None:
    assert "fusion,fusion" not in proposals("compile", "m.mir", "--without", "fusion,f")


@pytest.mark.parametrize("verb", ["compile", "run", "verify", "bench", "explain", "inspect", "tune", "opt", "import"])
def test_models_are_files(verb: str) -> None:
    completion = ShellComplete(command, {}, "msc", "_MSC_COMPLETE")
    assert [item.type for item in completion.get_completions([verb], "samples/le")] == ["file"]


@pytest.mark.parametrize(
    ("words", "expected"), [(["help", "compile"], "msc compile [OPTIONS]"), (["help"], "Commands:")]
)
def test_help_is_a_verb_too(words: list[str], expected: str) -> None:
    result = CliRunner().invoke(command, words, prog_name="msc")
    assert expected in result.output
