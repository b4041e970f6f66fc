"""The node cases of the ONNX suite, all of them: through the interpreter, and through the whole compiler down to C.

The light models take longer, and are run by `python -m tests.conformance --kinds real,real-random --executor c`.
"""

import pytest

from tests.conformance.backend import PREPARE, Executor
from tests.conformance.expectations import read_expectations
from tests.conformance.running import run_cases
from tests.conformance.suite import Case, cases

NODE_CASES = list(cases(frozenset({"node"})))


@pytest.mark.parametrize("executor", PREPARE)
@pytest.mark.parametrize("case", NODE_CASES, ids=lambda case: case.name)
def test_node(case: Case, executor: Executor) -> None:
    (outcome,) = run_cases([case], executor, seconds=120)
    expected = read_expectations(executor).get(case.name)
    if expected is None:
        assert outcome.passed, outcome.reason
    else:
        assert not outcome.passed, "it passes now: take it out of expected_failures.txt"
