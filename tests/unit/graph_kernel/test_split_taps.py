"""Sums of parts of convolutions that read no padding compute the same, and the cost model chooses among them."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from msc.dialects.ms.convolution import ConvolutionOp
from msc.graph_kernel.split_taps import MOST, SplitTaps, split_up, splits_of
from tests.unit.graph_kernel.graphs import for_machine, function, random_inputs, results, run


def convolutions(module: ModuleOp) -> list[ConvolutionOp]:
    return [op for op in module.walk() if isinstance(op, ConvolutionOp)]


def products(op: ConvolutionOp) -> int:
    return prod(op.result_shape()) * prod(op.shape(1)[1:])


def module_of(size: str, kernel: str, properties: str, channels: tuple[int, int, int] = (2, 3, 1)) -> ModuleOp:
    inputs, outputs, group = channels
    image, weight = f"tensor<2x{inputs * group}x{size}xi32>", f"tensor<{outputs * group}x{inputs}x{kernel}xi32>"
    arguments = f"%x: {image}, %w: {weight}, %b: tensor<{outputs * group}xi32>"
    rank = size.count("x") + 1
    return function(arguments, f"%y = ms.conv{rank}d %x, %w, %b {{{properties}, group = {group}}}")


@st.composite
def axis(draw: st.DrawFn) -> tuple[int, int, tuple[int, int], int, int]:
    """Size, taps, padding, stride and dilation of an axis that a window fits."""
    size, taps = draw(st.integers(1, 9)), draw(st.integers(1, 4))
    stride, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    span = (taps - 1) * dilation + 1
    begin = draw(st.integers(max(0, span - size) // 2, span + 1))
    return size, taps, (begin, draw(st.integers(max(0, span - size - begin), span + 1))), stride, dilation


@pytest.mark.parametrize("axes", [1, 2, 3])
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_every_split_computes_the_same(axes: int, data: st.DataObject) -> None:
    sizes, kernels, paddings, strides, dilations = zip(*(data.draw(axis()) for _ in range(axes)), strict=True)
    pad = [amount for padding in paddings for amount in padding]
    properties = f'pad_mode = "pad", pad = {pad}, stride = {list(strides)}, dilation = {list(dilations)}'
    group = data.draw(st.integers(1, 2))

    def made() -> ModuleOp:
        return module_of("x".join(map(str, sizes)), "x".join(map(str, kernels)), properties, (16, 2, group))

    whole = made()
    inputs = random_inputs(whole)
    expected = results(whole, inputs)
    for k, split in enumerate(splits_of(convolutions(whole)[0])):
        module = made()
        (convolution,) = convolutions(module)
        before = products(convolution)
        split_up(convolution, splits_of(convolution)[k])
        module.verify()
        np.testing.assert_array_equal(results(module, inputs), expected)
        parts = convolutions(module)
        assert len(parts) == prod(map(len, split)) <= MOST
        assert sum(map(products, parts)) == prod(sum(s.size for s in each) for each in split) * before // prod(
            each * count for each, count in zip(kernels, whole_results(whole), strict=True)
        )


def whole_results(module: ModuleOp) -> list[int]:
    return list(convolutions(module)[0].output_spatial())


def dilated(dtype: str, weight: str = "", channels: int = 64) -> ModuleOp:
    arguments = f"%x: tensor<1x{channels}x12x12x{dtype}>, %w: tensor<64x{channels}x3x3x{dtype}>"
    body = f'%y = ms.conv2d %x, %w {{pad_mode = "same", dilation = [8, 8]{weight}}}'
    return for_machine(function(arguments, body), "x86-64-v3")


@pytest.mark.parametrize("channels", [64, 256])
def test_a_wide_dilation_is_split_and_computes_the_same(channels: int) -> None:
    module = dilated("f32", channels=channels)
    after = run(module, SplitTaps())
    assert len(convolutions(after)) > 1
    inputs = random_inputs(module)
    (expected,), (found,) = results(module, inputs), results(after, inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * float(np.abs(expected).max()))


def test_sums_that_would_be_rounded_in_between_are_left_alone() -> None:
    assert len(convolutions(run(dilated("f16"), SplitTaps()))) == 1


def test_parts_have_the_type_of_sums_of_the_whole() -> None:
    after = run(dilated("i8", ", dtype = i32"), SplitTaps())
    assert {op.result_dtype() for op in convolutions(after)} == {"i32"}


def test_an_infinite_element_of_the_image_spreads_no_nan() -> None:
    module = dilated("f32")
    image, *others = random_inputs(module)
    image[0, :, 3, 5] = np.inf
    (found,) = results(run(module, SplitTaps()), [image, *others])
    (expected,) = results(module, [image, *others])
    assert not np.isnan(found[np.isfinite(expected)]).any()
