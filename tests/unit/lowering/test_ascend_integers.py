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
  %b4 = ms.cast %b {dtype = i32} : (tensor<70x40xi8>) -> tensor<70x40xi32>
  %0 = ms.cast %a {dtype = i32} : (tensor<50x70xi8>) -> tensor<50x70xi32>
  %1 = ms.matmul %0, %b4 : (tensor<50x70xi32>, tensor<70x40xi32>) -> tensor<50x40xi32>
  %2 = ms.add %1, %c : (tensor<50x40xi32>, tensor<40xi32>) -> tensor<50x40xi32>
  %3 = ms.cast %2 {dtype = f32} : (tensor<50x40xi32>) -> tensor<50x40xf32>
  %4 = ms.mul %3, %s : (tensor<50x40xf32>, tensor<f32>) -> tensor<50x40xf32>
  %5 = ms.constant dense<4.0> : tensor<f32>
  %6 = ms.div %4, %5 : (tensor<50x40xf32>, tensor<f32>) -> tensor<50x40xf32>
  %7 = ms.round %6 : (tensor<50x40xf32>) -> tensor<50x40xf32>
  %8 = ms.constant dense<113.0> : tensor<f32>
  %9 = ms.add %7, %8 : (tensor<50x40xf32>, tensor<f32>) -> tensor<50x40xf32>
  %10 = ms.clip %9 {min = 0.0, max = 255.0} : (tensor<50x40xf32>) -> tensor<50x40xf32>
  %11 = ms.cast %10 {dtype = ui8} : (tensor<50x40xf32>) -> tensor<50x40xui8>
  %12 = ms.cast %f {dtype = i32} : (tensor<50x70xi8>) -> tensor<50x70xi32>
  %13 = ms.matmul %12, %b4 : (tensor<50x70xi32>, tensor<70x40xi32>) -> tensor<50x40xi32>
  %14 = ms.cast %13 {dtype = f32} : (tensor<50x40xi32>) -> tensor<50x40xf32>
  %15 = ms.mul %14, %s : (tensor<50x40xf32>, tensor<f32>) -> tensor<50x40xf32>
  %16 = ms.relu %15 : (tensor<50x40xf32>) -> tensor<50x40xf32>
  %17 = ms.cast %16 {dtype = f16} : (tensor<50x40xf32>) -> tensor<50x40xf16>
  %18 = ms.cast %g {dtype = i32} : (tensor<50x70xi8>) -> tensor<50x70xi32>
  %19 = ms.matmul %18, %b4 : (tensor<50x70xi32>, tensor<70x40xi32>) -> tensor<50x40xi32>
  %20 = ms.cast %19 {dtype = f32} : (tensor<50x40xi32>) -> tensor<50x40xf32>
  %21 = ms.constant dense<0.03> : tensor<f32>
  %22 = ms.mul %20, %21 : (tensor<50x40xf32>, tensor<f32>) -> tensor<50x40xf32>
  %23 = ms.div %22, %s : (tensor<50x40xf32>, tensor<f32>) -> tensor<50x40xf32>
  %24 = ms.round %23 : (tensor<50x40xf32>) -> tensor<50x40xf32>
  %25 = ms.clip %24 {min = -128.0, max = 127.0} : (tensor<50x40xf32>) -> tensor<50x40xf32>
  %26 = ms.cast %25 {dtype = i8} : (tensor<50x40xf32>) -> tensor<50x40xi8>
  %27 = ms.cast %x {dtype = i32} : (tensor<2x5x6x7xi8>) -> tensor<2x5x6x7xi32>
  %28 = ms.cast %u {dtype = i32} : (tensor<6x5x3x3xi8>) -> tensor<6x5x3x3xi32>
  %29 = ms.conv2d %27, %28 {pad_mode = "pad", pad = [1, 1, 1, 1], stride = [2, 2]}
    : (tensor<2x5x6x7xi32>, tensor<6x5x3x3xi32>) -> tensor<2x6x3x4xi32>
  %30 = ms.cast %29 {dtype = f32} : (tensor<2x6x3x4xi32>) -> tensor<2x6x3x4xf32>
  %31 = ms.mul %30, %s : (tensor<2x6x3x4xf32>, tensor<f32>) -> tensor<2x6x3x4xf32>
  %32 = ms.round %31 : (tensor<2x6x3x4xf32>) -> tensor<2x6x3x4xf32>
  %33 = ms.clip %32 {min = -128.0, max = 127.0} : (tensor<2x6x3x4xf32>) -> tensor<2x6x3x4xf32>
  %34 = ms.cast %33 {dtype = i8} : (tensor<2x6x3x4xf32>) -> tensor<2x6x3x4xi8>
  func.return %11, %17, %26, %34 : tensor<50x40xui8>, tensor<50x40xf16>, tensor<50x40xi8>, tensor<2x6x3x4xi8>
}
"""


def test_one_scale_is_the_fixpipe_s(tmp_path: Path) -> None:
    """Bytes with a zero point, and halves; two scales that round twice leave the sums to the vector unit."""
    found = units(QUANTISED, tmp_path)
    cube = [name.partition("_")[2] for name, unit in found if unit == "cube"]
    assert sorted(cube) == [
        "conv2d_cast_mul_round_clip_cast", "matmul", "matmul_add_cast_mul_round_add_clip_cast",
        "matmul_cast_mul_relu_cast",
    ]  # fmt: skip
    assert [unit for name, unit in found if "mul_div_round" in name] == ["vector"]
    assert not [name for name, unit in found if unit == "scalar"]
