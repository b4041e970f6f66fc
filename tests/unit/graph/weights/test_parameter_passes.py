"""Batch normalisation folding, hoisting and outlining: what moves to compile time."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from msc.dialects.ms.structure import ParameterOp
from msc.graph.expand.expand_composites import ExpandComposites
from msc.graph.simplify.fold_batch_norm import FoldBatchNorm
from msc.graph.weights.hoist_parameters import HoistParameters
from msc.graph.weights.outline_constants import OutlineConstants
from tests.unit.graph_kernel.graphs import function, main_of, random_inputs, random_weights, results, run


def parameters(**shapes: str) -> str:
    return "\n".join(f"ms.parameter @{name} : tensor<{shape}>" for name, shape in shapes.items())


def gets(**shapes: str) -> str:
    return "".join(f"%{name} = ms.get_parameter @{name} : tensor<{shape}>\n" for name, shape in shapes.items())


def checked(module: ModuleOp, *passes: ModulePass, tolerance: float = 0) -> ModuleOp:
    """The module after passes, which computes the same."""
    after = run(module, *passes)
    inputs, weights = random_inputs(module), random_weights(module)
    (expected,), (actual,) = results(module, inputs, weights), results(after, inputs, weights)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
    return after


def names(module: ModuleOp) -> list[str]:
    """The operations of main, except reads of parameters and the return."""
    return [op.name for op in main_of(module).body.block.ops if op.name not in ("ms.get_parameter", "func.return")]


def symbols(module: ModuleOp) -> list[str]:
    return [op.symbol for op in module.ops if isinstance(op, ParameterOp)]


NORM = dict.fromkeys(("s", "o", "m", "v"), "6xf32")
LAYERS = [
    ("%x: tensor<2x3x5x5xf32>", {"w": "6x3x3x3xf32"}, "ms.conv2d %x, %w {stride = [2, 1]}"),
    ("%x: tensor<2x3x5x5xf32>", {"w": "6x3x3x3xf32", "b": "6xf32"}, 'ms.conv2d %x, %w, %b {pad_mode = "same"}'),
    ("%x: tensor<2x6x5xf32>", {"w": "6x2x3xf32"}, 'ms.conv1d %x, %w {group = 3, pad_mode = "pad", pad = [1, 0]}'),
    (
        "%x: tensor<2x4x5xf32>",
        {"w": "4x3x3xf32"},
        "ms.conv1d_transpose %x, %w {group = 2, stride = 2, output_padding = 1}",
    ),
    ("%x: tensor<2x3xf32>", {"w": "6x3xf32", "b": "6xf32"}, "ms.dense %x, %w, %b"),
]


@pytest.mark.parametrize(("argument", "layer", "text"), LAYERS)
def test_batch_norm_folds_into_the_layer(argument: str, layer: dict[str, str], text: str) -> None:
    shapes = {**layer, **NORM}
    body = f"{gets(**shapes)}%a = {text}\n%y = ms.batch_norm %a, %s, %o, %m, %v"
    module = function(argument, body, parameters(**shapes))
    folded = checked(module, FoldBatchNorm(), HoistParameters(), tolerance=2e-4)
    assert names(folded) == [text.split()[0]]


def test_batch_norm_stays_where_the_layer_has_other_users_or_its_statistics_vary() -> None:
    shapes = {"w": "6x3xf32", **NORM}
    norm = "%n = ms.batch_norm %a, %s, %o, %m, %v"
    body = f"{gets(**shapes)}%a = ms.dense %x, %w\n{norm}\n%y = ms.add %n, %a"
    module = checked(function("%x: tensor<2x3xf32>", body, parameters(**shapes)), FoldBatchNorm())
    assert names(module) == ["ms.dense", "ms.batch_norm", "ms.add"]
    body = (
        f"{gets(w='6x3xf32', o='6xf32', m='6xf32', v='6xf32')}%a = ms.dense %x, %w\n"
        "%y = ms.batch_norm %a, %s, %o, %m, %v"
    )
    module = checked(function("%x: tensor<2x3xf32>, %s: tensor<6xf32>", body, parameters(**shapes)), FoldBatchNorm())
    assert names(module) == ["ms.dense", "ms.batch_norm"]


def test_lone_batch_norm_is_one_multiplication_and_one_addition() -> None:
    body = f"{gets(**NORM)}%y = ms.batch_norm %x, %s, %o, %m, %v"
    module = function("%x: tensor<2x6x4xf32>", body, parameters(**NORM))
    assert names(checked(module, ExpandComposites(), HoistParameters(), tolerance=2e-5)) == ["ms.mul", "ms.add"]


def test_hoisting_shares_equal_expressions_and_drops_what_is_unread() -> None:
    shapes = {"w": "4x3xf32", "unused": "2xf32"}
    body = (
        f"{gets(w='4x3xf32')}%a = ms.transpose %w\n%b = ms.transpose %w\n%c = ms.matmul %x, %a\n"
        "%d = ms.matmul %x, %b\n%e = ms.exp %w\n%f = ms.matmul %c, %e\n%g = ms.matmul %d, %e\n%y = ms.add %f, %g"
    )
    module = checked(function("%x: tensor<2x3xf32>", body, parameters(**shapes)), HoistParameters())
    assert symbols(module) == ["w", "w.transpose", "w.exp"]


def test_hoisting_is_idempotent_and_builds_on_derived_parameters() -> None:
    body = f"{gets(w='4x3xf32')}%a = ms.exp %w\n%y = ms.mul %x, %a"
    module = checked(function("%x: tensor<4x3xf32>", body, parameters(w="4x3xf32")), HoistParameters())
    assert str(run(module, HoistParameters())) == str(module)


def test_splats_and_what_repeats_them_are_not_stored() -> None:
    body = (
        "%c = ms.constant dense<2.0> : tensor<f32>\n%b = ms.broadcast_to %c {shape = [4, 3]}\n"
        "%i = ms.iota {shape = [4, 3], dtype = f32}\n%s = ms.add %i, %b\n%y = ms.mul %x, %s"
    )
    module = checked(function("%x: tensor<4x3xf32>", body), HoistParameters())
    assert symbols(module) == ["constant.add"]
    body = "%i = ms.iota {shape = [4, 3], dtype = f32}\n%y = ms.mul %x, %i"
    assert symbols(checked(function("%x: tensor<4x3xf32>", body), HoistParameters())) == []


def test_a_function_of_parameters_alone() -> None:
    body = f"{gets(w='4x3xf32')}%y = ms.exp %w"
    module = checked(function("", body, parameters(w="4x3xf32")), HoistParameters())
    assert names(module) == []


def test_outlining() -> None:
    body = (
        "%c = ms.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>\n%s = ms.constant dense<2.0> : tensor<4x3xf32>\n"
        "%r = ms.reshape %s {shape = [3, 4]}\n%t = ms.transpose %r\n%a = ms.add %x, %c\n"
        "%b = ms.mul %a, %s\n%y = ms.sub %b, %t"
    )
    module = checked(function("%x: tensor<4x3xf32>", body), OutlineConstants())
    assert symbols(module) == ["constant", "constant.1"]
    body = "%c = ms.constant dense<2.0> : tensor<f32>\n%y = ms.mul %x, %c"
    assert symbols(checked(function("%x: tensor<3xf32>", body), OutlineConstants())) == []
    assert symbols(checked(function("", "%y = ms.constant dense<2.0> : tensor<f32>"), OutlineConstants())) == [
        "constant"
    ]
