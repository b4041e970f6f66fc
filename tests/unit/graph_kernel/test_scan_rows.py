"""Pass `scan-rows`: the interpreter's sums in all forms, and what is left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.scf import ForOp

import msc
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.interp import evaluate
from tests.unit.compiled.programs import Array

SHAPES = [((7, 5, 33), 1, 2), ((40, 3, 16), 0, 1), ((3, 11, 29), 2, 1), ((9, 200), 0, 1), ((2, 3, 4, 64), 2, 2)]
"""Each with an axis, and how many loops there are inside each other."""


def written(folder: Path, shape: tuple[int, ...], dtype: str, properties: str) -> Path:
    type_ = f"tensor<{'x'.join(map(str, shape))}x{dtype}>"
    path = folder / "model.mir"
    path.write_text(
        f'func.func @main(%x: {type_} {{ms.name = "x"}}) -> {type_} {{\n'
        f"  %y = ms.cumsum %x {{{properties}}}\n  func.return %y : {type_}\n}}\n"
    )
    return path


def loops(path: Path) -> int:
    module = compile_model(str(path), CompileOptions(march="x86-64-v3"), "gk").module
    return sum(isinstance(op, ForOp) for op in module.walk())


@pytest.mark.parametrize(("shape", "axis", "depth"), SHAPES)
@pytest.mark.parametrize("exclusive", [False, True])
def test_sums(tmp_path: Path, shape: tuple[int, ...], axis: int, depth: int, exclusive: bool) -> None:
    path = written(tmp_path, shape, "f32", f"axis = {axis}, exclusive = {str(exclusive).lower()}")
    assert loops(path) == depth
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    through = np.cumsum(x, axis, dtype=np.float32)
    zeros = np.zeros_like(np.take(x, [0], axis))
    before = np.concatenate([zeros, np.delete(through, -1, axis)], axis)
    for threads in (1, 2):
        np.testing.assert_array_equal(msc.compile(path, threads=threads)(x), before if exclusive else through)


@pytest.mark.parametrize("dtype", ["f16", "i8", "i64", "ui16", "f64"])
def test_element_types(tmp_path: Path, dtype: str) -> None:
    path = written(tmp_path, (3, 30, 64), dtype, "axis = 1")
    assert loops(path) == 2
    model = msc.compile(path)
    x: Array = np.random.default_rng(0).integers(0, 9, (3, 30, 64)).astype(model.inputs[0].dtype)
    (expected,) = evaluate(compile_model(str(path), CompileOptions(), "graph").module, [x], {})
    np.testing.assert_array_equal(model(x), expected)


@pytest.mark.parametrize(
    ("shape", "properties"),
    [((2003,), "axis = 0"), ((3, 50), "axis = 1"), ((9, 64), "axis = 0, reverse = true"), ((1, 64), "axis = 0")],
)
def test_left_alone(tmp_path: Path, shape: tuple[int, ...], properties: str) -> None:
    assert loops(written(tmp_path, shape, "f32", properties)) == 0
