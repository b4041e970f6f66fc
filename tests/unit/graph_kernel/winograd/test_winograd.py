"""Pass `winograd`: exact matrices, the results of many shapes within the stated bound, what is taken and what not."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from itertools import chain

import numpy as np
import pytest
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp

from msc.dialects.gk import KernelOp
from msc.dialects.ms.target import TargetAttr, set_target
from msc.dialects.open_sizes import SIZES
from msc.graph.expand.expand_composites import ExpandComposites
from msc.graph.weights.hoist_parameters import HoistParameters
from msc.graph_kernel.fusion.cluster_kernels import ClusterKernels
from msc.graph_kernel.winograd.transforms import TAPS, TILES, Matrix, filtering_matrices, matrices_at
from msc.graph_kernel.winograd.winograd import Winograd
from msc.graph_kernel.winograd.winograd_cost import ConvolutionForm, Sizes
from msc.ir.typed import static_shape
from msc.targets.catalogue import machine_named
from tests.unit.graph_kernel.graphs import Array, for_machine, function, random_inputs, random_weights, results, run

GROWTH = {2: 7.2, 4: 62.7}
"""How much more than a sum of products rounding errors may count, by the tile: docs/numerics.md."""


def convolution(
    channels: tuple[int, int],
    size: tuple[int, int],
    after: str = "%y = ms.relu %c",
    properties: str = 'pad_mode = "same"',
    more: str = "",
    batch: int = 1,
) -> tuple[str, str, str]:
    """Arguments, body and parameters of a graph around a convolution of x by the parameter w."""
    inputs, outputs = channels
    shape = f"{outputs}x{inputs}x3x3xf32"
    body = f"%w = ms.get_parameter @w : tensor<{shape}>\n%c = ms.conv2d %x, %w {{{properties}}}\n{after}"
    arguments = f"%x: tensor<{batch}x{inputs}x{size[0]}x{size[1]}xf32>{more}"
    return arguments, body, f"ms.parameter @w : tensor<{shape}>"


def kernels_and_results(
    graph: tuple[str, str, str], tile: int, rows: int = 0
) -> tuple[list[str], list[Array], list[Array]]:
    """Labels of the kernels after the pass, the results with it and without."""
    before = run(function(*graph), ExpandComposites(), HoistParameters(), ClusterKernels())
    after = run(before, Winograd(tile=tile, rows=rows), HoistParameters())
    inputs, weights = random_inputs(before), uniform_weights(before)
    labels = [op.label.data for op in after.walk() if isinstance(op, KernelOp)]
    return labels, list(results(after, inputs, weights)), list(results(before, inputs, weights))


def uniform_weights(module: ModuleOp) -> dict[str, Array]:
    """Weights between -1 and 1."""
    return {name: np.asarray((w - 1) * 2, w.dtype) for name, w in random_weights(module).items()}


def assert_same(graph: tuple[str, str, str], tile: int, rows: int = 0) -> list[str]:
    labels, actual, expected = kernels_and_results(graph, tile, rows)
    assert "winograd_product" in labels
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=0, atol=2e-5 * max(1.0, np.abs(e).max()))
    return labels


def times(matrix: Matrix, vector: list[Fraction]) -> list[Fraction]:
    return [sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in matrix]


@pytest.mark.parametrize("m", TILES)
def test_matrices_are_exact(m: int) -> None:
    matrices, rng = filtering_matrices(m), random.Random(m)
    tile, taps = ([Fraction(rng.randint(-99, 99)) for _ in range(n)] for n in (m + TAPS - 1, TAPS))
    products = [a * b for a, b in zip(times(matrices.filter, taps), times(matrices.input, tile), strict=True)]
    assert times(matrices.output, products) == [sum(taps[k] * tile[i + k] for k in range(TAPS)) for i in range(m)]
    for entry in chain(*matrices.input, *matrices.output):
        assert Fraction(float(np.float32(float(entry)))) == entry


def test_points_must_differ() -> None:
    with pytest.raises(ValueError, match="different points"):
        matrices_at([Fraction(0), Fraction(1), Fraction(1)], 2, 3)


@pytest.mark.parametrize("m", TILES)
def test_growth_of_rounding_errors_is_what_the_documentation_says(m: int) -> None:
    def sizes(matrix: Matrix) -> list[Fraction]:
        return [sum(map(abs, row), Fraction(0)) for row in matrix]

    matrices = filtering_matrices(m)
    factors = [a * b for a, b in zip(sizes(matrices.filter), sizes(matrices.input), strict=True)]
    growth = max(sum(abs(a) * f for a, f in zip(row, factors, strict=True)) for row in matrices.output) ** 2 / TAPS**2
    assert GROWTH[m] - 0.1 < growth <= GROWTH[m]


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("channels", [(1, 1), (3, 16), (17, 5), (64, 33)])
def test_errors_stay_within_the_bound(channels: tuple[int, int], tile: int) -> None:
    texts = convolution(channels, (12, 8), "%y = ms.identity %c")
    before, exact = (function(*(text.replace("f32", dtype) for text in texts)) for dtype in ("f32", "f64"))
    after = run(before, ExpandComposites(), ClusterKernels(), Winograd(tile=tile))
    x, weights = np.random.default_rng(0).uniform(-1, 1, (1, channels[0], 12, 8)), uniform_weights(before)
    x = x.astype(np.float32)
    wide = {name: w.astype(np.float64) for name, w in weights.items()}
    difference = results(after, [x], weights)[0] - results(exact, [x.astype(np.float64)], wide)[0]
    assert np.abs(difference).max() <= GROWTH[tile] * (channels[0] + 20) * 2.0**-24 * 9 * channels[0]
    assert np.abs(difference).max() <= 3e-6 * np.abs(results(after, [x], weights)[0]).max()


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("size", [(8, 8), (4, 12), (7, 7), (1, 1), (9, 4), (2, 31), (14, 13)])
def test_all_sizes_of_images(size: tuple[int, int], tile: int) -> None:
    assert_same(convolution((3, 5), size), tile)
    assert_same(convolution((2, 3), size, "%y = ms.tanh %c", 'pad_mode = "pad", pad = [2, 1, 1, 2]', batch=2), tile)


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("size", [(8, 8), (7, 7), (24, 4), (22, 13)])
def test_blocks_of_rows(size: tuple[int, int], rows: int, tile: int) -> None:
    residual = ("%r = ms.add %c, %b\n%y = ms.relu %r", f", %b: tensor<{size[0]}x{size[1]}xf32>")
    assert_same(convolution((3, 5), size), tile, rows)
    assert_same(convolution((2, 3), size, residual[0], more=residual[1], batch=2), tile, rows)


def volume(taps: int, size: tuple[int, int, int], after: str, more: str = "", batch: int = 1) -> tuple[str, str, str]:
    """Arguments, body and parameters of a graph around a convolution of a volume of `size` by 5x3xtapsx3x3."""
    depth, height, width = size
    shape = f"5x3x{taps}x3x3xf32"
    body = f'%w = ms.get_parameter @w : tensor<{shape}>\n%c = ms.conv3d %x, %w {{pad_mode = "same"}}\n{after}'
    arguments = f"%x: tensor<{batch}x3x{depth}x{height}x{width}xf32>{more}"
    return arguments, body, f"ms.parameter @w : tensor<{shape}>"


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("taps", [1, 2, 3])
@pytest.mark.parametrize("size", [(1, 8, 8), (4, 8, 12), (3, 7, 5), (2, 1, 9)])
def test_volumes(size: tuple[int, int, int], taps: int, tile: int) -> None:
    assert_same(volume(taps, size, "%y = ms.relu %c"), tile)
    residual = ", %b: tensor<5x1x1x1xf32>, %d: tensor<{}xf32>".format("x".join(map(str, (2, 5, *size))))
    after = "%r = ms.add %c, %b\n%s = ms.add %r, %d\n%y = ms.relu %s"
    assert_same(volume(taps, size, after, residual, batch=2), tile)
    assert_same(volume(taps, size, "%s = ms.softmax %c {axis = 1}\n%y = ms.add %c, %s", batch=2), tile)


@pytest.mark.parametrize("gives", ["weights", "sizes"])
def test_volumes_of_which_calls_give_weights_or_sizes_are_left_alone(gives: str) -> None:
    graph = function(*volume(3, (4, 8, 8), "%y = ms.identity %c"))
    if gives == "weights":
        graph = function("%x: tensor<1x3x4x8x8xf32>, %w: tensor<5x3x3x3x3xf32>", "%y = ms.conv3d %x, %w")
    else:
        graph.attributes[SIZES] = DictionaryAttr({})
    after = run(graph, ExpandComposites(), ClusterKernels(), Winograd(tile=4))
    assert "winograd_product" not in [op.label.data for op in after.walk() if isinstance(op, KernelOp)]


EPILOGUES = [
    ("%y = ms.identity %c", ""),
    ("%r = ms.add %c, %b\n%y = ms.relu %r", ", %b: tensor<6x1x1xf32>"),
    ("%r = ms.add %c, %b\n%y = ms.relu %r", ", %b: tensor<1x6x8x8xf32>"),
    ("%r = ms.mul %b, %c\n%y = ms.sub %r, %d", ", %b: tensor<8xf32>, %d: tensor<8x1xf32>"),
    ("%s = ms.constant dense<0.5> : tensor<f32>\n%r = ms.mul %c, %s\n%y = ms.exp %r", ""),
    ("%e = ms.exp %b\n%y = ms.add %c, %e", ", %b: tensor<1x6x8x8xf32>"),
    ("%s = ms.softmax %c {axis = 1}\n%y = ms.add %c, %s", ""),
    ("%y = ms.clip %c {min = 0.0, max = 0.25}", ""),
]


@pytest.mark.parametrize(("after", "more"), EPILOGUES)
@pytest.mark.parametrize("tile", TILES)
def test_what_follows_in_the_kernel(after: str, more: str, tile: int) -> None:
    labels = assert_same(convolution((4, 6), (8, 8), after, more=more), tile)
    assert "winograd_output" not in labels


@pytest.mark.parametrize(("after", "more"), EPILOGUES)
def test_what_follows_where_tiles_do_not_fill_the_image(after: str, more: str) -> None:
    labels = assert_same(convolution((4, 6), (7, 7), after, more=more.replace("8", "7")), 4)
    assert "winograd_output" in labels


@pytest.mark.parametrize(
    ("channels", "size", "stored"),
    [((15, 47), 7, [16, 48, 48]), ((12, 33), 7, [12, 33, 33]), ((15, 47), 8, [15, 47])],
)
def test_channels_fill_vectors_where_the_image_is_cut_anyway(
    channels: tuple[int, int], size: int, stored: list[int]
) -> None:
    before = run(
        function(*convolution(channels, (size, size))), ExpandComposites(), HoistParameters(), ClusterKernels()
    )
    set_target(before, TargetAttr.of("cpu", "x86-64-v4", 1))
    after = run(before, Winograd(tile=4), HoistParameters())
    made = [op for op in after.walk() if isinstance(op, KernelOp) and op.label.data.startswith("winograd")]
    image = [op for op in made if op.label.data == "winograd_output"]
    ends = [static_shape(op.results[0])[-1] for op in made if op not in image]
    assert [*ends, *(static_shape(op.results[0])[1] for op in image)] == stored
    inputs, weights = random_inputs(before), uniform_weights(before)
    for a, e in zip(results(after, inputs, weights), results(before, inputs, weights), strict=True):
        np.testing.assert_allclose(a, e, rtol=0, atol=2e-5 * np.abs(e).max())


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize(("channels", "size"), [((4, 6), (8, 8)), ((15, 47), (7, 9))])
@pytest.mark.parametrize("weight", ["%w", "%v"])
def test_filters_that_are_computed(channels: tuple[int, int], size: tuple[int, int], weight: str, tile: int) -> None:
    """An argument, as a training step has it, and the transposed and reversed filters of an input's gradient."""
    shape = (channels[1], channels[0], 3, 3) if weight == "%w" else (*channels, 3, 3)
    arguments = f"%x: tensor<2x{channels[0]}x{size[0]}x{size[1]}xf32>, %w: tensor<{'x'.join(map(str, shape))}xf32>"
    turned = "%t = ms.transpose %w {perm = [1, 0, 2, 3]}\n%v = ms.reverse %t {axis = [2, 3]}\n"
    body = f'{turned if weight == "%v" else ""}%c = ms.conv2d %x, {weight} {{pad_mode = "same"}}\n%y = ms.relu %c'
    labels = assert_same((arguments, body, ""), tile)
    assert labels.count("winograd_filter") == 1
    assert not {"reverse", "transpose", "transpose_reverse"} & {*labels}


