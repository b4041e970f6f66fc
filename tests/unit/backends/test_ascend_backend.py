"""Models on simulated Ascend machines compute what the CPU's code does."""

from pathlib import Path

import numpy as np

import msc

ROOT = Path(__file__).parents[3]


def test_lenet5_computes_the_same_on_ascend910b1() -> None:
    path = str(ROOT / "samples" / "lenet5" / "lenet5.mir")
    image = np.random.default_rng(1).standard_normal((1, 1, 28, 28), np.float32)
    [expected], [found] = (msc.compile(path, target=t).results(image) for t in ("cpu", "ascend910b1"))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
