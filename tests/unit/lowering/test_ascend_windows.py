"""Depthwise convolutions and poolings of Ascend, on the vector unit."""

from pathlib import Path

import pytest

from tests.ascend_models.checking import check_model

_CASES = {
    "a network of one block, padded on one side": (
        """
func.func @main(%i: tensor<2x1x9x7xT>, %k: tensor<20x1x1x1xT>, %u: tensor<20x1x3x3xT>, %b: tensor<20xT>)
    -> tensor<2x20x5x4xT> {
  %x = ms.conv2d %i, %k : (tensor<2x1x9x7xT>, tensor<20x1x1x1xT>) -> tensor<2x20x9x7xT>
  %1 = ms.conv2d %x, %u, %b {group = 20, pad_mode = "same", stride = [2, 2]}
    : (tensor<2x20x9x7xT>, tensor<20x1x3x3xT>, tensor<20xT>) -> tensor<2x20x5x4xT>
  %2 = ms.relu6 %1 : (tensor<2x20x5x4xT>) -> tensor<2x20x5x4xT>
  func.return %2 : tensor<2x20x5x4xT>
}
""",
        ("f32", "bf16"),
    ),
    "more channels than a repeat, dilated, with what it convolves added": (
        """
func.func @main(%i: tensor<1x1x11x9xT>, %k: tensor<70x1x1x1xT>, %u: tensor<70x1x3x3xT>) -> tensor<1x70x11x9xT> {
  %x = ms.conv2d %i, %k : (tensor<1x1x11x9xT>, tensor<70x1x1x1xT>) -> tensor<1x70x11x9xT>
  %0 = ms.conv2d %x, %u {group = 70, pad_mode = "same", dilation = [2, 2]}
    : (tensor<1x70x11x9xT>, tensor<70x1x3x3xT>) -> tensor<1x70x11x9xT>
  %1 = ms.add %0, %x : (tensor<1x70x11x9xT>, tensor<1x70x11x9xT>) -> tensor<1x70x11x9xT>
  func.return %1 : tensor<1x70x11x9xT>
}
""",
        ("f16",),
    ),
    "taps of two rows, nothing after it": (
        """
func.func @main(%i: tensor<3x1x4x13xT>, %k: tensor<129x1x1x1xT>, %u: tensor<129x1x2x5xT>) -> tensor<3x129x3x3xT> {
  %x = ms.conv2d %i, %k : (tensor<3x1x4x13xT>, tensor<129x1x1x1xT>) -> tensor<3x129x4x13xT>
  %0 = ms.conv2d %x, %u {group = 129, stride = [1, 3]} : (tensor<3x129x4x13xT>, tensor<129x1x2x5xT>)
    -> tensor<3x129x3x3xT>
  func.return %0 : tensor<3x129x3x3xT>
}
""",
        ("f32",),
    ),
    "pixels too far apart for the stride of a repeat": (
        """
func.func @main(%i: tensor<1x1x5x5xT>, %k: tensor<1040x1x1x1xT>, %u: tensor<1040x1x3x3xT>) -> tensor<1x1040x3x3xT> {
  %x = ms.conv2d %i, %k : (tensor<1x1x5x5xT>, tensor<1040x1x1x1xT>) -> tensor<1x1040x5x5xT>
  %0 = ms.conv2d %x, %u {group = 1040, stride = [2, 2], pad_mode = "pad", pad = [1, 1, 1, 1]}
    : (tensor<1x1040x5x5xT>, tensor<1040x1x3x3xT>) -> tensor<1x1040x3x3xT>
  func.return %0 : tensor<1x1040x3x3xT>
}
""",
        ("f32",),
    ),
    "one column is left": (
        """
func.func @main(%i: tensor<4x1x6x5xT>, %k: tensor<24x1x1x1xT>, %u: tensor<24x1x5x5xT>) -> tensor<4x24x2x1xT> {
  %x = ms.conv2d %i, %k : (tensor<4x1x6x5xT>, tensor<24x1x1x1xT>) -> tensor<4x24x6x5xT>
  %0 = ms.conv2d %x, %u {group = 24} : (tensor<4x24x6x5xT>, tensor<24x1x5x5xT>) -> tensor<4x24x2x1xT>
  func.return %0 : tensor<4x24x2x1xT>
}
""",
        ("f32",),
    ),
    "poolings: the largest with a border, means with and without it": (
        """
func.func @main(%i: tensor<2x1x13x10xT>, %k: tensor<70x1x1x1xT>)
    -> (tensor<2x70x7x5xT>, tensor<2x70x6x5xT>, tensor<2x70x13x10xT>) {
  %x = ms.conv2d %i, %k : (tensor<2x1x13x10xT>, tensor<70x1x1x1xT>) -> tensor<2x70x13x10xT>
  %0 = ms.max_pool2d %x {kernel_size = [3, 3], stride = [2, 2], pad_mode = "same"}
    : (tensor<2x70x13x10xT>) -> tensor<2x70x7x5xT>
  %1 = ms.avg_pool2d %x {kernel_size = [2, 2], stride = [2, 2]} : (tensor<2x70x13x10xT>) -> tensor<2x70x6x5xT>
  %2 = ms.avg_pool2d %x {kernel_size = [3, 3], stride = [1, 1], pad_mode = "same"}
    : (tensor<2x70x13x10xT>) -> tensor<2x70x13x10xT>
  func.return %0, %1, %2 : tensor<2x70x7x5xT>, tensor<2x70x6x5xT>, tensor<2x70x13x10xT>
}
""",
        ("f32", "f16"),
    ),
}


@pytest.mark.parametrize(
    ("text", "dtype"),
    [pytest.param(text, dtype, id=f"{name}: {dtype}") for name, (text, dtypes) in _CASES.items() for dtype in dtypes],
)
def test_a_window_for_each_channel(tmp_path: Path, text: str, dtype: str) -> None:
    """The kernel runs on the vector unit, is free of races, and computes what the interpreter does."""
    path = tmp_path / "windows.mir"
    path.write_text(text.replace("xT>", f"x{dtype}>"), "utf-8")
    kernels = check_model(path, "ascend910b1", {})
    assert not [kernel for kernel in kernels if kernel.problem]
    assert "scalar" not in {kernel.unit for kernel in kernels}
