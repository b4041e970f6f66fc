"""Every composite operation, expanded, against its own meaning."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue

from msc.dialects.ms import OPERATIONS
from msc.dialects.ms.base import BasicOp, MsOp, ViewOp
from msc.dialects.ms.slices import SliceAccessOp
from msc.graph.expand.expand_composites import ExpandComposites
from msc.graph.expand.expanders import expander
from msc.graph_kernel.fusion.cluster_kernels import ClusterKernels
from msc.ir.locations import source_location
from msc.ir.typed import tensor_type
from msc.support.diagnostics import MscError
from tests.unit.graph_kernel.graphs import context, function, main_of, random_inputs, results, run

X = "%x: tensor<2x6x7x5xf32>"
STRUCTURAL = {"ms.barrier", "ms.constant", "ms.get_parameter", "ms.parameter", "ms.yield"}

ACTIVATIONS = [
    "gelu %x",
    'gelu %x {approximate = "tanh"}',
    "silu %x",
    "relu6 %x",
    "mish %x",
    "softsign %x",
    "selu %x",
    "elu %x {alpha = 0.7}",
    "celu %x {alpha = 1.5}",
    "leaky_relu %x {alpha = 0.1}",
    "hard_sigmoid %x {alpha = 0.2, beta = 0.5}",
    "hard_swish %x",
    "clip %x {min = -1.0, max = 0.5}",
    "clip %x {max = 0.5}",
]

OF_X = [
    "softmax %x",
    "softmax %x {axis = 1}",
    "log_softmax %x {axis = -1}",
    "l2_normalize %x {axis = [1]}",
    "l2_normalize %x {axis = [2, 3], epsilon = 0.5}",
    "reduce_mean %x",
    "reduce_mean %x {axis = [1, -1], keep_dims = true}",
    "argmax %x {axis = 1}",
    "argmin %x {axis = 2, keep_dims = true}",
    "argmax %x {axis = 3, select_last = true}",
    "cumsum %x {axis = 1}",
    "cumsum %x {axis = 2, exclusive = true, reverse = true}",
    "argsort %x {axis = 1}",
    "argsort %x {axis = 3, count = 2, descending = true}",
    "global_avg_pool %x",
    "global_max_pool %x",
    'max_pool2d %x {kernel_size = [3, 2], stride = [2, 1], pad_mode = "same"}',
    'max_pool2d %x {kernel_size = [3, 3], stride = [2, 2], pad_mode = "pad", pad = [1, 0, 1, 1]}',
    "max_pool2d %x {kernel_size = [2, 2], stride = [2, 2], ceil_mode = true}",
    "max_pool2d %x {kernel_size = [2, 2], dilation = [2, 3], ceil_mode = true}",
    'sum_pool2d %x {kernel_size = [3, 3], pad_mode = "same"}',
    "avg_pool2d %x {kernel_size = [3, 3], stride = [2, 1]}",
    'avg_pool2d %x {kernel_size = [3, 3], stride = [2, 1], pad_mode = "same"}',
    'avg_pool2d %x {kernel_size = [3, 3], stride = [2, 2], pad_mode = "pad", pad = [1, 1, 1, 0], '
    "count_include_pad = true}",
    "avg_pool2d %x {kernel_size = [3, 2], stride = [2, 3], ceil_mode = true}",
    'avg_pool2d %x {kernel_size = [3, 3], stride = [3, 3], pad_mode = "pad", pad = [1, 1, 1, 1], '
    "ceil_mode = true, count_include_pad = true}",
    "flatten %x {axis = 2}",
    "expand_dims %x {axis = [0, 2]}",
]

OTHERS = [
    ("%x: tensor<2x1x3x1xf32>", "squeeze %x {axis = [1]}"),
    ("%x: tensor<2x1x3x1xf32>", "squeeze %x"),
    (f"{X}, %s: tensor<6xf32>", "prelu %x, %s"),
    (f"{X}, %s: tensor<1xf32>", "prelu %x, %s"),
    (f"{X}, %s: tensor<7x5xf32>", "prelu %x, %s"),
    (f"{X}, %g: tensor<5xf32>, %b: tensor<5xf32>", "layer_norm %x, %g, %b"),
    (f"{X}, %g: tensor<7x5xf32>", "layer_norm %x, %g {begin_norm_axis = 2, epsilon = 0.1}"),
    (f"{X}, %g: tensor<5xf32>", "rms_norm %x, %g"),
    (f"{X}, %g: tensor<6xf32>, %b: tensor<6xf32>", "group_norm %x, %g, %b {num_groups = 3}"),
    (f"{X}, %g: tensor<6xf32>, %b: tensor<6xf32>", "instance_norm %x, %g, %b"),
    ("%x: tensor<3x4xf32>, %w: tensor<5x4xf32>", "dense %x, %w"),
    ("%x: tensor<2x3x4xf32>, %w: tensor<5x4xf32>, %b: tensor<5xf32>", "dense %x, %w, %b"),
    ("%x: tensor<3x4xi32>, %w: tensor<5x4xi32>, %b: tensor<5xi32>", "dense %x, %w, %b"),
    (
        "%x: tensor<2x4x9xf32>, %w: tensor<6x2x3xf32>, %b: tensor<6xf32>",
        'conv1d %x, %w, %b {pad_mode = "same", group = 2, stride = [2]}',
    ),
    (
        f"{X}, %w: tensor<4x6x3x2xf32>, %b: tensor<4xf32>",
        'conv2d %x, %w, %b {pad_mode = "pad", pad = [1, 0, 2, 1], stride = [1, 2]}',
    ),
    (f"{X}, %w: tensor<6x1x3x3xf32>", 'conv2d %x, %w {pad_mode = "same", group = 6, dilation = [2, 1]}'),
    (
        "%x: tensor<1x2x4x4x4xf32>, %w: tensor<3x2x2x2x2xf32>, %b: tensor<3xf32>",
        'conv3d %x, %w, %b {pad_mode = "same"}',
    ),
    (
        "%x: tensor<2x4x5xf32>, %w: tensor<4x3x3xf32>, %b: tensor<3xf32>",
        'conv1d_transpose %x, %w, %b {stride = [2], pad_mode = "pad", pad = [1, 0], output_padding = [1]}',
    ),
    (f"{X}, %w: tensor<6x2x3x3xf32>", "conv2d_transpose %x, %w {group = 3, stride = [2, 3], dilation = [1, 2]}"),
    (f"{X}, %w: tensor<6x2x2x2xf32>", 'conv2d_transpose %x, %w {pad_mode = "same", stride = [3, 2]}'),
    (
        f"{X}, %w: tensor<6x2x4x6xf32>, %b: tensor<6xf32>",
        'conv2d_transpose %x, %w, %b {group = 3, stride = [2, 3], pad_mode = "pad", pad = [1, 2, 4, 0], '
        "output_padding = [3, 2]}",
    ),
    (f"{X}, %w: tensor<6x2x1x2xf32>", "conv2d_transpose %x, %w {stride = [1, 2]}"),
    (
        "%x: tensor<2x6x4x5xf32>, %w: tensor<6x2x4x6xf32>, %b: tensor<6xf32>",
        'conv2d_transpose %x, %w, %b {group = 3, stride = [2, 3], pad_mode = "pad", pad = [1, 1, 2, 1]}',
    ),
    (
        "%x: tensor<2x4x5xf32>, %w: tensor<4x3x4xf32>",
        'conv1d_transpose %x, %w {stride = [2], pad_mode = "pad", pad = [0, 2]}',
    ),
    (
        "%x: tensor<1x2x2x3x2xf32>, %w: tensor<2x3x4x4x4xf32>",
        'conv3d_transpose %x, %w {stride = [2, 2, 2], pad_mode = "pad", pad = [1, 1, 1, 1, 1, 1]}',
    ),
    (
        "%x: tensor<2x6x4x5xf32>, %w: tensor<6x4x4x6xf32>, %b: tensor<12xf32>",
        'conv2d_transpose %x, %w, %b {group = 3, stride = [2, 3], pad_mode = "pad", pad = [3, 1, 4, 2]}',
    ),
    (
        "%x: tensor<2x4x5xf32>, %w: tensor<4x9x8xf32>, %b: tensor<9xf32>",
        'conv1d_transpose %x, %w, %b {stride = [4], pad_mode = "pad", pad = [1, 3]}',
    ),
    (
        "%x: tensor<2x6x4x5xf32>, %w: tensor<6x2x3x5xf32>, %b: tensor<6xf32>",
        'conv2d_transpose %x, %w, %b {group = 3, stride = [2, 3], pad_mode = "pad", pad = [1, 1, 2, 3], '
        "output_padding = [1, 2]}",
    ),
    (f"{X}, %w: tensor<6x2x3x5xf32>", 'conv2d_transpose %x, %w {pad_mode = "same", stride = [2, 2]}'),
    (
        f"{X}, %w: tensor<6x2x3x3xf32>",
        'conv2d_transpose %x, %w {stride = [2, 1], pad_mode = "pad", pad = [4, 0, 0, 3]}',
    ),
    (
        f"{X}, %w: tensor<6x2x1x1xf32>, %b: tensor<2xf32>",
        'conv2d_transpose %x, %w, %b {stride = [2, 3], pad_mode = "pad", pad = [1, 0, 0, 1], output_padding = [1, 2]}',
    ),
    (
        "%x: tensor<1x2x2x3x2xf32>, %w: tensor<2x3x3x2x3xf32>",
        'conv3d_transpose %x, %w {stride = [2, 1, 2], pad_mode = "pad", pad = [1, 1, 0, 1, 1, 0]}',
    ),
    (f"{X}, %w: tensor<6x2x2x2xf32>", 'conv2d_transpose %x, %w {pad_mode = "pad", pad = [2, 2, 1, 2]}'),
    ("%x: tensor<1x2x3x3x3xf32>, %w: tensor<2x3x2x2x2xf32>", "conv3d_transpose %x, %w {stride = [2, 2, 2]}"),
    ("%x: tensor<2x8x3x2xf32>", "depth_to_space %x {block_size = 2}"),
    ("%x: tensor<2x8x3x2xf32>", 'depth_to_space %x {block_size = 2, mode = "CRD"}'),
    ("%x: tensor<2x3x4x6xf32>", "space_to_depth %x {block_size = 2}"),
    ("%x: tensor<2x3x4x6xf32>", 'space_to_depth %x {block_size = 2, mode = "CRD"}'),
    ("%x: tensor<4x5xi32>", "clip %x {min = 3, max = 7}"),
    ("%x: tensor<4x5xui8>", "clip %x {min = 3, max = 7}"),
    ("%x: tensor<4x5xi64>", "argmax %x {axis = 0, select_last = true}"),
    ("%x: tensor<4x5xi32>", "cumsum %x {axis = 0, reverse = true}"),
    ("%x: tensor<2x100x3xf32>", "cumsum %x {axis = 1}"),
    ("%x: tensor<2x100xi32>", "cumsum %x {axis = 1, exclusive = true, reverse = true}"),
    ("%x: tensor<16x3xi32>", "cumsum %x {axis = 0, exclusive = true}"),
    ("%x: tensor<4x5xi32>", "argsort %x {axis = 0, descending = true}"),
    ("%x: tensor<4x9xi1>", "argsort %x {count = 5}"),
    ("%x: tensor<700x2xui8>", "argsort %x {axis = 0, count = 3}"),
    ("%x: tensor<1x1x4x4xi8>", 'max_pool2d %x {kernel_size = [3, 3], pad_mode = "same"}'),
    ("%x: tensor<3x4xf16>", "softmax %x"),
    ("%x: tensor<2x3x4xf32>", 'max_pool1d %x {kernel_size = [2], pad_mode = "same"}'),
    ("%x: tensor<2x3x4xf32>", 'avg_pool1d %x {kernel_size = [2], pad_mode = "same"}'),
    ("%x: tensor<1x2x3x4x3xf32>", 'avg_pool3d %x {kernel_size = [2, 2, 2], pad_mode = "same"}'),
]


def check(arguments: str, text: str, special: bool = False) -> None:
    module = function(arguments, f"%y = ms.{text}")
    expanded = run(module, ExpandComposites())
    for op in main_of(expanded).walk():
        if isinstance(op, MsOp):
            assert op.is_basic or op.name in STRUCTURAL | {"ms.reshape"}, op.name
    inputs = random_inputs(module)
    if special:
        inputs[0].reshape(-1)[:6] = [np.nan, np.inf, -np.inf, -0.0, 0.0, 100.0]
    (expected,), (actual,) = results(module, inputs), results(expanded, inputs)
    assert actual.dtype == expected.dtype
    exact = expected.dtype.kind not in "f"
    tolerance = 2e-2 if expected.dtype.itemsize == 2 else 2e-5
    np.testing.assert_allclose(actual, expected, rtol=0 if exact else tolerance, atol=0 if exact else tolerance)


@pytest.mark.parametrize("text", ACTIVATIONS)
def test_activation_and_special_values(text: str) -> None:
    check("%x: tensor<4x9xf32>", text, special=True)


@pytest.mark.parametrize("text", OF_X)
def test_of_one_tensor(text: str) -> None:
    check(X, text)


@pytest.mark.parametrize("kernel", [2, 3, 4])
def test_transposed_convolution_of_special_values(kernel: int) -> None:
    """An infinite element reaches the outputs that a tap takes it to, and no others."""
    check(f"%x: tensor<1x6x7x5xf32>, %w: tensor<6x2x{kernel}x2xf32>", "conv2d_transpose %x, %w {stride = [2, 2]}", True)


@pytest.mark.parametrize(
    ("outputs", "pad", "operation"),
    [
        (8, (1, 1, 1, 1), "ms.subpixel_conv"),
        (8, (3, 1, 0, 2), "ms.subpixel_conv"),
        (8, (1, 0, 0, 0), "ms.conv2d"),  # an odd number of rows has one place more often than the other
        (2, (1, 1, 1, 1), "ms.conv2d"),  # channels too few for vectors: those of all places together
    ],
)
def test_products_with_zeros_are_not_computed(outputs: int, pad: tuple[int, ...], operation: str) -> None:
    text = f'conv2d_transpose %x, %w {{stride = [2, 2], pad_mode = "pad", pad = {list(pad)}}}'
    arguments = f"%x: tensor<1x6x4x4xf32>, %w: tensor<6x{outputs}x4x4xf32>"
    check(arguments, text, special=True)
    module = function(arguments, f"%y = ms.{text}")
    ExpandComposites().apply(context(), module)
    (found,) = (op for op in module.walk() if op.name in ("ms.conv2d", "ms.subpixel_conv"))
    assert found.name == operation
    computed, kept = (prod(tensor_type(v).get_shape()) for v in (found.results[0], returned(module)))
    assert (computed == kept) == (operation == "ms.subpixel_conv")


def test_offsets_with_taps_of_their_own() -> None:
    """Of nine taps one, two, two and four meet an offset: each is a convolution of its own."""
    arguments = "%x: tensor<1x6x4x4xf32>, %w: tensor<6x8x3x3xf32>"
    module = function(
        arguments, '%y = ms.conv2d_transpose %x, %w {stride = [2, 2], pad_mode = "pad", pad = [1, 1, 1, 1]}'
    )
    ExpandComposites().apply(context(), module)
    kernels = [tensor_type(op.operands[1]).get_shape()[2:] for op in module.walk() if op.name == "ms.conv2d"]
    assert sorted(kernels) == [(1, 1), (1, 2), (2, 1), (2, 2)]


def returned(module: ModuleOp) -> SSAValue:
    (last,) = (op for op in module.walk() if isinstance(op, ReturnOp))
    return last.operands[0]


@pytest.mark.parametrize("text", ["argmax %x", "argmin %x {select_last = true}", "argmax %x {axis = 0}"])
def test_arg_extreme_of_nan(text: str) -> None:
    check("%x: tensor<4x9xf32>", text, special=True)


@pytest.mark.parametrize(("arguments", "text"), OTHERS)
def test_others(arguments: str, text: str) -> None:
    check(arguments, text)


def test_batch_norm() -> None:
    vectors = ", ".join(f"%{name}: tensor<6xf32>" for name in "sbmv")
    module = function(f"{X}, {vectors}", "%y = ms.batch_norm %x, %s, %b, %m, %v")
    inputs = random_inputs(module)
    inputs[-1] = np.abs(inputs[-1]) + 0.1
    (expected,), (actual,) = results(module, inputs), results(run(module, ExpandComposites()), inputs)
    np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)


def test_every_operation_has_a_way_down() -> None:
    without = [
        op.name
        for op in OPERATIONS
        if issubclass(op, MsOp) and op.name not in STRUCTURAL
        if not issubclass(op, BasicOp | ViewOp | SliceAccessOp) and expander.get(op) is None
    ]
    assert without == []


def test_an_expansion_that_needs_a_size_says_so() -> None:
    module = function("%x: tensor<?x4xf32>", "%y = ms.reduce_mean %x")
    with pytest.raises(MscError, match=r"MSC0404.*ms\.reduce_mean is expanded for known sizes only"):
        ExpandComposites().apply(context(), module)


def test_locations_stay() -> None:
    expanded = function("%x: tensor<2x4xf32>", "%y = ms.softmax %x")
    ExpandComposites().apply(context(), expanded)
    lines = {location.line for op in main_of(expanded).body.block.ops if (location := source_location(op))}
    assert len(lines) == 2
    ClusterKernels().apply(context(), expanded)
    (kernel,) = (op for op in expanded.walk() if op.name == "gk.kernel")
    assert source_location(kernel) == source_location(next(iter(kernel.regions[0].block.ops)))
