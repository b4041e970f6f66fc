"""A slice of the suites on the targets that this machine runs: `python -m tests.targets` does all, on others too."""

import re
from collections.abc import Iterator
from dataclasses import replace

import click
import pytest
from click.testing import CliRunner

from tests.conformance import __main__ as conformance
from tests.switched import __main__ as switched
from tests.switched.suites import SUITES
from tests.switched.trying import Check
from tests.targets import __main__ as command
from tests.targets.machines import MACHINES
from tests.targets.trying import Outcome, measured, tried

HERE = [name for name, machine in MACHINES.items() if not machine.missing()]
SLICE = {
    "networks": "^(attention|lenet5|GRU)$",
    "open sizes": "^rows of two sizes as one$",
    "operations": r"^ms\.argmin i8$",
    "random graphs": "^graph 33$",
}


def chosen() -> Iterator[tuple[str, Check]]:
    for suite, pattern in SLICE.items():
        yield from ((suite, check) for check in SUITES[suite]() if re.search(pattern, check.name))


@pytest.mark.parametrize("machine", HERE)
def test_right_on_each_target_of_this_machine(machine: str) -> None:
    outcomes = [tried(machine, suite, check, ["-O1"], seconds=120) for suite, check in chosen()]
    assert len(outcomes) == 6
    assert [outcome for outcome in outcomes if outcome.reason] == []


@pytest.mark.parametrize("machine", HERE)
def test_vector_maths_keep_their_bound_on_each_target(machine: str) -> None:
    assert measured(machine, "tanh", [], seconds=120).reason == ""


def test_what_a_program_says_is_the_reason() -> None:
    (check,) = (check for check in SUITES["networks"]() if check.name == "mlp")
    assert "Werror" in tried("generic", "networks", check, ["-Wtraditional"], seconds=120).reason


def test_missing_tools_are_named() -> None:
    absent = replace(MACHINES["neon"], compiler="no-such-gcc -x", emulator="no-such-qemu -L /usr", packages="those")
    assert absent.missing() == "no-such-gcc and no-such-qemu not found: apt-get install those"
    assert replace(MACHINES["avx2"], native="z80").missing() == "this machine is no z80"


@pytest.mark.parametrize(
    ("main", "arguments", "message"),
    [
        (command.main, "--machines avx512,abacus", "no 'abacus'; known: avx512"),
        (command.main, "--suites tunes", "no 'tunes'; known: vector maths"),
        (command.main, "--part 3", "'3' is no K/N"),
        (switched.main, "--without gravity", "no 'gravity'; known: "),
        (switched.main, "--part 2/2", "'2/2' is no K/N with K below N"),
        (conformance.main, "--executor both", "no 'both'; known: interp, c"),
    ],
)
def test_an_unknown_name(main: click.Command, arguments: str, message: str) -> None:
    result = CliRunner().invoke(main, arguments.split())
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_the_table_counts_what_passes_on_each_machine() -> None:
    outcomes = [
        Outcome("neon", "node", "a", ""),
        Outcome("neon", "node", "b", "wrong"),
        Outcome("avx2", "node", "a", ""),
    ]
    assert command.table(outcomes).splitlines()[2:] == ["| neon | 1 of 2 |", "| avx2 | 1 of 1 |"]
