"""Shapes inferred again, and views moved behind elementwise operations."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import FunctionType

from msc.graph.expand.expand_composites import ExpandComposites
from msc.graph.shapes.infer_shapes import InferShapes
from msc.graph.simplify.sink_views import SinkViews
from msc.graph_kernel.fusion.cluster_kernels import ClusterKernels
from msc.support.diagnostics import MscError
from tests.unit.graph_kernel.graphs import context, function, main_of, random_inputs, read, results, run

OPEN = """
func.func @main(%x: tensor<?x3xf32>, %w: tensor<3x5xf32>) -> tensor<?x5xf32> {
  %a = ms.matmul %x, %w
  %y = ms.relu %a
  func.return %y : tensor<?x5xf32>
}
"""


def test_a_fixed_argument_fixes_all_results_and_the_signature() -> None:
    module = read(
        OPEN.replace("%x: tensor<?x3xf32>", "%x: tensor<4x3xf32>").replace(
            "ms.matmul %x, %w", "ms.matmul %x, %w : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<?x5xf32>"
        )
    )
    inferred = run(module, InferShapes())
    assert "?" not in str(inferred)
    type_ = main_of(inferred).function_type
    assert isinstance(type_, FunctionType)
    assert str(type_.outputs.data[0]) == "tensor<4x5xf32>"


def test_unknown_sizes_stay_unknown_and_declared_ones_stay_known() -> None:
    module = read(OPEN)
    assert str(run(module, InferShapes())) == str(module)
    declared = read(
        OPEN.replace("ms.relu %a", "ms.relu %a : (tensor<?x5xf32>) -> tensor<4x5xf32>")
        .replace("%y : tensor<?x5xf32>", "%y : tensor<4x5xf32>")
        .replace("-> tensor<?x5xf32> {", "-> tensor<4x5xf32> {")
    )
    assert str(run(declared, InferShapes())) == str(declared)


def test_branches() -> None:
    text = """
    func.func @main(%c: i1, %x: tensor<4xf32>) -> tensor<?xf32> {
      %y = scf.if %c -> (tensor<?xf32>) {
        %a = ms.exp %x : (tensor<4xf32>) -> tensor<?xf32>
        scf.yield %a : tensor<?xf32>
      } else {
        %b = ms.abs %x : (tensor<4xf32>) -> tensor<?xf32>
        scf.yield %b : tensor<?xf32>
      }
      func.return %y : tensor<?xf32>
    }"""
    assert "?" not in str(run(read(text), InferShapes()))


def test_conflict() -> None:
    module = read(OPEN)
    main = main_of(module)
    main.args[0]._type = main.args[1].type
    with pytest.raises(MscError, match="MSC0201"):
        InferShapes().apply(context(), module)


def sunk(arguments: str, body: str) -> list[str]:
    """The labels of the kernels after sinking, which keeps all bits."""
    module = run(function(arguments, body), ExpandComposites())
    after = run(module, SinkViews())
    inputs = random_inputs(module)
    for expected, actual in zip(results(module, inputs), results(after, inputs), strict=True):
        np.testing.assert_array_equal(actual, expected)
    kernels = [op for op in run(after, ClusterKernels()).walk() if op.name == "gk.kernel"]
    return [op.label.data for op in kernels]  # pyright: ignore


DENSE = "%x: tensor<2x4x8xf32>, %w: tensor<6x8xf32>, %b: tensor<6xf32>"


def test_epilogues_reach_the_product() -> None:
    assert sunk(DENSE, "%a = ms.dense %x, %w, %b\n%y = ms.gelu %a") == ["dense_gelu"]
    assert sunk(f"{DENSE}, %r: tensor<2x4x6xf32>", "%a = ms.dense %x, %w, %b\n%y = ms.add %r, %a") == ["dense_add"]
    assert sunk(f"{DENSE}, %g: tensor<6xf32>", "%a = ms.dense %x, %w, %b\n%y = ms.mul %a, %g") == ["dense_mul"]


def test_what_does_not_fit_stays() -> None:
    assert sunk(f"{DENSE}, %g: tensor<4x1xf32>", "%a = ms.dense %x, %w, %b\n%y = ms.mul %a, %g") == ["dense", "mul"]
    assert sunk(f"{DENSE}, %g: tensor<3x2x4x6xf32>", ("%a = ms.dense %x, %w, %b\n%y = ms.mul %a, %g")) == [
        "dense",
        "mul",
    ]
    assert sunk(DENSE, "%a = ms.dense %x, %w, %b\n%y = ms.softmax %a") == ["dense", "softmax"]


def test_two_views_meet() -> None:
    body = "%a = ms.dense %x, %w, %b\n%c = ms.dense %x, %w\n%y = ms.mul %a, %c"
    assert sunk(DENSE, body) == ["dense", "dense_mul"]


def test_scalar_view() -> None:
    assert sunk(
        "%x: tensor<1x1xf32>, %w: tensor<1x1xf32>",
        ("%a = ms.matmul %x, %w\n%b = ms.reshape %a {shape = []}\n%y = ms.exp %b"),
    ) == ["matmul_exp"]