@pytest.mark.parametrize("axes", ["[2]", "[3]", "[0, 2]"])
@pytest.mark.parametrize("more", ["", "%m = ms.reduce_max %t\n"])
def test_filters_that_are_reversed_in_other_ways(axes: str, more: str) -> None:
    """Along one axis, or along the outputs; where something else reads them, a kernel of its own does that."""
    arguments = "%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>"
    body = f"""%t = ms.reverse %w {{axis = {axes}}}
        {more}%c = ms.conv2d %x, %t
        %y = {"ms.add %c, %m" if more else "ms.relu %c"}"""
    labels = assert_same((arguments, body, ""), 4)
    assert any("reverse" in label for label in labels) == bool(more)


def filter_gradient(
    channels: tuple[int, int], size: tuple[int, int], batch: int = 2, more: str = "", properties: str = ""
) -> tuple[str, str, str]:
    """The gradient of a "same" convolution by its filter, as `grad` writes it, with what follows in an update."""
    (inputs, outputs), (height, width) = channels, size
    arguments = f"%x: tensor<{batch}x{inputs}x{height}x{width}xf32>, %g: tensor<{batch}x{outputs}x{height}x{width}xf32>"
    body = f"""%p = ms.pad %x {{pad = [0, 0, 1, 1, 0, 0, 1, 1]}}
        {more}
        %i = ms.transpose %p {{perm = [1, 0, 2, 3]}}
        %k = ms.transpose %g {{perm = [1, 0, 2, 3]}}
        %c = ms.conv2d %i, %k {{{properties}}}
        %t = ms.transpose %c {{perm = [1, 0, 2, 3]}}
        %y = ms.mul %t, %t"""
    return arguments, body, ""


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("channels", [(1, 1), (3, 16), (17, 5)])
@pytest.mark.parametrize("size", [(8, 8), (4, 12), (7, 7), (1, 1), (9, 4)])
def test_gradients_by_filters(size: tuple[int, int], channels: tuple[int, int], tile: int) -> None:
    labels = assert_same(filter_gradient(channels, size), tile)
    assert labels.count("winograd_input") == labels.count("winograd_gradient") == labels.count("winograd_product") == 1
    assert not any("transpose" in label and "conv2d" not in label and "mul" not in label for label in labels)


