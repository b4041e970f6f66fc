"""The node cases of the ONNX suite: all through the interpreter, one of each kind through the whole compiler to C.

What the importer makes of a case is the same for both, and C of every operation and element type is compared with the
interpreter in tests/unit/compiled. All cases, and the light models, which take longer, run in C by
`python -m tests.conformance --executor c`.
"""

from collections.abc import Iterable, Iterator

import pytest

from tests.conformance.backend import Executor
from tests.conformance.expectations import read_expectations
from tests.conformance.running import run_cases
from tests.conformance.suite import Case, cases
from tests.covering import LARGE

NODE_CASES = list(cases(frozenset({"node"})))


def of_each_kind(among: Iterable[Case]) -> Iterator[Case]:
    """The first case of each set of operators on some element types, and what fails in C alone."""
    seen = set[object]()
    alone = read_expectations("c").keys() - read_expectations("interp").keys()
    for case in among:
        assert case.model is not None
        graph = case.model.graph
        types = tuple(info.type.tensor_type.elem_type for info in graph.input)
        kind = (frozenset(node.op_type for node in graph.node), types)
        if LARGE or case.name in alone or (kind not in seen and not case.name.endswith("_expanded")):
            seen.add(kind)
            yield case


def check(case: Case, executor: Executor) -> None:
    (outcome,) = run_cases([case], executor, seconds=120)
    expected = read_expectations(executor).get(case.name)
    if expected is None:
        assert outcome.passed, outcome.reason
    else:
        assert not outcome.passed, "it passes now: take it out of expected_failures.txt"


@pytest.mark.parametrize("case", NODE_CASES, ids=lambda case: case.name)
def test_interpreted(case: Case) -> None:
    check(case, "interp")


@pytest.mark.parametrize("case", list(of_each_kind(NODE_CASES)), ids=lambda case: case.name)
def test_compiled(case: Case) -> None:
    check(case, "c")
