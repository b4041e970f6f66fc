"""Products of bytes with zero points on the cube of a simulated machine: the same integers as the interpreter's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ascend_models.checking import check_model

MATRICES = """
func.func @main(%a: tensor<18x70xui8>, %b: tensor<70x40xi8>, %c: tensor<40xi32>, %z: tensor<ui8>) -> (
    tensor<18x40xui8>, tensor<18x40xi32>) {{
  %0 = ms.cast %a {{dtype = i32}} : (tensor<18x70xui8>) -> tensor<18x70xi32>
  %1 = ms.constant dense<113> : tensor<i32>
  %2 = ms.sub %0, %1 : (tensor<18x70xi32>, tensor<i32>) -> tensor<18x70xi32>
  %3 = ms.cast %b {{dtype = i32}} : (tensor<70x40xi8>) -> tensor<70x40xi32>
  %4 = ms.constant dense<{zero}> : tensor<i32>
  %5 = ms.sub %3, %4 : (tensor<70x40xi32>, tensor<i32>) -> tensor<70x40xi32>
  %6 = ms.matmul %2, %5 : (tensor<18x70xi32>, tensor<70x40xi32>) -> tensor<18x40xi32>
  %7 = ms.add %6, %c : (tensor<18x40xi32>, tensor<40xi32>) -> tensor<18x40xi32>
  %8 = ms.cast %7 {{dtype = f32}} : (tensor<18x40xi32>) -> tensor<18x40xf32>
  %9 = ms.constant dense<0.0001> : tensor<f32>
  %10 = ms.mul %8, %9 : (tensor<18x40xf32>, tensor<f32>) -> tensor<18x40xf32>
  %11 = ms.round %10 : (tensor<18x40xf32>) -> tensor<18x40xf32>
  %12 = ms.clip %11 {{min = 0.0, max = 255.0}} : (tensor<18x40xf32>) -> tensor<18x40xf32>
  %13 = ms.cast %12 {{dtype = ui8}} : (tensor<18x40xf32>) -> tensor<18x40xui8>
  %14 = ms.cast %z {{dtype = i32}} : (tensor<ui8>) -> tensor<i32>
  %15 = ms.sub %0, %14 : (tensor<18x70xi32>, tensor<i32>) -> tensor<18x70xi32>
  %16 = ms.matmul %15, %3 : (tensor<18x70xi32>, tensor<70x40xi32>) -> tensor<18x40xi32>
  func.return %13, %16 : tensor<18x40xui8>, tensor<18x40xi32>
}}
"""
IMAGES = """
func.func @main(%x: tensor<2x5x6x7xui8>, %u: tensor<6x5x3x3xi8>, %b: tensor<6xi32>) -> tensor<2x6x3x4xi32> {
  %0 = ms.cast %x {dtype = i32} : (tensor<2x5x6x7xui8>) -> tensor<2x5x6x7xi32>
  %1 = ms.constant dense<9> : tensor<i32>
  %2 = ms.sub %0, %1 : (tensor<2x5x6x7xi32>, tensor<i32>) -> tensor<2x5x6x7xi32>
  %3 = ms.constant dense<SOME> : tensor<6x5x3x3xi32>
  %4 = ms.conv2d %2, %3, %b {pad_mode = "pad", pad = [1, 1, 1, 1], stride = [2, 2]}
    : (tensor<2x5x6x7xi32>, tensor<6x5x3x3xi32>, tensor<6xi32>) -> tensor<2x6x3x4xi32>
  func.return %4 : tensor<2x6x3x4xi32>
}
"""


def units(text: str, folder: Path) -> list[tuple[str, str]]:
    """The kernels of a model that give the interpreter's values, and who runs them."""
    path = folder / "model.mir"
    path.write_text(text, "utf-8")
    kernels = check_model(path, "ascend910b1", {})
    assert not [kernel for kernel in kernels if kernel.problem]
    return [(kernel.name, kernel.unit) for kernel in kernels]


@pytest.mark.parametrize("zero", [0, 3])
def test_matrices_of_bytes(zero: int, tmp_path: Path) -> None:
    """Zero points of one operand and of both, one that is computed; a bias, and bytes made of the sums."""
    found = units(MATRICES.format(zero=zero), tmp_path)
    assert {unit for name, unit in found if "matmul" in name} == {"cube"}
    assert not [name for name, unit in found if unit == "scalar"]


@pytest.mark.parametrize("most", [127, 250])
def test_images_of_bytes(most: int, tmp_path: Path) -> None:
    """Padding is the zero point; constants of nine bits are two operands."""
    weights = [[[[(7 * o + 3 * i + 50 * k + 11 * j) % (2 * most) - most for j in range(3)] for k in range(3)]
                for i in range(5)] for o in range(6)]  # fmt: skip
    found = units(IMAGES.replace("SOME", str(weights)), tmp_path)
    assert [unit for name, unit in found if "conv2d" in name] == ["cube"] * (1 if most == 127 else 2)


QUANTISED = """
func.func @main(%a: tensor<50x70xi8>, %b: tensor<70x40xi8>, %c: tensor<40xi32>, %f: tensor<50x70xi8>,
    %g: tensor<50x70xi8>, %x: tensor<2x5x6x7xi8>, %u: tensor<6x5x3x3xi8>) -> (
    tensor<50x40xui8>, tensor<50x40xf16>, tensor<50x40xi8>, tensor<2x6x3x4xi8>) {
  %s = ms.constant dense<0.0037> : tensor<f32>
  %h = ms.constant dense<0.0037> : tensor<f16>
  %z = ms.constant dense<113> : tensor<ui8>
  %1 = ms.matmul %a, %b {dtype = i32}
  %2 = ms.add %1, %c
  %3 = ms.requantize %2, %s, %z {dtype = ui8}
  %4 = ms.matmul %f, %b {dtype = i32}
  %5 = ms.dequantize %4, %h
  %6 = ms.relu %5
  %w = ms.constant dense<SCALES> : tensor<40xf32>
  %10 = ms.matmul %g, %b {dtype = i32}
  %7 = ms.requantize %10, %w {dtype = i8}
  %8 = ms.conv2d %x, %u {dtype = i32, pad_mode = "pad", pad = [1, 1, 1, 1], stride = [2, 2]}
  %9 = ms.requantize %8, %s {dtype = i8}
  func.return %3, %6, %7, %9 : tensor<50x40xui8>, tensor<50x40xf16>, tensor<50x40xi8>, tensor<2x6x3x4xi8>
}
"""


def test_one_scale_is_the_fixpipe_s(tmp_path: Path) -> None:
    """Bytes with a zero point, and halves; a scale a column leaves the sums to the vector unit."""
    found = units(QUANTISED.replace("SCALES", str([0.003 + 0.0001 * k for k in range(40)])), tmp_path)
    cube = [name.partition("_")[2] for name, unit in found if unit == "cube"]
    assert sorted(cube) == ["conv2d_requantize", "matmul", "matmul_add_requantize", "matmul_dequantize_relu"]
    assert [unit for name, unit in found if name.endswith("_requantize") and "conv" not in name] == ["cube", "vector"]
    assert not [name for name, unit in found if unit == "scalar"]