@pytest.mark.parametrize("tile", TILES)
def test_the_image_of_a_gradient_that_is_read_elsewhere_stays(tile: int) -> None:
    labels = assert_same(filter_gradient((3, 5), (7, 7), more="%m = ms.reduce_max %p"), tile)
    assert "winograd_pad" in labels


@pytest.mark.parametrize("tile", TILES)
def test_errors_of_gradients_by_filters_stay_small(tile: int) -> None:
    """Beside f64, and no more than a few times those of the plain sums."""
    texts = filter_gradient((8, 8), (16, 16), batch=8)
    before, exact = (function(*(text.replace("f32", dtype) for text in texts)) for dtype in ("f32", "f64"))
    plain = run(before, ExpandComposites(), ClusterKernels())
    fast = run(plain, Winograd(tile=tile))
    inputs = [np.random.default_rng(k).uniform(-1, 1, (8, 8, 16, 16)).astype(np.float32) for k in range(2)]
    (expected,) = results(exact, [x.astype(np.float64) for x in inputs], {})
    errors = [np.abs(results(each, inputs, {})[0] - expected).max() for each in (plain, fast)]
    assert 0 < errors[1] <= 8 * errors[0]


@pytest.mark.parametrize("properties", ["stride = 2", "dilation = 2"])
def test_other_gradients_by_filters_stay(properties: str) -> None:
    before = run(function(*filter_gradient((4, 4), (8, 8))), ExpandComposites(), HoistParameters(), ClusterKernels())
    assert str(run(before, Winograd(tile=4))) != str(before)
    graph = filter_gradient((4, 4), (3, 3), properties=properties)
    graph = (graph[0].replace("%g: tensor<2x4x3x3", "%g: tensor<2x4x1x1"), *graph[1:])
    before = run(function(*graph), ExpandComposites(), HoistParameters(), ClusterKernels())
    assert str(run(before, Winograd(tile=4))) == str(before)


