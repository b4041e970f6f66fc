"""Pass `convolutions-as-products`: the same results for all forms of convolutions, and what is left alone."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from msc.dialects.ms.linear import MatmulOp
from msc.graph_kernel.convolutions_as_products import ConvolutionsAsProducts
from tests.unit.graph_kernel.graphs import for_machine, function, random_inputs, results, run

PADDED = 'pad_mode = "pad", pad = '


CONSTANT = """
%w = ms.constant dense<1.0> : tensor<28x4x3x3xf32>
%y = ms.conv2d %x, %w
"""


def convolution(operation: str, x: str, w: str, attributes: str, bias: int = 0, dtype: str = "f32") -> ModuleOp:
    arguments = f"%x: tensor<{x}x{dtype}>, %w: tensor<{w}x{dtype}>" + (f", %b: tensor<{bias}xf32>" if bias else "")
    body = f"%y = ms.{operation} %x, %w{', %b' if bias else ''} {{{attributes}}}"
    return for_machine(function(arguments, body), "x86-64-v3")


def products(module: ModuleOp) -> int:
    return sum(isinstance(op, MatmulOp) for op in run(module, ConvolutionsAsProducts()).walk())


@pytest.mark.parametrize(
    ("operation", "x", "w", "attributes", "bias"),
    [
        ("conv2d", "2x24x3x3", "96x24x3x3", PADDED + "[1, 1, 1, 1]", 0),
        ("conv2d", "3x24x5x4", "96x24x2x3", PADDED + "[0, 1, 2, 0], stride = [2, 1]", 96),
        ("conv2d", "1x24x5x6", "96x24x3x2", "dilation = [2, 3]", 0),
        ("conv2d", "1x48x3x3", "64x48x1x1", "stride = [2, 2]", 0),
        ("conv2d", "48x4x4x4", "64x4x2x2", "", 0),
        ("conv1d", "2x24x7", "96x24x3", 'pad_mode = "same", stride = 2', 0),
        ("conv3d", "1x16x3x2x3", "64x16x2x2x2", "", 64),
        ("conv2d_transpose", "2x48x2x3", "48x32x3x3", PADDED + "[1, 1, 1, 1]", 0),
        ("conv2d_transpose", "2x48x2x2", "48x32x3x2", PADDED + "[1, 0, 0, 1], stride = [2, 3], dilation = [2, 1]", 32),
        ("conv2d_transpose", "1x48x2x2", "48x32x1x1", "stride = [2, 2], output_padding = [1, 1]", 0),
        ("conv2d_transpose", "1x48x3x3", "48x32x2x2", PADDED + "[1, 1, 1, 1], stride = [2, 2]", 0),
        ("conv1d_transpose", "1x48x4", "48x32x3", "stride = 2, output_padding = 1", 32),
        ("conv3d_transpose", "1x32x2x1x2", "32x24x2x2x2", "", 0),
    ],
)
def test_results_are_those_of_the_convolution(operation: str, x: str, w: str, attributes: str, bias: int) -> None:
    module = convolution(operation, x, w, attributes, bias)
    assert products(module) == 1
    inputs = random_inputs(module)
    (expected,) = results(module, inputs)
    (found,) = results(run(module, ConvolutionsAsProducts()), inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * float(np.abs(expected).max()))


def test_what_no_window_meets_spreads_no_nan() -> None:
    """An infinite element of the image makes NaN of no sum that it is not part of."""
    module = convolution("conv2d_transpose", "1x48x2x2", "48x32x1x1", "stride = [2, 2]")
    x, w = random_inputs(module)
    x[0, 0, 0, 0] = np.inf
    (expected,) = results(module, (x, w))
    (found,) = results(run(module, ConvolutionsAsProducts()), (x, w))
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (convolution("conv2d", "4x16x16x16", "16x16x3x3", PADDED + "[1, 1, 1, 1]"), "the patches are larger"),
        (convolution("conv2d", "2x24x3x3", "96x12x3x3", "group = 2"), "of groups each is small"),
        (convolution("conv2d", "2x24x3x3", "96x24x3x3", "", dtype="f16"), "f16 rounds each sum once"),
        (for_machine(function("%x: tensor<1x4x3x3xf32>", CONSTANT), "x86-64-v3"), "a constant weight is packed once"),
    ],
)
def test_other_convolutions_are_left_alone(module: ModuleOp, why: str) -> None:
    assert products(module) == 0, why
