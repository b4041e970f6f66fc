"""Products of floats of 16 bits: off by no more than the page on numerics says, in the interpreter and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msc
from msc import nn
from msc.dialects.ms.structure import ParameterOp
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.graph.lower_precision import lower_precision
from msc.interp import evaluate
from msc.support.diagnostics import MscError
from tests.unit.compiled.programs import parsed

TEXT = """
func.func @main(%x: tensor<2x3x6x6xf32>, %w: tensor<8x3x3x3xf32>, %b: tensor<8xf32>, %v: tensor<288x7xf32>,
    %u: tensor<5x7xf32>, %c: tensor<5xf32>) -> (tensor<2x8x6x6xf32>, tensor<2x7xf32>, tensor<2x5xf32>) {
  %0 = ms.conv2d %x, %w, %b {pad_mode = "pad", pad = [1, 1, 1, 1]}
  %1 = ms.reshape %x {shape = [2, 108]}
  %2 = ms.concat %1, %1, %1 {axis = 1}
  %3 = ms.slice %2 {begin = [0, 0], end = [2, 288]}
  %4 = ms.matmul %3, %v
  %5 = ms.slice %2 {begin = [0, 0], end = [2, 7]}
  %6 = ms.dense %5, %u, %c
  func.return %0, %4, %6 : tensor<2x8x6x6xf32>, tensor<2x7xf32>, tensor<2x5xf32>
}
"""
SHAPES = ((2, 3, 6, 6), (8, 3, 3, 3), (8,), (288, 7), (5, 7), (5,))


@pytest.mark.parametrize(("dtype", "unit"), [("bf16", 2.0**-9), ("f16", 2.0**-12)])
def test_sums_of_products_are_off_by_their_share_of_the_magnitudes(dtype: str, unit: float) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in SHAPES]
    sizes = [np.abs(array) for array in arrays]
    exact, most = (evaluate(parsed(TEXT), given, {}) for given in (arrays, sizes))
    module = parsed(TEXT)
    assert lower_precision(module, dtype) == 3
    for got, want, size in zip(evaluate(module, arrays, {}), exact, most, strict=True):
        error = np.abs(np.asarray(got) - np.asarray(want))
        assert error.max() > 0
        assert (error <= (2 * unit + unit * unit + 1e-6) * np.asarray(size)).all()


def test_weights_are_stored_in_16_bits(tmp_path: Any) -> None:
    msc.set_seed(2)
    net, x = nn.Dense(64, 48), np.random.default_rng(1).normal(size=(3, 64)).astype(np.float32)
    exact = net(msc.Tensor(x)).asnumpy()
    got = np.asarray(msc.compile(net, x, precision="bf16")(x))
    assert 0 < np.abs(got - exact).max() < 0.02 * np.abs(exact).max()
    msc.export(net, x, file_name=str(tmp_path / "net.mir"))
    found = compile_model(str(tmp_path / "net.mir"), CompileOptions(precision="bf16"), "gk").module
    kinds = [str(op.type) for op in found.walk() if isinstance(op, ParameterOp)]
    assert any("bf16" in kind for kind in kinds)
    with pytest.raises(MscError, match="MSC0008"):
        msc.compile(net, x, precision="bf15")
