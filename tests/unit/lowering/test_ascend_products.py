"""Matrix products of models on the cube of simulated machines: right in their values, free of races, fused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

import msc
from msc.backends.simulation.case_files import library_schedule
from msc.backends.simulation.models import simulate_module
from msc.codegen.davinci.simulate import check_kernel
from msc.dialects import davinci, gk
from msc.dialects.gk.attributes import GK_SCHEDULE
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.driver.tuner import simulated
from msc.lowering.ascend.fused_matmul import fused_matmul_kernel
from msc.lowering.ascend.kernels import write_kernel
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.text import to_lines
from msc.schedule.cube.products import MatmulShape
from msc.schedule.cube.strategy import CubeForm
from msc.schedule.schedule_kernels import check_given
from msc.schedule.tuning.tuned_schedules import TuningFile
from msc.support.diagnostics import MscError
from msc.targets.davinci import davinci_target

BIAS_RELU = """
func.func @main(%a: tensor<40x70x{t}>, %b: tensor<70x90x{t}>, %c: tensor<90x{t}>) -> tensor<40x90x{t}> {{
  %0 = ms.matmul %a, %b : (tensor<40x70x{t}>, tensor<70x90x{t}>) -> tensor<40x90x{t}>
  %1 = ms.add %0, %c : (tensor<40x90x{t}>, tensor<90x{t}>) -> tensor<40x90x{t}>
  %2 = ms.relu %1 : (tensor<40x90x{t}>) -> tensor<40x90x{t}>
  func.return %2 : tensor<40x90x{t}>
}}
"""
GELU_RESIDUAL = """
func.func @main(%a: tensor<33x48x{t}>, %b: tensor<48x64x{t}>, %c: tensor<64x{t}>, %d: tensor<33x64x{t}>)
    -> tensor<33x64x{t}> {{
  %0 = ms.matmul %a, %b : (tensor<33x48x{t}>, tensor<48x64x{t}>) -> tensor<33x64x{t}>
  %1 = ms.add %0, %c : (tensor<33x64x{t}>, tensor<64x{t}>) -> tensor<33x64x{t}>
  %2 = ms.gelu %1 : (tensor<33x64x{t}>) -> tensor<33x64x{t}>
  %3 = ms.add %2, %d : (tensor<33x64x{t}>, tensor<33x64x{t}>) -> tensor<33x64x{t}>
  func.return %3 : tensor<33x64x{t}>
}}
"""
SCORES = """
func.func @main(%q: tensor<2x3x20x16x{t}>, %k: tensor<2x3x24x16x{t}>) -> tensor<2x3x20x24x{t}> {{
  %0 = ms.transpose %k {{perm = [0, 1, 3, 2]}} : (tensor<2x3x24x16x{t}>) -> tensor<2x3x16x24x{t}>
  %1 = ms.batch_matmul %q, %0 : (tensor<2x3x20x16x{t}>, tensor<2x3x16x24x{t}>) -> tensor<2x3x20x24x{t}>
  func.return %1 : tensor<2x3x20x24x{t}>
}}
"""


def gk_kernel(text: str, folder: Path) -> gk.KernelOp:
    path = folder / "model.mir"
    path.write_text(text, encoding="utf-8")
    module = compile_model(str(path), CompileOptions(target="ascend910b1"), stop_after="gk").module
    (kernel,) = (op for op in module.walk() if isinstance(op, gk.KernelOp))
    return kernel


def written(kernel: gk.KernelOp) -> davinci.DavinciKernelOp:
    return write_kernel(kernel, davinci_target("ascend910b1"), "product")


def test_the_schedule_of_a_product_is_a_tree_of_the_memories_of_a_core(tmp_path: Path) -> None:
    kernel = gk_kernel(BIAS_RELU.format(t="f16"), tmp_path)
    own = written(kernel)
    schedule = kernel.attributes[GK_SCHEDULE]
    assert isinstance(schedule, gk.ScheduleAttr)
    lines = schedule.lines
    assert {"place t2 in l0c", "place in0, in1 in l1", "place in0 in l0a"} <= {line.strip() for line in lines}
    kernel.attributes[GK_SCHEDULE] = schedule
    check_given(kernel)
    assert str(written(kernel)) == str(own)


def test_a_schedule_of_a_product_written_by_hand_is_followed(tmp_path: Path) -> None:
    kernel = gk_kernel(BIAS_RELU.format(t="f16"), tmp_path)
    own = written(kernel)
    lines = cast(gk.ScheduleAttr, kernel.attributes[GK_SCHEDULE]).lines
    text = "\n".join(lines).replace("n tile 90", "n tile 48").replace("k tile 70 pipeline 2", "k tile 32 pipeline 2")
    assert text != "\n".join(lines)
    kernel.attributes[GK_SCHEDULE] = gk.ScheduleAttr.of_lines(text.split("\n"))
    check_given(kernel)
    by_hand = written(kernel)
    assert "mad" in str(by_hand)
    assert str(by_hand) != str(own)
    check_kernel(by_hand)


BATCHES = """
builtin.module attributes {ms.target = #ms.target<"ascend910b1", machine = "ascend910b1", threads = 1>} {
func.func @main(%q: tensor<3x40x24xf16>, %k: tensor<3x24x70xf16>, %x: tensor<2x32x5x7xf16>, %w: tensor<48x16x1x1xf16>)
    -> (tensor<3x40x70xf16>, tensor<2x5x7x48xf16>) {
  %s = gk.kernel "scores" (%a = %q : tensor<3x40x24xf16>, %b = %k : tensor<3x24x70xf16>) -> tensor<3x40x70xf16>
    attributes {SCORES} {
    %0 = ms.batch_matmul %a, %b : (tensor<3x40x24xf16>, tensor<3x24x70xf16>) -> tensor<3x40x70xf16>
    gk.yield %0 : tensor<3x40x70xf16>
  }
  %y = gk.kernel "groups" (%c = %x : tensor<2x32x5x7xf16>, %d = %w : tensor<48x16x1x1xf16>) -> tensor<2x5x7x48xf16>
    attributes {GROUPS} {
    %1 = ms.conv2d %c, %d {group = 2} : (tensor<2x32x5x7xf16>, tensor<48x16x1x1xf16>) -> tensor<2x48x5x7xf16>
    %2 = ms.transpose %1 {perm = [0, 2, 3, 1]} : (tensor<2x48x5x7xf16>) -> tensor<2x5x7x48xf16>
    gk.yield %2 : tensor<2x5x7x48xf16>
  }
  func.return %s, %y : tensor<3x40x70xf16>, tensor<2x5x7x48xf16>
}
}
"""


def test_products_of_batches_and_groups_have_trees_that_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "batches.gk.mir"
    plain = BATCHES.replace("{SCORES}", "{}").replace("{GROUPS}", "{}")
    path.write_text(plain, encoding="utf-8")
    module = compile_model(str(path), CompileOptions(target="ascend910b1"), stop_after="gk").module
    text = BATCHES
    changes = (
        ("n tile 70, m tile 40", "m tile 16 parallel, n tile 70"),
        ("oc tile 24, oh_ow tile 35", "oh_ow tile 16 parallel, oc tile 24"),
    )
    kernels = [op for op in module.walk() if isinstance(op, gk.KernelOp)]
    for kernel, change in zip(kernels, changes, strict=True):
        own = written(kernel)
        schedule = kernel.attributes[GK_SCHEDULE]
        assert isinstance(schedule, gk.ScheduleAttr)
        kernel.attributes[GK_SCHEDULE] = schedule
        assert str(written(kernel)) == str(own)
        lines = ", ".join(f'"{line.replace(*change)}"' for line in schedule.lines)
        assert change[1] in lines
        text = text.replace(f"{{{kernel.label.data.upper()}}}", f"{{gk.schedule = #gk.schedule<[{lines}]>}}")
    path.write_text(text, encoding="utf-8")
    compiled = compile_model(str(path), CompileOptions(target="ascend910b1")).module
    made = [op for op in compiled.walk() if isinstance(op, davinci.DavinciKernelOp)]
    assert ["mad" in str(kernel) for kernel in made] == [True, True]
    for kernel in made:
        check_kernel(kernel)
    rng = np.random.default_rng(0)
    q, k, x, w = (
        rng.standard_normal(shape).astype(np.float16)
        for shape in ((3, 40, 24), (3, 24, 70), (2, 32, 5, 7), (48, 16, 1, 1))
    )
    scores, groups = msc.compile(str(path), target="ascend910b1")(q, k, x, w)
    np.testing.assert_allclose(scores, q.astype(np.float32) @ k, rtol=2e-3, atol=2e-3)
    images, filters = x.astype(np.float32).reshape(2, 2, 16, 5, 7), w.astype(np.float32).reshape(2, 24, 16)
    expected = np.einsum("ngihw,goi->nhwgo", images, filters).reshape(2, 5, 7, 48)
    np.testing.assert_allclose(groups, expected, rtol=2e-3, atol=2e-3)


def test_a_schedule_without_room_is_refused(tmp_path: Path) -> None:
    kernel = gk_kernel(BIAS_RELU.replace("40x", "4000x").replace("90x", "900x").format(t="f16"), tmp_path)
    written(kernel)
    lines = cast(gk.ScheduleAttr, kernel.attributes[GK_SCHEDULE]).lines
    text = "\n".join(lines).replace("tile 128 ", "tile 256 ").replace("n tile 256 parallel", "n tile 512 parallel")
    kernel.attributes[GK_SCHEDULE] = gk.ScheduleAttr.of_lines(text.split("\n"))
    with pytest.raises(MscError, match=r"t2 takes .* bytes of l0c, which has 131072"):
        check_given(kernel)


def test_tuning_finds_a_schedule_on_the_simulator_that_compiling_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = BIAS_RELU.replace("40x", "256x").replace("70x", "256x").replace("90x", "256x").format(t="f16")
    path, tuned = tmp_path / "model.mir", tmp_path / "tuned.json"
    path.write_text(text, encoding="utf-8")

    neighbours = CubeForm.neighbours

    def few(form: CubeForm) -> list[Tree]:
        loops = re.compile(r"m tile 192 parallel \d+, n tile 128 parallel")
        return [t for t in neighbours(form) if loops.search("\n".join(to_lines(t)))]

    monkeypatch.setattr(CubeForm, "neighbours", few)
    options = CompileOptions(target="ascend910b1")
    (entry,) = simulated.tune_simulated(str(path), options, 300.0, lambda _: None).entries
    assert entry.after_us < entry.before_us
    tuned.write_text(TuningFile((entry,)).to_json(), encoding="utf-8")
    retuned = compile_model(str(path), replace(options, tuned=tuned), stop_after="davinci").module
    (after,) = simulate_module(retuned, check=False)
    assert round(after.microseconds, 3) == entry.after_us


CONVOLUTIONS = """
builtin.module attributes {{ms.weights = "model.safetensors"}} {{
ms.parameter @w : tensor<40x20x3x3x{t}>
ms.parameter @v : tensor<20x40x3x3x{t}>
ms.parameter @b : tensor<40x1x1x{t}>
func.func @main(%x: tensor<2x20x13x11x{t}>) -> tensor<2x20x7x6x{t}> {{
  %w = ms.get_parameter @w : tensor<40x20x3x3x{t}>
  %v = ms.get_parameter @v : tensor<20x40x3x3x{t}>
  %b = ms.get_parameter @b : tensor<40x1x1x{t}>
  %0 = ms.conv2d %x, %w {{pad_mode = "same", stride = [2, 2]}}
    : (tensor<2x20x13x11x{t}>, tensor<40x20x3x3x{t}>) -> tensor<2x40x7x6x{t}>
  %1 = ms.add %0, %b : (tensor<2x40x7x6x{t}>, tensor<40x1x1x{t}>) -> tensor<2x40x7x6x{t}>
  %2 = ms.relu %1 : (tensor<2x40x7x6x{t}>) -> tensor<2x40x7x6x{t}>
  %3 = ms.conv2d %2, %v {{pad_mode = "pad", pad = [2, 2, 2, 2], dilation = [2, 2]}}
    : (tensor<2x40x7x6x{t}>, tensor<20x40x3x3x{t}>) -> tensor<2x20x7x6x{t}>
  %4 = ms.sigmoid %3 : (tensor<2x20x7x6x{t}>) -> tensor<2x20x7x6x{t}>
  func.return %4 : tensor<2x20x7x6x{t}>
}}
}}
"""


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_convolutions_with_what_follows_run_on_the_cube(dtype: str, tmp_path: Path) -> None:
    path = tmp_path / "model.mir"
    path.write_text(CONVOLUTIONS.format(t=dtype), encoding="utf-8")
    rng, kind = np.random.default_rng(0), np.float16 if dtype == "f16" else np.float32
    shapes = {"w": (40, 20, 3, 3), "v": (20, 40, 3, 3), "b": (40, 1, 1)}
    weights = {name: (rng.standard_normal(shape) * 0.2).astype(kind) for name, shape in shapes.items()}
    save_file(weights, tmp_path / "model.safetensors")
    module = compile_model(str(path), CompileOptions(target="ascend910b1"), stop_after="davinci").module
    kernels = [op for op in module.body.block.ops if isinstance(op, davinci.DavinciKernelOp)]
    convolutions = [kernel for kernel in kernels if kernel.kind.data in ("cube", "mix")]
    assert [kernel.kind.data for kernel in convolutions] == ["cube", "mix"]
    for kernel in convolutions:
        check_kernel(kernel)
    image = rng.standard_normal((2, 20, 13, 11)).astype(kind)
    [found], [expected] = (msc.compile(str(path), target=t).results(image) for t in ("ascend910b1", "cpu"))
    np.testing.assert_allclose(found, expected, rtol=4e-3, atol=4e-3 if dtype == "f16" else 2e-5)


LONG_ROWS = """
func.func @main(%a: tensor<20x700x{t}>, %b: tensor<70x700x{t}>) -> tensor<20x70x{t}> {{
  %0 = ms.transpose %b {{perm = [1, 0]}} : (tensor<70x700x{t}>) -> tensor<700x70x{t}>
  %1 = ms.matmul %a, %0 : (tensor<20x700x{t}>, tensor<700x70x{t}>) -> tensor<20x70x{t}>
  func.return %1 : tensor<20x70x{t}>
}}
"""
WINDOWS = """
builtin.module attributes {{ms.weights = "model.safetensors"}} {{
ms.parameter @w : tensor<24x20x3x3x{t}>
func.func @main(%x: tensor<2x20x9x11x{t}>) -> tensor<2x24x5x6x{t}> {{
  %w = ms.get_parameter @w : tensor<24x20x3x3x{t}>
  %0 = ms.conv2d %x, %w {{pad_mode = "same", stride = [2, 2]}}
    : (tensor<2x20x9x11x{t}>, tensor<24x20x3x3x{t}>) -> tensor<2x24x5x6x{t}>
  func.return %0 : tensor<2x24x5x6x{t}>
}}
}}
"""


@pytest.mark.parametrize(
    ("target", "text"),
    [("ascend310", LONG_ROWS), ("ascend910a", GELU_RESIDUAL), ("ascend910a", WINDOWS)],
)
def test_cores_without_nd_to_nz_bring_rows_through_ub(target: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "model.mir"
    path.write_text(text.format(t="f16"), encoding="utf-8")
    rng = np.random.default_rng(0)
    save_file({"w": (rng.standard_normal((24, 20, 3, 3)) * 0.2).astype(np.float16)}, tmp_path / "model.safetensors")
    module = compile_model(str(path), CompileOptions(target=target), stop_after="davinci").module
    kernels = [op for op in module.body.block.ops if isinstance(op, davinci.DavinciKernelOp)]
    [kernel] = [kernel for kernel in kernels if "mad" in str(kernel)]
    assert "copy_ubuf_to_cbuf" in str(kernel)
    check_kernel(kernel)
    compiled = msc.compile(str(path), target=target)
    inputs = [rng.standard_normal(p.shape).astype(np.float16) for p in compiled.signature.inputs]
    [found], [expected] = compiled.results(*inputs), msc.compile(str(path)).results(*inputs)
    np.testing.assert_allclose(found, expected, rtol=4e-3, atol=4e-2)


@pytest.mark.parametrize("text", [BIAS_RELU, GELU_RESIDUAL, SCORES])
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_a_product_with_what_follows_is_one_kernel_of_the_cube(text: str, dtype: str, tmp_path: Path) -> None:
    path = tmp_path / "model.mir"
    path.write_text(text.format(t=dtype), encoding="utf-8")
    module = compile_model(str(path), CompileOptions(target="ascend910b1"), stop_after="davinci").module
    kernels = [op for op in module.body.block.ops if isinstance(op, davinci.DavinciKernelOp)]
    assert [kernel.kind.data in ("cube", "mix") for kernel in kernels] == [True]
    check_kernel(kernels[0])
    compiled = msc.compile(str(path), target="ascend910b1")
    rng, kind = np.random.default_rng(0), np.float16 if dtype == "f16" else np.float32
    inputs = [rng.standard_normal(p.shape).astype(kind) for p in compiled.signature.inputs]
    [found], [expected] = compiled.results(*inputs), msc.compile(str(path)).results(*inputs)
    np.testing.assert_allclose(found, expected, rtol=4e-3, atol=2e-2 if dtype == "f16" else 2e-5)


def test_the_fixpipe_waits_until_the_tile_that_landed_before_was_read() -> None:
    shape, target = MatmulShape(256, 256, 64), davinci_target("ascend950pr")
    schedule = library_schedule(shape, target, cores=1, scalar_cycles=0.0)
    kernel = fused_matmul_kernel(shape, schedule, target, "gelu", "ub")
    names = [op.name for op in kernel.walk()]
    landing = names.index("davinci.copy_matrix_cc_to_ubuf")
    assert "davinci.wait_flag_dev" in names[names.index("davinci.mad") : landing]
    check_kernel(kernel)
