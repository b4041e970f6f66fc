"""Activations of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Run: TypeAlias = Callable[..., npt.NDArray[Any]]


def test_clip_of_integers_stays_in_their_type(run: Run) -> None:
    np.testing.assert_array_equal(run("clip", np.array([-128, 5, 127], np.int8), min=-100.0, max=100.0), [-100, 5, 100])
