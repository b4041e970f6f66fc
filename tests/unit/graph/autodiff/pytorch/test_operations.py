"""Values and gradients of every differentiable operation beside PyTorch's, in f64 and f32, on shapes of all kinds."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from msc.dialects.ms.base import MsOp
from msc.interp import evaluate
from tests.unit.compiled.operations import random_cases
from tests.unit.compiled.programs import Case, parsed, program_text
from tests.unit.graph.autodiff.counterparts import COUNTERPARTS
from tests.unit.graph.autodiff.differences import Array, differentiated, inputs_of, module_of
from tests.unit.graph.autodiff.test_directions import SHAPED, is_checked, operation_of

torch: Any = importlib.import_module("torch")
TOLERANCES = {"f64": 1e-9, "f32": 2e-5}
"""Relative to an element, or to the largest one."""


def module_in(case: Case, dtype: str) -> ModuleOp:
    """The program of a case on operands of a float type."""
    if dtype == "f64":
        return module_of(case)
    return parsed(program_text([(case[0], re.sub(r"\b(f16|bf16|f64)\b|(?<=x)(f16|bf16|f64)\b", dtype, case[1]))]))


def in_pytorch(op: Any, inputs: Sequence[Array], seeds: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """The results of an operation, and the gradients by its floats of the results' sum, with `seeds` as counts."""
    floats = [a.dtype.kind == "f" for a in inputs]
    tensors = [
        torch.tensor(a if f or a.dtype == bool else a.astype(np.int64)) for a, f in zip(inputs, floats, strict=True)
    ]
    for tensor, is_float in zip(tensors, floats, strict=True):
        tensor.requires_grad_(is_float)
    found = COUNTERPARTS[op.name.removeprefix("ms.")](torch, op, *tensors)
    results: list[Any] = [*found] if isinstance(found, tuple) else [found]
    total: Any = sum((r.double() * torch.tensor(s)).sum() for r, s in zip(results, seeds, strict=True))
    variables = [t for t, is_float in zip(tensors, floats, strict=True) if is_float]
    if total.requires_grad:
        gradients = torch.autograd.grad(total, variables, allow_unused=True, materialize_grads=True)
    else:
        gradients = [torch.zeros_like(v) for v in variables]
    return [r.detach().double().numpy() for r in results], [g.numpy() for g in gradients]


def check(case: Case, dtype: str) -> None:
    """Raises AssertionError where a value or a gradient is not PyTorch's."""
    module = module_in(case, dtype)
    op: Any = next(op for op in module.walk() if isinstance(op, MsOp))
    if dtype == "f32" and op.name == "ms.layer_norm" and math.prod(op.shape(1)) <= 2:
        return  # a row of one or two elements becomes 0, or -1 and 1: the gradient is rounding errors by a deviation
    rng = np.random.default_rng(5)
    inputs = [a.astype(np.float32) if dtype == "f32" and a.dtype.kind == "f" else a for a in inputs_of(case, rng)]
    variables = tuple(k for k, a in enumerate(inputs) if a.dtype.kind == "f")
    own = evaluate(module, inputs, {})
    seeds = [rng.integers(-8, 9, r.shape) / 8 for r in own]
    gradient = differentiated(module, inputs=variables, sens=True)
    pulled = evaluate(gradient, [*inputs, *(s.astype(r.dtype) for s, r in zip(seeds, own, strict=True))], {})
    values, gradients = in_pytorch(op, inputs, seeds)
    for found, expected in zip((*own, *pulled), (*values, *gradients), strict=True):
        tolerance = TOLERANCES[dtype] if op.result_dtype() in ("f64", dtype) else 1e-2
        expected = expected.astype(np.float64)
        size = np.abs(expected[np.isfinite(expected)]).max(initial=0)
        np.testing.assert_allclose(found.astype(np.float64), expected, tolerance, tolerance * max(1.0, float(size)))


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", COUNTERPARTS)
def test_values_and_gradients_are_those_of_pytorch(name: str, dtype: str) -> None:
    for case in SHAPED:
        if operation_of(case) == f"ms.{name}":
            check(case, dtype)


@pytest.mark.parametrize("name", COUNTERPARTS)
def test_so_they_are_on_any_shape(name: str) -> None:
    known = [case for case in SHAPED if operation_of(case) == f"ms.{name}"]

    @given(cases=random_cases(3, known), dtype=st.sampled_from(list(TOLERANCES)))
    @settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
    def check_all(cases: list[Case], dtype: str) -> None:
        for case in filter(is_checked, cases):
            check(case, dtype)

    check_all()
