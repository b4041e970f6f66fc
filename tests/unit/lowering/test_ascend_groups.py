"""Convolutions in groups, and of images of one channel, on the cube."""

from pathlib import Path

from tests.ascend_models.checking import check_model

GROUPS = """
func.func @main(%x: tensor<2x1x9x7xf16>, %u: tensor<6x1x3x3xf16>, %v: tensor<8x3x3x3xf16>, %b: tensor<8xf16>,
                %w: tensor<12x2x1x1xf16>, %z: tensor<24x1x3x3xf16>) -> tensor<2x24x3x2xf16> {
  %0 = ms.conv2d %x, %u : (tensor<2x1x9x7xf16>, tensor<6x1x3x3xf16>) -> tensor<2x6x7x5xf16>
  %1 = ms.conv2d %0, %v, %b {group = 2, pad_mode = "same", stride = [2, 2]}
    : (tensor<2x6x7x5xf16>, tensor<8x3x3x3xf16>, tensor<8xf16>) -> tensor<2x8x4x3xf16>
  %2 = ms.relu %1 : (tensor<2x8x4x3xf16>) -> tensor<2x8x4x3xf16>
  %3 = ms.conv2d %2, %w {group = 4} : (tensor<2x8x4x3xf16>, tensor<12x2x1x1xf16>) -> tensor<2x12x4x3xf16>
  %4 = ms.conv2d %3, %z {group = 12, pad_mode = "pad", pad = [0, 1, 0, 1]}
    : (tensor<2x12x4x3xf16>, tensor<24x1x3x3xf16>) -> tensor<2x24x3x2xf16>
  func.return %4 : tensor<2x24x3x2xf16>
}
"""


def test_groups_and_images_of_one_channel(tmp_path: Path) -> None:
    """Groups of several channels, of one tap, and of one channel each with several outputs."""
    path = tmp_path / "groups.mir"
    path.write_text(GROUPS, "utf-8")
    kernels = check_model(path, "ascend910b1", {})
    assert not [kernel for kernel in kernels if kernel.problem]
    products = [kernel.unit for kernel in kernels if "_conv2d" in kernel.name and kernel.unit != "vector"]
    assert products == ["cube"] * 4
