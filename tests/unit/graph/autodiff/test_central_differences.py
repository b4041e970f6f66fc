"""The gradient of every operation of the ms dialect beside central differences, and of the gradient once more."""

from __future__ import annotations

import re

import numpy as np
import pytest

from msc.dialects.ms.base import MsOp
from msc.graph.autodiff.reverse import has_gradient
from msc.interp import evaluate
from tests.unit.compiled.programs import Case
from tests.unit.dialects.conftest import CASES
from tests.unit.graph.autodiff.differences import central_differences, differentiated, inputs_of, module_of

REFUSED = re.compile(r'ms\.(bit_cast|all_slice|packed_matmul|packed_dot)\b|ms\.reduce_scatter .*"(prod|max|min)"')
"""Operations on floats that are refused a gradient; `tests/unit/parallel` looks at the collectives' refusals."""


def differentiable(case: Case) -> bool:
    if REFUSED.match(case[0]):
        return False
    op = next(op for op in module_of(case).walk() if isinstance(op, MsOp))
    return any(map(has_gradient, op.result_types)) and any(has_gradient(v.type) for v in op.operands)


FLOATS = list({case: None for case in CASES if differentiable(case)})


@pytest.mark.parametrize("case", FLOATS, ids=[" | ".join(case) for case in FLOATS])
@pytest.mark.parametrize("order", [1, 2])
def test_gradients_are_those_of_central_differences(case: Case, order: int) -> None:
    module = module_of(case)
    rng = np.random.default_rng(7)
    inputs = inputs_of(case, rng)
    variables = tuple(k for k, a in enumerate(inputs) if a.dtype == np.float64)
    for _ in range(order - 1):
        module = differentiated(module, inputs=variables, sens=True)
        results = evaluate(module_of(case), inputs, {})
        inputs = [*inputs, *(np.asarray(rng.uniform(-1, 1, r.shape)) for r in results if r.dtype == np.float64)]
        variables = tuple(k for k, a in enumerate(inputs) if a.dtype == np.float64)
    before = evaluate(module, inputs, {})
    seeds = [np.asarray(rng.uniform(-1, 1, r.shape)) for r in before]
    gradient = differentiated(module, inputs=variables, sens=True)
    found = evaluate(gradient, [*inputs, *seeds], {})
    for index, value in zip(variables, found, strict=True):
        if "stop_gradient" in case[0]:
            assert not value.any()
        else:
            expected = central_differences(module, inputs, index, seeds)
            np.testing.assert_allclose(value, expected, rtol=2e-5, atol=2e-7 * max(1, np.abs(expected).max(initial=0)))
