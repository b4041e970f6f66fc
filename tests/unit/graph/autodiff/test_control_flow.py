"""Gradients of branches, loops and calls beside central differences, twice over, and in compiled C."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from msc.dialects.ms.shapes import shape_of
from msc.interp import evaluate
from msc.ir.locations import format_module
from msc.ir.typed import tensor_type
from tests.unit.compiled.programs import compiled, parsed
from tests.unit.graph.autodiff.differences import Array, central_differences, differentiated

COUNTS = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %c9 = arith.constant 9 : index
  %zero = ms.constant dense<0.0> : tensor<f64>
"""

BRANCH_IN_LOOP = """
  %r = scf.for %i = %c1 to %c9 step %c2 iter_args(%a = %x) -> (tensor<3xf64>) {
    %s = ms.sin %a
    %m = ms.mul %s, %w
    %k = ms.add %m, %x
    %t = ms.reduce_sum %m
    %q = ms.greater %t, %zero
    %qq = tensor.extract %q[] : tensor<i1>
    %v = scf.if %qq -> (tensor<3xf64>) {
      %e = ms.mul %k, %a
      scf.yield %e : tensor<3xf64>
    } else {
      %e = ms.tanh %w
      %f = ms.add %e, %a
      scf.yield %f : tensor<3xf64>
    }
    scf.yield %v : tensor<3xf64>
  }
"""

LOOP_IN_LOOP = """
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %x) -> (tensor<3xf64>) {
    %n = arith.index_cast %i : index to i64
    %t = tensor.from_elements %n : tensor<i64>
    %f = ms.cast %t {dtype = f64}
    %b, %d = scf.for %j = %c0 to %c2 step %c1 iter_args(%b = %a, %d = %w) -> (tensor<3xf64>, tensor<3xf64>) {
      %p = ms.mul %b, %d
      %q = ms.sin %p
      scf.yield %q, %b : tensor<3xf64>, tensor<3xf64>
    }
    %s = ms.add %b, %d
    %g = ms.mul %s, %f
    scf.yield %g : tensor<3xf64>
  }
"""

COUNTED = """
  %n0 = ms.constant dense<0> : tensor<i64>
  %r, %n = scf.while (%a = %x, %m = %n0) : (tensor<3xf64>, tensor<i64>) -> (tensor<3xf64>, tensor<i64>) {
    %four = ms.constant dense<4> : tensor<i64>
    %q = ms.less %m, %four
    %qq = tensor.extract %q[] : tensor<i1>
    %a2 = ms.mul %a, %w
    scf.condition(%qq) %a2, %m : tensor<3xf64>, tensor<i64>
  } do {
  ^bb0(%a : tensor<3xf64>, %m : tensor<i64>):
    %s = ms.sin %a
    %k = ms.add %s, %x
    %one = ms.constant dense<1> : tensor<i64>
    %m1 = ms.add %m, %one
    scf.yield %k, %m1 : tensor<3xf64>, tensor<i64>
  } attributes {ms.bound = 6}
"""

NEVER = COUNTED.replace("dense<4>", "dense<0>")

SCAN = """
  %empty = tensor.empty() : tensor<5x3xf64>
  %h, %table = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %x, %t = %empty) -> (tensor<3xf64>, tensor<5x3xf64>) {
    %n = arith.index_cast %i : index to i64
    %k = tensor.from_elements %n : tensor<i64>
    %z = ms.mul %h, %w
    %y = ms.tanh %z
    %u = ms.insert_slice %t, %k, %y
    scf.yield %y, %u : tensor<3xf64>, tensor<5x3xf64>
  }
  %sq = ms.square %table
  %r = ms.reduce_sum %sq {axis = 0}
"""

CALL = """
  %a = func.call @f(%x, %w) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %r = func.call @f(%a, %x) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
"""
CALLED = """
func.func private @f(%x: tensor<3xf64>, %y: tensor<3xf64>) -> tensor<3xf64> {
  %e = ms.exp %x
  %r = ms.mul %e, %y
  func.return %r : tensor<3xf64>
}
"""

