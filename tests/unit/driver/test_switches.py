"""Every optimisation can be turned off by name, alone, and results stay those of the interpreter."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import save

import msc
from msc.driver.cli import command
from msc.driver.compile import compile_model, stage_text
from msc.driver.interpretation import interpret
from msc.driver.options import CompileOptions
from msc.driver.reading_models import read_model
from msc.driver.stages import STAGES
from msc.driver.switches import SWITCHES, switched
from msc.support.diagnostics import MscError

MODEL = """
builtin.module @block attributes {ms.weights = "block.safetensors"} {
  ms.parameter @first : tensor<16x16x3x3xf32>
  ms.parameter @scale : tensor<16xf32>
  ms.parameter @offset : tensor<16xf32>
  ms.parameter @mean : tensor<16xf32>
  ms.parameter @variance : tensor<16xf32>
  ms.parameter @second : tensor<32x16x1x1xf32>
  ms.parameter @dense : tensor<24x64xf32>
  func.func @main(%image: tensor<1x16x8x8xf32>) -> tensor<32x24xf32> {
    %w = ms.get_parameter @first : tensor<16x16x3x3xf32>
    %c = ms.conv2d %image, %w {pad_mode = "same"}
    %s = ms.get_parameter @scale : tensor<16xf32>
    %o = ms.get_parameter @offset : tensor<16xf32>
    %m = ms.get_parameter @mean : tensor<16xf32>
    %v = ms.get_parameter @variance : tensor<16xf32>
    %n = ms.batch_norm %c, %s, %o, %m, %v
    %r = ms.relu %n
    %sum = ms.add %r, %image
    %w2 = ms.get_parameter @second : tensor<32x16x1x1xf32>
    %c2 = ms.conv2d %sum, %w2
    %tokens = ms.reshape %c2 {shape = [32, 64]}
    %products = ms.matmul %tokens, %tokens {transpose_b = true}
    %weights = ms.softmax %products {axis = -1}
    %mixed = ms.matmul %weights, %tokens
    %d = ms.get_parameter @dense : tensor<24x64xf32>
    %y = ms.dense %mixed, %d
    %g = ms.gelu %y
    func.return %g : tensor<32x24xf32>
  }
}
"""
"""A convolution with padding, batch norm and a residual, a pointwise one, attention, a dense layer: all switches."""

SHAPES = {
    "first": (16, 16, 3, 3), "scale": (16,), "offset": (16,), "mean": (16,), "variance": (16,),
    "second": (32, 16, 1, 1), "dense": (24, 64),
}  # fmt: skip


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder, random = tmp_path_factory.mktemp("block"), np.random.default_rng(0)
    arrays = {name: (random.random(shape, np.float32) + 0.5) / shape[-1] for name, shape in SHAPES.items()}
    (folder / "block.safetensors").write_bytes(save(arrays))
    (folder / "block.mir").write_text(MODEL, "utf-8")
    return str(folder / "block.mir")


def options(*without: str) -> CompileOptions:
    return CompileOptions(march="x86-64-v3", without=without)


def assert_is_right(model: str, without: Sequence[str]) -> None:
    image = np.random.default_rng(1).standard_normal((1, 16, 8, 8), np.float32)
    expected = interpret(read_model(model, options()), [image])[0]
    result = msc.compile(model, march="x86-64-v3", without=without, use_cache=False)(image)
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4 * float(np.abs(expected).max()))


@pytest.mark.parametrize("name", SWITCHES)
def test_results_are_right_without_an_optimisation(name: str, block: str) -> None:
    assert_is_right(block, [name])


def test_results_are_right_without_any_optimisation(block: str) -> None:
    assert_is_right(block, [*SWITCHES])


@pytest.mark.parametrize("name", ["batch-norms", "fusion", "layouts", "packing", "reuse", "schedules", "vectors"])
def test_a_switch_changes_what_is_compiled(name: str, block: str) -> None:
    first, second = (stage_text(compile_model(block, options(*without))) for without in ((), (name,)))
    assert first != second


def test_every_switch_is_of_a_pass_of_the_table() -> None:
    passes = {spec.partition("{")[0] for stage in STAGES for spec in stage.passes}
    assert {switch.passes for switch in SWITCHES.values()} <= passes


def test_a_pass_is_left_out_or_gets_an_option() -> None:
    passes = ("dce", "sink-views", "cluster-kernels", "vectorize{target=generic}")
    expected = ("dce", "cluster-kernels{fuse=false}", "vectorize{enable=false target=generic}")
    assert switched(passes, ("views", "fusion", "vectors")) == expected


def test_an_unknown_optimisation_is_refused_by_name() -> None:
    with pytest.raises(MscError) as raised:
        options("fusoin")
    assert raised.value.diagnostics[0].code == "MSC0008"
    assert "fusion" in (raised.value.diagnostics[0].help or "")


def test_the_command_line_takes_names(model: Path) -> None:
    arguments = ["compile", str(model), "--stop-after", "gk", "--without", "fusion,packing"]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.count("gk.kernel") > 3
