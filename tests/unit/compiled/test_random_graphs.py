"""Random graphs through the whole compiler, against the interpreter: targets, threads, vector widths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given

from msc.schedule import threads as thread_sharing
from tests.unit.compiled.effort import EFFORT
from tests.unit.compiled.programs import Array, compiled, interpreted
from tests.unit.compiled.random_graphs import programs


def random_inputs(text: str) -> list[Array]:
    """Floats around 0; indices below every size that a gathered axis has, negative ones too."""
    rng = np.random.default_rng(0)
    head = text.split(" -> ")[0]
    arrays: list[Array] = []
    for type_ in re.findall(r"tensor<([^>]*)>", head):
        *sizes, dtype = type_.split("x")
        shape = tuple(map(int, sizes))
        floats = np.asarray(rng.standard_normal(shape), np.float32)
        arrays.append(floats if dtype == "f32" else np.asarray(rng.integers(-1, 1, shape), np.int32))
    return arrays


def check(text: str, folder: Path, march: str, threads: int) -> None:
    arrays = random_inputs(text)
    assert_near(compiled(text, folder, march, threads).results(*arrays), interpreted(text, arrays))


def assert_near(actual: Sequence[Array], expected: Sequence[Array]) -> None:
    for got, wanted in zip(actual, expected, strict=True):
        if wanted.dtype.kind != "f":
            np.testing.assert_array_equal(got, wanted)
            continue
        scale = float(np.max(np.abs(wanted), initial=1.0))
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4 * scale)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("march", ["native", "generic", "x86-64-v3"])
def test_graphs(tmp_path_factory: pytest.TempPathFactory, march: str, threads: int) -> None:
    @EFFORT
    @given(programs())
    def run(text: str) -> None:
        check(text, tmp_path_factory.mktemp("graph"), march, threads)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thread_sharing.Surroundings, "cost", Mock(return_value=float("-inf")))
        run()