BODIES = {
    "branch in loop": BRANCH_IN_LOOP,
    "loop in loop": LOOP_IN_LOOP,
    "while": COUNTED,
    "while that never runs": NEVER,
    "scan": SCAN,
    "call": CALL,
}


def program(body: str) -> str:
    head = "func.func @main(%x: tensor<3xf64>, %w: tensor<3xf64>) -> tensor<3xf64> {"
    called = CALLED if "func.call" in body else ""
    return f"{head}{COUNTS}{body}  func.return %r : tensor<3xf64>\n}}\n{called}"


def seeds_like(results: Sequence[Array], rng: np.random.Generator) -> list[Array]:
    return [np.asarray(rng.uniform(-1, 1, r.shape)) for r in results]


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("order", [1, 2])
def test_gradients_are_those_of_central_differences(name: str, order: int) -> None:
    rng = np.random.default_rng(3)
    module = parsed(program(BODIES[name]))
    inputs = [rng.uniform(0.3, 1, 3), rng.uniform(0.3, 1, 3)]
    for _ in range(order - 1):
        module = differentiated(module, inputs=(0, 1), sens=True)
        inputs.append(rng.uniform(-1, 1, 3))
    seeds = seeds_like(evaluate(module, inputs, {}), rng)
    variables = tuple(range(len(inputs)))
    found = evaluate(differentiated(module, inputs=variables, sens=True), [*inputs, *seeds], {})
    for index in variables:
        expected = central_differences(module, inputs, index, seeds)
        np.testing.assert_allclose(found[index], expected, rtol=2e-5, atol=1e-7 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("name", BODIES)
def test_second_derivatives_are_compiled(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    module = differentiated(parsed(program(BODIES[name])), inputs=(0, 1), sens=True)
    module = differentiated(module, inputs=(0, 1, 2), sens=True)
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    inputs = [np.asarray(rng.uniform(0.3, 1, shape_of(tensor_type(a)))) for a in function.args]
    found = compiled(format_module(module), tmp_path)(*inputs)
    for value, expected in zip(found, evaluate(module, inputs, {}), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-13)


def test_a_loop_that_runs_more_often_than_it_says_has_no_gradient(tmp_path: Path) -> None:
    text = program(COUNTED).replace("ms.bound = 6", "ms.bound = 3")
    module = differentiated(parsed(text), inputs=(0, 1))
    found = compiled(format_module(module), tmp_path)(np.ones(3), np.ones(3))
    assert np.isnan(np.asarray(found)).all()


def test_only_the_parameters_that_are_named_have_gradients() -> None:
    text = """ms.parameter @w : tensor<3xf64>
    ms.parameter @v : tensor<3xf64>
    func.func @main(%x: tensor<3xf64>, %n: tensor<3xi64>) -> tensor<3xf64> {
      %w = ms.get_parameter @w : tensor<3xf64>
      %v = ms.get_parameter @v : tensor<3xf64>
      %a = ms.mul %x, %w
      %w2 = ms.get_parameter @w : tensor<3xf64>
      %b = ms.mul %a, %w2
      %c = ms.mul %b, %v
      func.return %c : tensor<3xf64>
    }"""
    weights = {"w": np.array([1.0, 2.0, 3.0]), "v": np.array([2.0, 2.0, 2.0])}
    module = differentiated(parsed(text), inputs=(1,), parameters=("w",))
    zeros, w = evaluate(module, [np.full(3, 5.0), np.arange(3)], weights)
    assert zeros.dtype == np.int64
    assert not zeros.any()
    assert w.tolist() == [20.0, 40.0, 60.0]
    assert len(evaluate(differentiated(parsed(text), parameters=("all",)), [np.ones(3), np.arange(3)], weights)) == 3
