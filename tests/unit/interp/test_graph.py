"""Running modules at the graph and the kernel stage."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from msc.interp import evaluate, evaluate_parameter
from msc.support.diagnostics import MscError

Parse = Callable[[str], ModuleOp]

AFFINE = """
builtin.module {
  ms.parameter @w : tensor<2xf32>
  ms.parameter @doubled : tensor<2xf32> = {
    %w = ms.get_parameter @w : tensor<2xf32>
    %d = ms.add %w, %w
    ms.yield %d : tensor<2xf32>
  }
  func.func @main(%x: tensor<3x2xf32> {ms.name = "x"}, %y: tensor<?x2xf32> {ms.name = "y"}) -> tensor<3x2xf32> {
    %d = ms.get_parameter @doubled : tensor<2xf32>
    %z = gk.kernel "add" (%a = %x : tensor<3x2xf32>, %b = %d : tensor<2xf32>) -> tensor<3x2xf32> {
      %s = ms.add %a, %b
      gk.yield %s : tensor<3x2xf32>
    }
    %t = func.call @negated(%z) : (tensor<3x2xf32>) -> tensor<3x2xf32>
    func.return %t : tensor<3x2xf32>
  }
  func.func @negated(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
    %r = ms.neg %x
    func.return %r : tensor<3x2xf32>
  }
}"""
X, Y, W = np.ones((3, 2), np.float32), np.ones((5, 2), np.float32), np.array([1, 2], np.float32)


def test_kernels_calls_and_derived_parameters(module_of: Parse) -> None:
    (result,) = evaluate(module_of(AFFINE), {"x": X, "y": Y}, {"w": W})
    np.testing.assert_array_equal(result, -(X + 2 * W))


def test_inputs_may_come_in_order(module_of: Parse) -> None:
    np.testing.assert_array_equal(evaluate(module_of(AFFINE), [X, Y], {"w": W})[0], -(X + 2 * W))


def test_a_derived_parameter_has_a_value_of_its_own(module_of: Parse) -> None:
    np.testing.assert_array_equal(evaluate_parameter(module_of(AFFINE), "doubled", {"w": W}), 2 * W)


def test_the_observer_sees_every_operation_inside_kernels_too(module_of: Parse) -> None:
    seen: list[str] = []

    def observe(op: Operation, results: tuple[Any, ...]) -> None:
        seen.append(op.name)

    evaluate(module_of(AFFINE), [X, Y], {"w": W}, observer=observe)
    assert seen[-5:] == ["ms.get_parameter", "ms.add", "gk.kernel", "ms.neg", "func.call"]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"x": X}, "MSC0601.*no value is given for input 'y'"),
        ([X], "MSC0601.*takes 2 inputs \\(x, y\\), but 1 are given"),
        ({"x": X, "Y": Y}, "(?s)MSC0602.*no input 'Y'.*did you mean 'y'"),
        ({"x": X.T, "y": Y}, "MSC0603.*input 'x' is a tensor<3x2xf32>, but the value given is a tensor<2x3xf32>"),
        ({"x": X, "y": np.ones((5, 3), np.float32)}, r"MSC0603.*tensor<\?x2xf32>.*tensor<5x3xf32>"),
        ({"x": X.astype(np.float64), "y": Y}, "(?s)MSC0604.*element type f32, but the value given has f64.*astype"),
    ],
)
def test_inputs_that_do_not_fit(module_of: Parse, inputs: Any, message: str) -> None:
    with pytest.raises(MscError, match=message):
        evaluate(module_of(AFFINE), inputs, {"w": W})


def test_weights_that_do_not_fit(module_of: Parse) -> None:
    with pytest.raises(MscError, match=r"(?s)MSC0303.*no value for parameter 'w'.*did you mean 'W'"):
        evaluate(module_of(AFFINE), [X, Y], {"W": W})
    with pytest.raises(MscError, match=r"MSC0304.*declared tensor<2xf32>, but its value is a tensor<2xf64>"):
        evaluate(module_of(AFFINE), [X, Y], {"w": W.astype(np.float64)})


def test_an_unknown_function_gets_a_near_match(module_of: Parse) -> None:
    with pytest.raises(MscError, match=r"(?s)MSC0605.*@nain.*did you mean 'main'"):
        evaluate(module_of(AFFINE), [X, Y], {"w": W}, entry="nain")


def test_an_operation_of_another_stage_is_an_error(module_of: Parse) -> None:
    text = """builtin.module { func.func @main() -> index {
      %m = memref.alloc() : memref<2xf32>
      %c = arith.constant 0 : index
      func.return %c : index } }"""
    with pytest.raises(MscError, match=r"MSC0611.*memref\.alloc cannot be executed"):
        evaluate(module_of(text), [], {})


CONTROL = """
builtin.module {
  func.func @main(%x: tensor<2xf32>, %big: tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %limit = ms.constant dense<100.0> : tensor<f32>
    %flag = tensor.extract %big[] : tensor<i1>
    %chosen = scf.if %flag -> (tensor<2xf32>) {
      %a = ms.mul %x, %limit
      scf.yield %a : tensor<2xf32>
    } else {
      scf.yield %x : tensor<2xf32>
    }
    %summed = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %x) -> (tensor<2xf32>) {
      %t = ms.add %s, %x
      scf.yield %t : tensor<2xf32>
    }
    %doubled = scf.while (%v = %x) : (tensor<2xf32>) -> tensor<2xf32> {
      %m = ms.reduce_max %v
      %less = ms.less %m, %limit
      %go = tensor.extract %less[] : tensor<i1>
      scf.condition(%go) %v : tensor<2xf32>
    } do {
    ^bb0(%v: tensor<2xf32>):
      %d = ms.add %v, %v
      scf.yield %d : tensor<2xf32>
    }
    func.return %chosen, %summed, %doubled : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  }
}"""


@pytest.mark.parametrize("flag", [True, False])
def test_structured_control_flow(module_of: Parse, flag: bool) -> None:
    x = np.array([1, 3], np.float32)
    chosen, summed, doubled = evaluate(module_of(CONTROL), [x, np.array(flag)], {})
    np.testing.assert_array_equal(chosen, x * (100 if flag else 1))
    np.testing.assert_array_equal(summed, x * 5)
    np.testing.assert_array_equal(doubled, x * 64)


def test_values_are_freed_after_their_last_use(module_of: Parse) -> None:
    steps = "\n".join(f"%{i} = ms.exp %{i - 1} : (tensor<4xf32>) -> tensor<4xf32>" for i in range(1, 6))
    text = f"""builtin.module {{ func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {{
      {steps}
      func.return %5 : tensor<4xf32> }} }}"""
    alive: list[weakref.ref[Any]] = []
    most = 0

    def observe(op: Operation, results: tuple[Any, ...]) -> None:
        nonlocal most
        gc.collect()
        alive.append(weakref.ref(results[0]))
        most = max(most, sum(ref() is not None for ref in alive))

    evaluate(module_of(text), [np.zeros(4, np.float32)], {}, observer=observe)
    assert most == 2
