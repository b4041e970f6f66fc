"""Positions of extremes are found on the vector unit, and are the interpreter's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msc.dialects.arrays import Array
from msc.dialects.davinci import DavinciKernelOp
from msc.dialects.davinci.kernels import scalar_cycles
from tests.unit.simulated import Compared, compared

INPUTS = {"x": "13x1000xf32", "h": "6x5x70xf16", "b": "9x33xbf16", "q": "4x50xi8", "n": "7x20xi32"}
OPERATIONS = (
    ("argmax", "x", "{axis = 1}", "13xi64"),
    ("argmax", "x", "{axis = 1, keep_dims = true, select_last = true}", "13x1xi64"),
    ("argmin", "x", "{axis = 0}", "1000xi64"),
    ("argmin", "h", "{axis = 2}", "6x5xi64"),
    ("argmax", "h", "{axis = 1}", "6x70xi64"),
    ("argmax", "b", "{axis = -1}", "9xi64"),
    ("argmin", "q", "{axis = 1}", "4xi64"),
    ("argmax", "n", "{axis = 1}", "7xi64"),
)


def _draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers of which many are the same; every seventh row of floats has a NaN."""
    numbers = rng.integers(-9, 9, shape)
    if shape[-1] in (20, 50):
        return numbers
    found = numbers.astype(np.float64)
    found.reshape(-1, shape[-1])[::7, 11] = np.nan
    return found


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    arguments = ", ".join(f"%{name}: tensor<{shape}>" for name, shape in INPUTS.items())
    lines = [
        f"  %{k} = ms.{name} %{x} {attributes} : (tensor<{INPUTS[x]}>) -> tensor<{result}>"
        for k, (name, x, attributes, result) in enumerate(OPERATIONS)
    ]
    results = ", ".join(f"tensor<{operation[3]}>" for operation in OPERATIONS)
    names = ", ".join(f"%{k}" for k in range(len(OPERATIONS)))
    body = "\n".join([*lines, f"  func.return {names} : {results}"])
    path: Path = tmp_path_factory.mktemp("positions") / "positions.mir"
    path.write_text(f"func.func @main({arguments}) -> ({results}) {{\n{body}\n}}", "utf-8")
    return compared(path, "ascend910b1", _draw)


@pytest.mark.parametrize("number", range(len(OPERATIONS)), ids=[" ".join(o[:3]) for o in OPERATIONS])
def test_positions_agree(number: int, both: Compared) -> None:
    np.testing.assert_array_equal(both.found[number], both.expected[number])


def test_the_scalar_unit_only_widens_what_the_vector_unit_has_found(both: Compared) -> None:
    """But for i32, of which the vector unit has no reductions."""
    kernels = [op for op in both.module.body.block.ops if isinstance(op, DavinciKernelOp)]
    scalar = [op.sym_name.data for op in kernels if scalar_cycles(op) is not None]
    assert [name for name in scalar if not name.endswith("_cast_core")] == [
        name for name in scalar if name.endswith("_reduce_max_equal_select_reduce_min_core")
    ]
    assert len(kernels) - len(scalar) >= len(OPERATIONS) - 1
