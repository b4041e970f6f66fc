"""The bounds of the tests tell wrong results from right ones, however small these are."""

from __future__ import annotations

import numpy as np
import pytest

from msc.dialects.arrays import numpy_dtype
from msc.dialects.ms import OPERATIONS, rounding
from tests.unit.compiled.values import ELEMENTARY, EXACT, assert_close
from tests.unit.graph.expand.test_expanders import STRUCTURAL

SMOOTH = ("softmax", "sigmoid", "gelu", "layer_norm", "reduce_sum", "matmul", "avg_pool2d", "l2_normalize")


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("length", [1, 5, 17, 100, 700, 30011])
def test_a_softmax_of_zeros_is_wrong(dtype: str, length: int) -> None:
    scores = np.random.default_rng(length).uniform(-3, 3, (2, length))
    powers = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    expected = powers.astype(numpy_dtype(dtype))
    assert_close("ms.softmax %0", f"2x{length}x{dtype}", expected, expected)
    with pytest.raises(AssertionError):
        assert_close("ms.softmax %0", f"2x{length}x{dtype}", np.zeros_like(expected), expected)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", SMOOTH)
def test_results_of_a_percent_more_are_wrong(dtype: str, name: str) -> None:
    """Of elements that are no small differences of large numbers; small magnitudes are bounded as large ones are."""
    assert f"ms.{name}" not in EXACT
    expected = np.random.default_rng(0).uniform(1e-3, 2e-3, (4, 4)).astype(numpy_dtype(dtype))
    more = (expected.astype(np.float64) * 1.02).astype(expected.dtype)
    with pytest.raises(AssertionError):
        assert_close(f"ms.{name} %0", f"4x4x{dtype} 4x4x{dtype}", more, expected)


@pytest.mark.parametrize("names", [EXACT, ELEMENTARY, STRUCTURAL, rounding.EXACT])
def test_lists_of_operations_name_operations(names: frozenset[str]) -> None:
    assert names <= {operation.name for operation in OPERATIONS}
