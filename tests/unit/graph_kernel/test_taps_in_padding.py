"""Convolutions lose exactly those taps that read nothing but padding, and compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from msc.dialects.ms.convolution import ConvolutionOp
from msc.graph.simplify.canonicalize_ms import CanonicalizeMs
from tests.unit.graph_kernel.graphs import function, random_inputs, results, run


def convolution(module: ModuleOp) -> ConvolutionOp:
    return next(op for op in module.walk() if isinstance(op, ConvolutionOp))


def module_of(size: str, kernel: str, properties: str, channels: tuple[int, int] = (2, 3)) -> ModuleOp:
    inputs, outputs = channels
    arguments = (
        f"%x: tensor<2x{inputs}x{size}xi32>, %w: tensor<{outputs}x{inputs}x{kernel}xi32>, %b: tensor<{outputs}xi32>"
    )
    return function(arguments, f"%y = ms.conv{size.count('x') + 1}d %x, %w, %b {{{properties}}}")


def test_a_wide_dilation_on_a_small_image_leaves_the_middle_tap() -> None:
    module = module_of("10x10", "3x3", 'pad_mode = "pad", pad = [12, 12, 12, 12], dilation = [12, 12]')
    found = convolution(run(module, CanonicalizeMs()))
    assert found.kernel() == (1, 1)
    assert not found.is_padded


def test_an_axis_keeps_the_taps_that_read_data_somewhere() -> None:
    module = module_of("10x20", "3x3", 'pad_mode = "same", dilation = [12, 12]')
    assert convolution(run(module, CanonicalizeMs())).kernel() == (1, 3)


def test_ordinary_padding_stays() -> None:
    module = module_of("10x10", "3x3", 'pad_mode = "same"')
    assert str(run(module, CanonicalizeMs())) == str(module)


@pytest.mark.parametrize("axes", [1, 2])
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_what_is_left_computes_the_same(axes: int, data: st.DataObject) -> None:
    sizes, kernels, paddings, strides, dilations = zip(*(data.draw(axis()) for _ in range(axes)), strict=True)
    pad = ", ".join(str(p) for padding in paddings for p in padding)
    properties = f'pad_mode = "pad", pad = [{pad}], stride = {list(strides)}, dilation = {list(dilations)}'
    module = module_of("x".join(map(str, sizes)), "x".join(map(str, kernels)), properties)
    after = run(module, CanonicalizeMs())
    inputs = random_inputs(module)
    np.testing.assert_array_equal(results(after, inputs), results(module, inputs))
    reading = [[reads_data(module, axis, tap) for tap in range(kernels[axis])] for axis in range(axes)]
    if all(any(taps) for taps in reading):
        spans = [len(taps) - taps.index(True) - taps[::-1].index(True) for taps in reading]
        assert list(convolution(after).kernel()) == spans


@st.composite
def axis(draw: st.DrawFn) -> tuple[int, int, tuple[int, int], int, int]:
    """Size, kernel, padding, stride and dilation of an axis whose window fits."""
    size, kernel = draw(st.integers(1, 9)), draw(st.integers(1, 4))
    stride, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    span = (kernel - 1) * dilation + 1
    begin = draw(st.integers(0, 14))
    end = draw(st.integers(max(0, span - size - begin), max(14, span)))
    return size, kernel, (begin, end), stride, dilation


def reads_data(module: ModuleOp, axis: int, tap: int) -> bool:
    """By trying every position."""
    op = convolution(module)
    window, (begin, _), size = op.windows()[axis], op.padding()[axis], op.spatial()[axis]
    positions = range(op.result_shape()[2 + axis])
    return any(0 <= o * window.stride + tap * window.dilation - begin < size for o in positions)
