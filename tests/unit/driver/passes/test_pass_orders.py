"""Pipelines in any order: a contract refuses a pass where it cannot run, and what runs computes the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from xdsl.passes import ModulePass

from msc.backends.registry import find_backend
from msc.backends.stage import PassRun
from msc.driver.passes.instances import pass_instances
from msc.driver.passes.pass_manager import PassManager
from msc.driver.passes.registry import new_context
from msc.interp import evaluate, evaluate_loops
from msc.ir.reading import parse_module
from msc.support.diagnostics import MscError
from msc.support.failures import is_internal
from tests.unit.compiled.effort import EFFORT

TEXT = """func.func @main(%x: tensor<2x3x6x6xf32>, %w: tensor<4x3x3x3xf32>, %m: tensor<16x5xf32>) -> tensor<8x5xf32> {
  %c = ms.conv2d %x, %w : (tensor<2x3x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x4x4xf32>
  %r = ms.relu %c : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
  %f = ms.reshape %r {shape = array<i64: 8, 16>} : (tensor<2x4x4x4xf32>) -> tensor<8x16xf32>
  %p = ms.matmul %f, %m : (tensor<8x16xf32>, tensor<16x5xf32>) -> tensor<8x5xf32>
  %s = ms.softmax %p : (tensor<8x5xf32>) -> tensor<8x5xf32>
  func.return %s : tensor<8x5xf32>
}"""
USUAL = [run for stage in find_backend("cpu").table.stages for run in stage.passes]


@st.composite
def orders(draw: st.DrawFn) -> list[PassRun]:
    """The usual passes, some of them left out, some at another place, some twice."""
    passes = list(USUAL)
    for _ in range(draw(st.integers(1, 3))):
        taken = passes.pop(draw(st.integers(0, len(passes) - 1)))
        for _ in range(draw(st.integers(0, 2))):
            passes.insert(draw(st.integers(0, len(passes))), taken)
    return passes


@EFFORT
@given(orders())
def test_any_order_is_refused_or_right(passes: Sequence[PassRun]) -> None:
    module = parse_module(new_context(), TEXT, "test.mir")
    module.verify()
    random = np.random.default_rng(0)
    inputs = [random.normal(size=shape).astype(np.float32) for shape in ((2, 3, 6, 6), (4, 3, 3, 3), (16, 5))]
    expected = evaluate(module, inputs, {})
    instances: Sequence[ModulePass] = pass_instances(passes, {})
    try:
        PassManager(new_context(), {}).run(module, instances)
    except MscError as error:
        if is_internal(error):
            raise
        return
    ran = any(op.name.startswith("loop.") for op in module.walk())
    found = (evaluate_loops if ran else evaluate)(module, inputs, {})
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-6)
