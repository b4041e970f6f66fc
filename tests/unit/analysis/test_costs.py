"""Patterns, operations and bytes that are derived from compute definitions."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation

from msc.analysis.bytes import bytes_read, bytes_written, traffic
from msc.analysis.constancy import is_constant
from msc.analysis.flops import flops
from msc.analysis.kernels import kernels_in
from msc.analysis.patterns import AreaPattern, Pattern, pattern_of
from msc.dialects.ms.constants import splat_of
from msc.graph_kernel.fusion.cluster_kernels import ClusterKernels
from tests.unit.graph_kernel.graphs import function, main_of, run

X = "%x: tensor<2x6x7x5xf32>"


def operation(arguments: str, text: str) -> Operation:
    """The operation that computes %y."""
    return list(main_of(function(arguments, f"%y = ms.{text}")).body.block.ops)[-2]


@pytest.mark.parametrize(
    ("arguments", "text", "pattern"),
    [
        (X, "relu %x", AreaPattern(Pattern.ELEMENTWISE, (2, 6, 7, 5))),
        (f"{X}, %b: tensor<5xf32>", "add %x, %b", AreaPattern(Pattern.BROADCAST, (2, 6, 7, 5))),
        (X, "reshape %x {shape = [12, 35]}", AreaPattern(Pattern.RESHAPE)),
        (X, "transpose %x {perm = [0, 2, 3, 1]}", AreaPattern(Pattern.MOVEMENT, (2, 7, 5, 6))),
        (X, "slice %x {begin = [0, 0, 0, 1], end = [2, 6, 7, 5]}", AreaPattern(Pattern.ELEMENTWISE, (2, 6, 7, 4))),
        (
            X,
            "slice %x {begin = [0, 0, 0, 1], end = [2, 6, 7, 5], strides = [1, 1, 1, 2]}",
            AreaPattern(Pattern.MOVEMENT, (2, 6, 7, 2)),
        ),
        (X, "reverse %x {axis = [1]}", AreaPattern(Pattern.MOVEMENT, (2, 6, 7, 5))),
        (X, "tile %x {multiples = [1, 2, 1, 1]}", AreaPattern(Pattern.MOVEMENT, (2, 12, 7, 5))),
        (X, "tril %x", AreaPattern(Pattern.ELEMENTWISE, (2, 6, 7, 5))),
        (X, "reduce_sum %x {axis = [2, 3]}", AreaPattern(Pattern.ROWS, (2, 6, 7, 5), 2)),
        (X, "reduce_sum %x", AreaPattern(Pattern.ROWS, (2, 6, 7, 5), 4)),
        (X, "reduce_max %x {axis = [1], keep_dims = true}", AreaPattern(Pattern.REDUCE, (2, 1, 7, 5))),
        (X, "max_pool2d %x {kernel_size = [2, 2]}", AreaPattern(Pattern.WINDOW, (2, 6, 6, 4))),
        (f"{X}, %w: tensor<3x6x2x2xf32>", "conv2d %x, %w", AreaPattern(Pattern.CONTRACTION, (2, 3, 6, 4))),
        ("%x: tensor<3x4xf32>, %w: tensor<4x5xf32>", "matmul %x, %w", AreaPattern(Pattern.CONTRACTION, (3, 5))),
        ("%x: tensor<3x3xf32>", "matmul %x, %x", AreaPattern(Pattern.CONTRACTION, (3, 3))),
        (X, "pad %x {pad = [0, 0, 1, 1, 0, 0, 1, 1]}", AreaPattern(Pattern.OPAQUE, (2, 6, 9, 7))),
        (f"{X}, %w: tensor<3x6x2x2xf32>", 'conv2d %x, %w {pad_mode = "same"}', AreaPattern(Pattern.OPAQUE)),
        ("%x: tensor<?x4xf32>", "relu %x", AreaPattern(Pattern.OPAQUE)),
        ("%x: tensor<3x4xf32>, %i: tensor<2xi64>", "gather %x, %i", AreaPattern(Pattern.MOVEMENT, (2, 4))),
        ("", "iota {shape = [3, 4], dtype = i64}", AreaPattern(Pattern.ELEMENTWISE, (3, 4))),
    ],
)
def test_pattern(arguments: str, text: str, pattern: AreaPattern) -> None:
    assert pattern_of(operation(arguments, text)) == pattern


def test_flops() -> None:
    assert flops(operation("%x: tensor<3x4xf32>, %w: tensor<4x5xf32>", "matmul %x, %w")) == 2 * 3 * 4 * 5
    assert flops(operation(X, "exp %x")) == 420
    assert flops(operation(X, "transpose %x")) == 0
    assert flops(operation(X, "reshape %x {shape = [-1]}")) == 0
    assert flops(main_of(function(X, "%a = ms.exp %x\n%y = ms.mul %a, %a"))) == 840


def test_bytes() -> None:
    op = operation("%x: tensor<3x4xf16>, %w: tensor<4x5xf16>", "matmul %x, %w")
    assert (bytes_read(op), bytes_written(op), traffic(op)) == (24 + 40, 30, 94)
    assert bytes_read(operation("%x: tensor<3x4xf64>", "mul %x, %x")) == 96


def test_constancy() -> None:
    module = function(
        "%x: tensor<2xf32>",
        "%w = ms.get_parameter @w : tensor<2xf32>\n%c = ms.constant dense<2.0> : tensor<2xf32>\n"
        "%a = ms.mul %w, %c\n%y = ms.add %x, %a",
        "ms.parameter @w : tensor<2xf32>",
    )
    w, c, a, y, _ = main_of(module).body.block.ops
    assert [is_constant(op.results[0]) for op in (w, c, a, y)] == [True, True, True, False]
    assert (splat_of(c.results[0]), splat_of(w.results[0])) == (2.0, None)


def test_a_kernel_counts_operations_inside_and_bytes_outside() -> None:
    module = run(
        function("%x: tensor<3x4xf32>, %w: tensor<4x5xf32>", "%a = ms.matmul %x, %w\n%y = ms.relu %a"), ClusterKernels()
    )
    (kernel,) = kernels_in(module)
    assert (flops(kernel), bytes_read(kernel), bytes_written(kernel)) == (120 + 15, 128, 60)