def test_a_padding_in_front_grows() -> None:
    labels, *_ = kernels_and_results(convolution((2, 2), (7, 7)), 4)
    assert labels[:2] == ["conv2d_pad", "winograd_input"]


def test_a_padding_that_is_used_elsewhere_stays() -> None:
    before = ("%p = ms.pad %x {pad = [0, 0, 1, 1, 0, 0, 1, 1]}", "%c = ms.conv2d %p, %w", "%m = ms.reduce_max %p")
    arguments, body, parameters = convolution((2, 2), (7, 7), "%y = ms.add %c, %m")
    lines = [line for line in body.splitlines() if "conv2d" not in line]
    body = "\n".join([lines[0], *before, *lines[1:]])
    assert "winograd_pad" in assert_same((arguments, body, parameters), 4)


@pytest.mark.parametrize(
    "graph",
    [
        convolution((4, 4), (8, 8), properties='pad_mode = "same", stride = 2'),
        convolution((4, 4), (8, 8), properties="dilation = 2"),
        (
            "%x: tensor<1x4x8x8xf32>",
            "%w = ms.get_parameter @w : tensor<4x2x3x3xf32>\n%y = ms.conv2d %x, %w {group = 2}",
            "ms.parameter @w : tensor<4x2x3x3xf32>",
        ),
        (
            "%x: tensor<1x4x8x8xf32>",
            "%w = ms.get_parameter @w : tensor<4x4x5x5xf32>\n%y = ms.conv2d %x, %w",
            "ms.parameter @w : tensor<4x4x5x5xf32>",
        ),
        (
            "%x: tensor<1x4x8x8xf64>",
            "%w = ms.get_parameter @w : tensor<4x4x3x3xf64>\n%y = ms.conv2d %x, %w",
            "ms.parameter @w : tensor<4x4x3x3xf64>",
        ),
    ],
)
def test_other_convolutions_stay(graph: tuple[str, str, str]) -> None:
    before = run(function(*graph), ExpandComposites(), HoistParameters(), ClusterKernels())
    assert str(run(before, Winograd(tile=4))) == str(before)


