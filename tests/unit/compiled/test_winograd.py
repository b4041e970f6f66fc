"""Convolutions by Winograd transforms through C: paddings, layouts, channels that fill no vector."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save
from xdsl.dialects.func import CallOp

from msc.backends.registry import find_backend
from msc.dialects.gk import KernelOp
from msc.dialects.gk.attributes import GK_REASONS
from msc.driver.compile import compile_model, compile_read, generate_c, stage_text
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions
from msc.driver.passes.instances import pass_instances
from msc.driver.passes.pass_manager import PassManager
from msc.graph_kernel import compute_at_consumers
from msc.interp import evaluate
from msc.runtime.artifact import load
from msc.runtime.build import BuildOptions, build
from tests.covering import each
from tests.unit.compiled.programs import QUICK

TABLE = find_backend("cpu").table

NETWORK = """builtin.module @net attributes {{ms.weights = "net.safetensors"}} {{
  ms.parameter @v : tensor<{a}x3x1x1xf32>
  ms.parameter @w : tensor<{b}x{a}x3x3xf32>
  ms.parameter @u : tensor<{b}x{b}x3x3xf32>
  ms.parameter @bias : tensor<{b}xf32>
  func.func @main(%x: tensor<2x3x{h}x{w}xf32>) -> tensor<2x{b}x{h}x{w}xf32> {{
    %v = ms.get_parameter @v : tensor<{a}x3x1x1xf32>
    %w = ms.get_parameter @w : tensor<{b}x{a}x3x3xf32>
    %u = ms.get_parameter @u : tensor<{b}x{b}x3x3xf32>
    %bias = ms.get_parameter @bias : tensor<{b}xf32>
    %0 = ms.conv2d %x, %v
    %1 = ms.conv2d %0, %w, %bias {{pad_mode = "same"}}
    %2 = ms.relu %1
    %3 = ms.conv2d %2, %u {{pad_mode = "same"}}
    %4 = ms.add %3, %2
    %5 = ms.relu %4
    func.return %5 : tensor<2x{b}x{h}x{w}xf32>
  }}
}}
"""
"""Channels change, an epilogue with a bias, and one with a residual image; convolutions one after the other."""

VOLUMES = (
    NETWORK.replace("conv2d", "conv3d")
    .replace("x3x1x1xf32", "x3x1x1x1xf32")
    .replace("x3x3xf32", "x2x3x3xf32")
    .replace("{h}x{w}", "4x{h}x{w}")
)
"""The same of volumes of four images, two of which a tap reads."""


def network(folder: Path, a: int, b: int, h: int, w: int, text: str = NETWORK) -> Path:
    rng = np.random.default_rng(a + b)
    taps = (3, 3) if text == NETWORK else (2, 3, 3)
    shapes = {"v": (a, 3, *(1 for _ in taps)), "w": (b, a, *taps), "u": (b, b, *taps), "bias": (b,)}
    weights = {name: rng.uniform(-0.3, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    (folder / "net.safetensors").write_bytes(save(weights))
    path = folder / "net.mir"
    path.write_text(text.format(a=a, b=b, h=h, w=w), encoding="utf-8")
    return path


def with_tiles(model: Path, tile: int, march: str, rows: int = 0, *, merged: bool = True) -> Path:
    """The kernels of a model, as a stage file, with all convolutions in tiles of one size, in blocks of some rows.

    `merged`: kernels that run over the same blocks are one.
    """
    compilation = compile_model(str(model), CompileOptions(march=march), stop_after="opt")
    taken, passes = compilation.model, pass_instances(TABLE["gk"].passes, {"winograd": {"tile": tile, "rows": rows}})
    passes = [each for each in passes if merged or each.name != "compute-at-consumers"]
    PassManager(taken.context, taken.sources).run(taken.module, passes)
    compilation.stage = TABLE["gk"]
    path = model.with_suffix(".gk.mir")
    path.write_text(stage_text(compilation), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("sizes", "march", "tile"),
    each([(16, 32, 8, 12), (5, 19, 8, 8), (33, 7, 9, 5), (1, 1, 3, 4)], ["native", "x86-64-v2"], [2, 4]),
)
def test_as_the_interpreter(sizes: tuple[int, int, int, int], march: str, tile: int, tmp_path: Path) -> None:
    assert_as_the_interpreter(network(tmp_path, *sizes), (2, 3, *sizes[2:]), march, tile)


@pytest.mark.parametrize(
    ("sizes", "march", "threads", "tile"),
    each([(16, 32, 8, 12), (5, 19, 9, 5), (1, 1, 3, 4)], ["native", "x86-64-v2"], [1, 2], [2, 4]),
)
def test_volumes(sizes: tuple[int, int, int, int], march: str, threads: int, tile: int, tmp_path: Path) -> None:
    assert_as_the_interpreter(network(tmp_path, *sizes, VOLUMES), (2, 3, 4, *sizes[2:]), march, tile, threads)


def assert_as_the_interpreter(model: Path, shape: tuple[int, ...], march: str, tile: int, threads: int = 1) -> None:
    folder = model.parent
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    stage = with_tiles(model, tile, march)
    assert stage.read_text("utf-8").count('"winograd_product"') == 2
    compilation = compile_model(str(stage), CompileOptions(march=march, threads=threads))
    program = build(generate_c(compilation), compilation.parameters(), "so", folder / "n.so", BuildOptions(QUICK))
    plain = compile_read(read_model(str(model), CompileOptions()), CompileOptions(), stop_after="graph")
    (expected,) = evaluate(plain.module, [x], plain.parameters())
    (actual,) = load(program).results(x)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


GRADIENT = """builtin.module @gradient {{
  func.func @main(%x: tensor<{n}x{a}x{h}x{w}xf32>, %g: tensor<{n}x{b}x{h}x{w}xf32>, %m: tensor<{b}x{a}x3x3xf32>)
      -> tensor<{b}x{a}x3x3xf32> {{
    %p = ms.pad %x {{pad = [0, 0, 1, 1, 0, 0, 1, 1]}}
    %i = ms.transpose %p {{perm = [1, 0, 2, 3]}}
    %k = ms.transpose %g {{perm = [1, 0, 2, 3]}}
    %c = ms.conv2d %i, %k
    %t = ms.transpose %c {{perm = [1, 0, 2, 3]}}
    %r = ms.add %t, %m
    func.return %r : tensor<{b}x{a}x3x3xf32>
  }}
}}
"""
"""The gradient of a convolution by its filter, added to a momentum."""


@pytest.mark.parametrize(
    ("sizes", "march", "threads", "tile"),
    each(
        [(4, 16, 32, 8, 12), (2, 5, 19, 7, 5), (3, 33, 7, 9, 8), (2, 2, 3, 3, 4)],
        ["native", "x86-64-v2"],
        [1, 2],
        [2, 4],
    ),
)
def test_gradients_by_filters(
    sizes: tuple[int, int, int, int, int], march: str, threads: int, tile: int, tmp_path: Path
) -> None:
    """Beside a sum over all taps in f64."""
    n, a, b, h, w = sizes
    model = tmp_path / "gradient.mir"
    model.write_text(GRADIENT.format(n=n, a=a, b=b, h=h, w=w), encoding="utf-8")
    rng = np.random.default_rng(sum(sizes))
    shapes = ((n, a, h, w), (n, b, h, w), (b, a, 3, 3))
    x, g, m = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    stage = with_tiles(model, tile, march)
    assert "winograd_gradient" in stage.read_text("utf-8")
    compilation = compile_model(str(stage), CompileOptions(march=march, threads=threads))
    program = build(generate_c(compilation), compilation.parameters(), "so", tmp_path / "g.so", BuildOptions(QUICK))
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (h, w), (2, 3))
    expected = m + np.einsum("nacdhw,nbhw->bacd", windows.astype(np.float64), g.astype(np.float64))
    (actual,) = load(program).results(x, g, m)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("sizes", "blocks", "threads"),
    each([(16, 32, 16, 24), (5, 19, 16, 8), (64, 48, 30, 33)], [(2, 1), (4, 1), (4, 2)], [1, 2]),
)
def test_blocks_in_one_kernel(
    sizes: tuple[int, int, int, int], blocks: tuple[int, int], threads: int, tmp_path: Path
) -> None:
    """The same bits as without blocks, in no more memory."""
    tile, rows = blocks
    model = network(tmp_path, *sizes)
    x = np.random.default_rng(1).standard_normal((2, 3, *sizes[2:])).astype(np.float32)
    results, sizes_of_workspace = list[np.ndarray](), list[int]()
    for number, (block, merged) in enumerate(((rows, True), (rows, False), (0, False))):
        stage = with_tiles(model, tile, "native", block, merged=merged)
        compilation = compile_model(str(stage), CompileOptions(threads=threads))
        library = tmp_path / f"{number}.so"  # of its own: a library of a name is loaded once
        program = build(generate_c(compilation), compilation.parameters(), "so", library, BuildOptions(QUICK))
        loaded = load(program)
        results.append(loaded.results(x)[0])
        sizes_of_workspace.append(loaded.signature.workspace_bytes)
        calls = sum(isinstance(op, CallOp) for op in compilation.module.walk())
        assert (calls < 8) == (block > 0 and merged)
    assert all(np.array_equal(result, results[-1]) for result in results)
    assert sizes_of_workspace[0] <= sizes_of_workspace[1]


def test_borders_of_the_next_image(tmp_path: Path) -> None:
    """A kernel whose last member also fills the borders of what the next convolution reads, on threads."""
    model = network(tmp_path, 16, 32, 16, 24)
    text = model.read_text("utf-8")
    model.write_text(text.replace("ms.add %3, %2", "ms.relu %3"), encoding="utf-8")  # one reader: the pad joins it
    x = np.random.default_rng(1).standard_normal((2, 3, 16, 24)).astype(np.float32)
    results = list[np.ndarray]()
    for rows in (1, 0):
        compilation = compile_model(str(with_tiles(model, 4, "native", rows)), CompileOptions(threads=2))
        library = tmp_path / f"{rows}.so"
        program = build(generate_c(compilation), compilation.parameters(), "so", library, BuildOptions(QUICK))
        results.append(load(program).results(x)[0])
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize("sizes", [(61, 192, 7, 3), (64, 136, 8, 6)])
def test_blocks_of_channels(sizes: tuple[int, int, int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits as without, in less memory: of products and of the padded image there is a block at a time.

    Images as small as these gain nothing from it, so whatever is legal is merged.
    """
    monkeypatch.setattr(compute_at_consumers, "GAIN", math.inf)
    model = network(tmp_path, *sizes)
    x = np.random.default_rng(1).standard_normal((2, 3, *sizes[2:])).astype(np.float32)
    results, memory = list[np.ndarray](), list[int]()
    for number, merged in enumerate((True, False)):
        stage = with_tiles(model, 2, "x86-64-v3", merged=merged)
        assert ("gk.materialize" in stage.read_text("utf-8")) == merged
        compilation = compile_model(str(stage), CompileOptions(march="x86-64-v3"))
        library = tmp_path / f"{number}.so"
        program = build(generate_c(compilation), compilation.parameters(), "so", library, BuildOptions(QUICK))
        loaded = load(program)
        results.append(loaded.results(x)[0])
        memory.append(loaded.signature.workspace_bytes)
    assert np.array_equal(results[0], results[1])
    assert memory[0] < memory[1]


def test_the_option_switches_it_off(tmp_path: Path) -> None:
    model = str(network(tmp_path, 64, 64, 32, 32))
    assert "by Winograd's algorithm" in reasons(model, CompileOptions(march="x86-64-v4"))
    assert "by Winograd's algorithm" not in reasons(model, CompileOptions(march="x86-64-v4", without=("winograd",)))


def reasons(model: str, options: CompileOptions) -> str:
    """Why the kernels of a model are what they are."""
    module = compile_model(model, options, stop_after="gk").module
    return " ".join(str(op.attributes.get(GK_REASONS)) for op in module.walk() if isinstance(op, KernelOp))
