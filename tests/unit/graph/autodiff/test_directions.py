"""Forward and reverse mode of every operation agree, on shapes of all kinds, with each other and with differences.

Along a direction v of the inputs and for weights w of the results: w . (J v) = (J^T w) . v, and J v is the change of
the results along v. J^T w comes from the pass `grad`; J v from the same pass applied to that once more, by w.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from msc.interp import evaluate
from msc.support.diagnostics import MscError
from tests.unit.compiled.operations import OF_SEVERAL_RANKS, cases_of, random_cases
from tests.unit.compiled.programs import Case
from tests.unit.dialects.conftest import CASES
from tests.unit.graph.autodiff.counterparts import COUNTERPARTS, WITHOUT
from tests.unit.graph.autodiff.differences import STEP, Array, differentiated, inputs_of, module_of
from tests.unit.graph.autodiff.test_central_differences import FLOATS, differentiable

JUMPS = re.compile(r"ms\.(floor|ceil|round|trunc|sign|floor_div|rem|mod|stop_gradient)\b")
"""Their derivative is that between jumps, or none; central differences step over them."""


def operation_of(case: Case) -> str:
    return case[0].split()[0]


def _results(case: Case) -> Sequence[Array]:
    """What an operation gives. Raises MscError where an index is outside of it."""
    return evaluate(module_of(case), inputs_of(case, np.random.default_rng(5)), {})


def is_checked(case: Case) -> bool:
    """Whether an operation has derivatives and gives numbers: no maximum of nothing, no index outside."""
    if not differentiable(case) or "reduce_max(x0" in case[0]:
        return False
    try:
        return all(np.isfinite(r).all() for r in _results(case) if r.dtype == np.float64)
    except MscError:
        return False


def check(case: Case) -> None:
    """Raises AssertionError where the two modes differ."""
    rng = np.random.default_rng(5)
    module, inputs = module_of(case), inputs_of(case, rng)
    variables = tuple(k for k, a in enumerate(inputs) if a.dtype == np.float64)
    results = _results(case)
    floats = [k for k, r in enumerate(results) if r.dtype == np.float64]
    weights = [np.asarray(rng.uniform(-1, 1, results[k].shape)) for k in floats]
    directions = [np.asarray(rng.uniform(-1, 1, inputs[k].shape)) for k in variables]
    pull_back = differentiated(module, inputs=variables, sens=True)
    pulled = evaluate(pull_back, [*inputs, *weights], {})
    dual = tuple(range(len(inputs), len(inputs) + len(weights)))
    push_forward = differentiated(pull_back, inputs=dual, sens=True)
    pushed = evaluate(push_forward, [*inputs, *weights, *directions], {})
    one = sum(float((w * t).sum()) for w, t in zip(weights, pushed, strict=True))
    other = sum(float((v * g).sum()) for v, g in zip(directions, pulled, strict=True))
    size = sum(float(np.abs(w * t).sum()) for w, t in zip(weights, pushed, strict=True))
    assert one == pytest.approx(other, rel=1e-9, abs=1e-9 * max(1.0, size))
    if JUMPS.match(case[0]) or "inf" in case[0]:
        return
    steps: list[list[Array]] = []
    for h in (STEP, -STEP):
        moved = list(inputs)
        for k, v in zip(variables, directions, strict=True):
            moved[k] = inputs[k] + h * v
        steps.append([evaluate(module, moved, {})[k] for k in floats])
    for found, up, down in zip(pushed, *steps, strict=True):
        change = (up - down) / (2 * STEP)
        np.testing.assert_allclose(found, change, rtol=1e-4, atol=2e-6 * max(1.0, float(np.abs(change).max(initial=0))))


SHAPED = [case for case in cases_of("f64") if is_checked(case)]


@pytest.mark.parametrize("case", SHAPED, ids=[" | ".join(case) for case in SHAPED])
def test_both_modes_agree(case: Case) -> None:
    check(case)


@given(cases=random_cases(6))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_both_modes_agree_on_any_shape(cases: list[Case]) -> None:
    for case in cases:
        if is_checked(case):
            check(case)


def test_every_differentiable_operation_is_checked() -> None:
    """A new operation with floats is in CASES (`test_every_operation_is_tested`), so in both lists of gradients."""
    wanted = {operation_of(case) for case in CASES if differentiable(case)}
    assert wanted
    assert wanted <= {operation_of(case) for case in FLOATS}
    assert wanted - OF_SEVERAL_RANKS <= {operation_of(case) for case in SHAPED}


def test_every_differentiable_operation_has_a_counterpart_in_pytorch_or_a_reason() -> None:
    assert not COUNTERPARTS.keys() & WITHOUT.keys()
    assert {f"ms.{name}" for name in (*COUNTERPARTS, *WITHOUT)} == {operation_of(case) for case in SHAPED}


def test_an_instance_norm_of_rows_as_long_as_there_are_channels() -> None:
    """The shape that splits channels into rows is that of the input, [n, c, 1, c], where it says nothing."""
    check(("ms.instance_norm %0, %1, %2", "2x3x1x3xf64 3xf64 3xf64"))
    check(("ms.group_norm %0, %1, %2 {num_groups = 3}", "2x3x1x3xf64 3xf64 3xf64"))