@pytest.mark.parametrize("tile", [-1, 1, 3, 6])
def test_other_tiles_are_refused(tile: int) -> None:
    with pytest.raises(ValueError, match="tile is"):
        Winograd(tile=tile)


def chosen(batch: int, inputs: int, outputs: int, size: int, *, constant: bool = True) -> str:
    """What the pass does with a convolution: `2 x 2`, `4 x 4` or nothing."""
    text = list(convolution((inputs, outputs), (size, size), batch=batch))
    if not constant:
        argument, parameter = f"tensor<{outputs}x{inputs}x3x3xf32>", "%w = ms.get_parameter @w : "
        text = [f"{text[0]}, %w: {argument}", text[1].replace(f"{parameter}{argument}\n", ""), ""]
    before = for_machine(run(function(*text), ExpandComposites(), HoistParameters(), ClusterKernels()), "x86-64-v4")
    return next(iter(re.findall("Winograd's algorithm, (. x .)", str(run(before, Winograd())))), "")


def test_the_cost_model_weighs_arithmetic_against_weights_and_transformations() -> None:
    assert chosen(1, 64, 64, 56) == "4 x 4"
    assert chosen(1, 256, 256, 14) == "2 x 2"
    assert chosen(1, 512, 512, 7) == ""
    assert chosen(1, 3, 64, 112) == ""
    assert chosen(4, 128, 128, 8) == "4 x 4"
    assert chosen(4, 128, 128, 8, constant=False) == "4 x 4"


