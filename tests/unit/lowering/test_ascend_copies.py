"""Kernels that only move data go through UB, on as many cores as pay, and give what the interpreter gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msc.dialects.davinci import KernelOp
from msc.dialects.davinci.kernels import scalar_cycles
from tests.unit.simulated import Compared, compared

TARGET = "ascend910b1"
INPUTS = {"x": "300x517xf32", "t": "2x3x5x7xf16", "q": "3x40x33xi8", "b": "9x70xbf16", "m": "6x5x4xi1", "i": "65x3xi32"}
OPERATIONS = (
    ("transpose", "x", "{perm = [1, 0]}", "517x300xf32"),
    ("transpose", "t", "{perm = [0, 2, 3, 1]}", "2x5x7x3xf16"),
    ("transpose", "t", "{perm = [3, 1, 2, 0]}", "7x3x5x2xf16"),
    ("transpose", "q", "{perm = [1, 2, 0]}", "40x33x3xi8"),
    ("transpose", "q", "{perm = [1, 0, 2]}", "40x3x33xi8"),
    ("transpose", "b", "{perm = [1, 0]}", "70x9xbf16"),
    ("transpose", "m", "{perm = [2, 0, 1]}", "4x6x5xi1"),
    ("transpose", "i", "{perm = [1, 0]}", "3x65xi32"),
    ("pad", "x", "{pad = [1, 2, 0, 5]}", "301x524xf32"),
    ("pad", "q", "{pad = [0, 1, 2, 0, 1, 1], value = -3.0}", "3x42x36xi8"),
    ("pad", "b", '{pad = [1, 0, 0, 3], value = "-inf"}', "10x73xbf16"),
    ("slice", "x", "{begin = [3, 5], end = [290, 400], strides = [2, 1]}", "144x395xf32"),
    ("slice", "x", "{begin = [3, 5], end = [290, 400], strides = [2, 3]}", "144x132xf32"),
    ("slice", "x", "{begin = [0, 1], end = [300, 517], strides = [1, 50]}", "300x11xf32"),
    ("slice", "q", "{begin = [0, 1, 2], end = [3, 40, 33], strides = [1, 1, 2]}", "3x39x16xi8"),
    ("slice", "i", "{begin = [5, 2], end = [64, 3], strides = [4, 1]}", "15x1xi32"),
    ("concat", "t, %t", "{axis = 1}", "2x6x5x7xf16"),
    ("concat", "i, %i, %i", "{axis = 0}", "195x3xi32"),
)


def _text() -> str:
    arguments = ", ".join(f"%{name}: tensor<{shape}>" for name, shape in INPUTS.items())
    lines = list[str]()
    for k, (name, operands, attributes, result) in enumerate(OPERATIONS):
        types = ", ".join(f"tensor<{INPUTS[operand.strip(' %')]}>" for operand in operands.split(","))
        lines.append(f"  %{k} = ms.{name} %{operands} {attributes} : ({types}) -> tensor<{result}>")
    results = ", ".join(f"tensor<{result}>" for *_, result in OPERATIONS)
    names = ", ".join(f"%{k}" for k in range(len(OPERATIONS)))
    return (
        f"func.func @main({arguments}) -> ({results}) {{\n"
        + "\n".join(lines)
        + f"\n  func.return {names} : {results}\n}}"
    )


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    path: Path = tmp_path_factory.mktemp("copies") / "copies.mir"
    path.write_text(_text())
    return compared(path, TARGET, lambda rng, shape: rng.integers(-100, 100, shape))


@pytest.mark.parametrize("number", range(len(OPERATIONS)), ids=lambda k: f"{OPERATIONS[k][0]} {OPERATIONS[k][3]}")
def test_copies_agree(number: int, both: Compared) -> None:
    np.testing.assert_array_equal(both.found[number], both.expected[number])


def test_the_scalar_unit_copies_nothing(both: Compared) -> None:
    kernels = [op for op in both.module.body.block.ops if isinstance(op, KernelOp)]
    assert kernels
    assert not [op.sym_name.data for op in kernels if scalar_cycles(op) is not None]
    assert max(op.blocks.value.data for op in kernels) > 1
