"""Reductions over more than UB holds run on the vector unit, chunk by chunk, and give what the interpreter gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msc.dialects.davinci import DavinciKernelOp
from msc.dialects.davinci.kernels import scalar_cycles
from tests.unit.simulated import Compared, compared

MODEL = Path(__file__).with_name("ascend_chunks.mir")


@pytest.fixture(scope="module")
def both() -> Compared:
    return compared(MODEL, "ascend910b1", lambda rng, shape: rng.standard_normal(shape) + 1)


@pytest.mark.parametrize("k", range(4), ids=["sum", "maximum of rows", "sum of columns", "mean of squares"])
def test_results(k: int, both: Compared) -> None:
    np.testing.assert_allclose(both.found[k], both.expected[k], rtol=2e-6)


def test_the_vector_unit_runs_them_on_a_core_for_each_row(both: Compared) -> None:
    kernels = [op for op in both.module.body.block.ops if isinstance(op, DavinciKernelOp)]
    assert all(scalar_cycles(op) is None for op in kernels)
    assert sorted(op.blocks.value.data for op in kernels) == [1, 1, 2, 3]