@pytest.mark.parametrize(("rows", "tile"), [(16, "4 x 4"), (16384, "2 x 2")])
def test_transformed_weights_come_from_memory_where_other_weights_fill_the_caches(rows: int, tile: str) -> None:
    arguments, body, parameters = convolution((192, 384), (7, 7), "%y = ms.add %c, %s")
    others = f"tensor<{rows}x512xf32>"
    body = f"%v = ms.get_parameter @v : {others}\n%m = ms.matmul %r, %v\n%s = ms.reduce_sum %m\n{body}"
    text = f"{arguments}, %r: tensor<1x{rows}xf32>", body, f"{parameters}\nms.parameter @v : {others}"
    before = run(function(*text), ExpandComposites(), HoistParameters(), ClusterKernels())
    found = re.findall("Winograd's algorithm, (. x .)", str(run(for_machine(before, "znver5"), Winograd())))
    assert set(found) == {tile}


@pytest.mark.parametrize(
    ("channels", "size", "batch", "tile"),
    [((32, 32), 16, 16, "4 x 4"), ((64, 64), 8, 16, "4 x 4"), ((3, 16), 32, 16, ""), ((128, 128), 2, 2, "")],
)
def test_the_cost_model_knows_gradients_by_filters(channels: tuple[int, int], size: int, batch: int, tile: str) -> None:
    before = run(function(*filter_gradient(channels, (size, size), batch)), ExpandComposites(), ClusterKernels())
    set_target(before, TargetAttr.of("cpu", "x86-64-v4", 1))
    found = re.findall("filter's gradient by Winograd's algorithm, (. x .)", str(run(before, Winograd())))
    assert set(found) == ({tile} if tile else set())


def test_blocks_are_as_large_as_parts_of_caches_that_do_not_hold_all_tiles() -> None:
    target = machine_named("x86-64-v4").with_bytes(L2=1 << 20, L3=32 << 20)
    assert Sizes(1, 64, 64, 224, 224).blocks(4, target) == [2]
    assert Sizes(1, 64, 64, 56, 56).blocks(4, target) == [1]
    assert Sizes(1, 128, 64, 112, 112).blocks(4, target) == [2]
    assert not Sizes(1, 128, 128, 28, 28).blocks(4, target)


def test_threads_share_blocks_evenly() -> None:
    sizes = Sizes(1, 64, 64, 56, 56)
    assert [sizes.shared(ConvolutionForm(4, 2), threads) for threads in (1, 2, 4)] == [
        ConvolutionForm(4, 2),
        ConvolutionForm(4, 1),
        ConvolutionForm(4, 0),
    ]
    assert sizes.shared(ConvolutionForm(4), 2) == ConvolutionForm(4)


@pytest.mark.parametrize(("size", "axes"), [(224, "array<i64: 0>"), (14, "")])
def test_the_cost_model_chooses_blocks(size: int, axes: str) -> None:
    before = run(
        function(*convolution((64, 64), (size, size))), ExpandComposites(), HoistParameters(), ClusterKernels()
    )
    after = str(run(for_machine(before, "znver5"), Winograd()))
    assert set(re.findall(r"gk\.compute_at = (array<[^>]*>)", after)) == ({axes} if axes else set())
