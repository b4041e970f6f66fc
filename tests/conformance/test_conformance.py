"""The node cases of the ONNX suite through the interpreter, and a fixed part of them through C.

Every seventh case goes through C: all of them take minutes, and `python -m tests.conformance --executor c` runs them.
"""

import pytest

from tests.conformance.expectations import read_expectations
from tests.conformance.running import run_cases
from tests.conformance.suite import Case, cases

pytest.importorskip("onnx")

NODE_CASES = list(cases(frozenset({"node"})))
EVERY = 7


def check(case: Case, executor: str) -> None:
    (outcome,) = run_cases([case], "c" if executor == "c" else "interp", seconds=60)
    expected = read_expectations(executor).get(case.name)
    if expected is None:
        assert outcome.passed, outcome.reason
    else:
        assert not outcome.passed, "it passes now: take it out of expected_failures.txt"


@pytest.mark.parametrize("case", NODE_CASES, ids=lambda case: case.name)
def test_interpreter(case: Case) -> None:
    check(case, "interp")


@pytest.mark.parametrize("case", NODE_CASES[::EVERY], ids=lambda case: case.name)
def test_compiled(case: Case) -> None:
    check(case, "c")
