"""Every optimisation can be turned off by name, alone, and results stay those of the interpreter."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import save

from msc.backends.registry import find_backend
from msc.backends.stage import PassRun, runs
from msc.driver.cli import command
from msc.driver.compile import Compilation, compile_model, generate_c, stage_text
from msc.driver.models.entry import entry_function
from msc.driver.models.interpretation import interpret
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions
from msc.driver.passes.instances import pass_instances, without
from msc.ir.typed import static_shape
from msc.runtime.artifact import load
from msc.runtime.build import BuildOptions, build
from msc.support.diagnostics import MscError
from tests.unit.compiled.programs import QUICK

TABLE = find_backend("cpu").table
SWITCHES = find_backend("cpu").all_switches

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
"""A convolution with padding, batch norm and a residual, a pointwise one, a little attention, a dense layer."""

ATTENTION = """
func.func @main(%q: tensor<6x96x8xf32>, %k: tensor<6x320x8xf32>, %v: tensor<6x320x4xf32>) -> tensor<6x96x4xf32> {
  %s = ms.batch_matmul %q, %k {transpose_b = true}
  %p = ms.softmax %s
  %y = ms.batch_matmul %p, %v
  func.return %y : tensor<6x96x4xf32>
}
"""

TWICE = """
func.func @main(%x: tensor<37xf32>) -> (tensor<37xf32>, tensor<37xf32>) {
  %a = ms.exp %x
  %b = ms.exp %x
  %c = ms.neg %b
  func.return %a, %c : tensor<37xf32>, tensor<37xf32>
}
"""

SUM = """func.func @main(%x: tensor<2000x16xf32>) -> tensor<16xf32> {
  %0 = ms.reduce_sum %x {axis = 0}
  func.return %0 : tensor<16xf32>
}
"""

VIEW = """
func.func @main(%x: tensor<4x6xf32>, %b: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %a = ms.exp %x
  %r = ms.reshape %a {shape = [3, 8]}
  %y = ms.add %r, %b
  func.return %y : tensor<3x8xf32>
}
"""

PADDED = """
func.func @main(%x: tensor<1x8x9x9xf32>, %w: tensor<8x8x1x1xf32>, %v: tensor<8x8x3x3xf32>) -> tensor<1x8x9x9xf32> {
  %a = ms.conv2d %x, %w
  %b = ms.relu %a
  %y = ms.conv2d %b, %v {pad_mode = "same"}
  func.return %y : tensor<1x8x9x9xf32>
}
"""

PRODUCT = """
func.func @main(%x: tensor<32x1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<32x1024xf32> {
  %y = ms.matmul %x, %w
  func.return %y : tensor<32x1024xf32>
}
"""

SCORES = """
func.func @main(%q: tensor<640x16xf32>, %k: tensor<640x16xf32>, %v: tensor<640x16xf32>) -> tensor<640x16xf32> {
  %s = ms.matmul %q, %k {transpose_b = true}
  %p = ms.softmax %s
  %y = ms.matmul %p, %v
  %d = ms.tanh %y
  %g = ms.matmul %p, %d {transpose_a = true}
  func.return %g : tensor<640x16xf32>
}
"""

RECURRENCE = """
func.func @main(%x: tensor<9x4xf32>, %w: tensor<4x4xf32>, %h: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %low = arith.constant 0 : index
  %high = arith.constant 9 : index
  %step = arith.constant 1 : index
  %last = scf.for %i = %low to %high step %step iter_args(%state = %h) -> (tensor<1x4xf32>) {
    %n = arith.index_cast %i : index to i64
    %number = tensor.from_elements %n : tensor<i64>
    %row = ms.extract_slice %x, %number
    %t = ms.tanh %w
    %product = ms.matmul %state, %t
    %sum = ms.add %product, %row
    %next = ms.tanh %sum
    scf.yield %next : tensor<1x4xf32>
  }
  func.return %last : tensor<1x4xf32>
}
"""

CONVOLUTION = """
builtin.module @convolution attributes {ms.weights = "convolution.safetensors"} {
  ms.parameter @w : tensor<64x64x3x3xf32>
  func.func @main(%x: tensor<1x64x16x16xf32>) -> tensor<1x64x16x16xf32> {
    %w = ms.get_parameter @w : tensor<64x64x3x3xf32>
    %y = ms.conv2d %x, %w {pad_mode = "same"}
    func.return %y : tensor<1x64x16x16xf32>
  }
}
"""

PATCHES = """
func.func @main(%x: tensor<2x24x3x3xf32>, %w: tensor<96x24x3x3xf32>) -> tensor<2x96x3x3xf32> {
  %y = ms.conv2d %x, %w {pad_mode = "same"}
  func.return %y : tensor<2x96x3x3xf32>
}
"""

PAIR = """
[unit.pair]
computes = "c[n] += a[n, k] * b[n, k]"
shape = { n = 8, k = 2 }
a = { types = ["bf16"] }
b = { types = ["bf16"] }
c = { types = ["f32"] }
cycles = 1
latency = 4
"""
PAIRS = """
func.func @main(%x: tensor<8x63xf32>, %y: tensor<63x40xf32>) -> tensor<8x40xf32> {
  %a = ms.cast %x {dtype = bf16}
  %b = ms.cast %y {dtype = bf16}
  %p = ms.matmul %a, %b {dtype = f32}
  func.return %p : tensor<8x40xf32>
}
"""

ORDER = """
func.func @main(%x: tensor<512x8xf32>, %y: tensor<8x512xf32>, %z: tensor<512x4xf32>) -> tensor<8x512xf32> {
  %late = ms.matmul %x, %y
  %x2 = ms.neg %x
  %early = ms.matmul %x2, %y
  %square = ms.tanh %early
  %p = ms.matmul %square, %z
  %rows = ms.reshape %p {shape = [4, 512]}
  %q = ms.concat %rows, %rows {axis = 0}
  %r = ms.matmul %q, %late
  func.return %r : tensor<8x512xf32>
}
"""

AGAIN = """
func.func @main(%image: tensor<64x512xf32>, %mean: tensor<1x512xf32>, %w: tensor<512x512xf32>) -> tensor<64x512xf32> {
  %x = ms.matmul %image, %w
  %d = ms.sub %x, %mean
  %s = ms.square %d
  %y = ms.matmul %s, %w
  %z = ms.matmul %y, %w
  %g = ms.mul %z, %d
  %h = ms.mul %g, %x
  func.return %h : tensor<64x512xf32>
}
"""

UPDATE = """
func.func @main(%x: tensor<512x64xf32>, %y: tensor<64x1024xf32>, %w: tensor<512x1024xf32>) -> tensor<512x1024xf32> {
  %g = ms.matmul %x, %y
  %n = ms.sub %w, %g
  func.return %n : tensor<512x1024xf32>
}
"""

STATE = """
func.func @main(%x: tensor<64x96xf32>, %w: tensor<96x96xf32> {ms.layout = "any"})
    -> (tensor<64x96xf32>, tensor<96x96xf32> {ms.updates = 1 : i64}) {
  %y = ms.matmul %x, %w {transpose_b = true}
  %g = ms.matmul %y, %x {transpose_a = true}
  %n = ms.sub %w, %g
  func.return %y, %n : tensor<64x96xf32>, tensor<96x96xf32>
}
"""

ROLL = """
func.func @main(%x: tensor<56x56x96xf32>) -> tensor<56x56x96xf32> {
  %a = ms.slice %x {begin = [3, 0, 0], end = [56, 56, 96]}
  %b = ms.slice %x {begin = [0, 0, 0], end = [3, 56, 96]}
  %y = ms.concat %a, %b {axis = 0}
  func.return %y : tensor<56x56x96xf32>
}
"""

DILATED = """
builtin.module @dilated attributes {ms.weights = "dilated.safetensors"} {
  ms.parameter @d : tensor<64x128x3x3xf32>
  func.func @main(%x: tensor<1x128x12x12xf32>) -> tensor<1x64x12x12xf32> {
    %w = ms.get_parameter @d : tensor<64x128x3x3xf32>
    %y = ms.conv2d %x, %w {pad_mode = "same", dilation = [8, 8]}
    func.return %y : tensor<1x64x12x12xf32>
  }
}
"""

ORDERED = """
func.func @main(%x: tensor<4x9xf32>) -> tensor<4x3xi64> {
  %y = ms.argsort %x {count = 3, descending = true}
  func.return %y : tensor<4x3xi64>
}
"""

CUMULATED = """
func.func @main(%x: tensor<20x64xf32>) -> tensor<20x64xf32> {
  %y = ms.cumsum %x {axis = 0}
  func.return %y : tensor<20x64xf32>
}
"""

MODELS = {
    "again": (AGAIN, ("rematerialize",)),
    "block": (MODEL, ("fold-batch-norm", "fusion", "assign-layouts", "pack-operands", "reuse", "schedules", "vectors")),
    "attention": (ATTENTION, ("block-attention", "outline-loops")),
    "cumulated": (CUMULATED, ("scan-rows",)),
    "convolution": (CONVOLUTION, ("winograd",)),
    "order": (ORDER, ("order-kernels",)),
    "ordered": (ORDERED, ("argsort-by-keys",)),
    "update": (UPDATE, ("prefetches",)),
    "twice": (TWICE, ("cse",)),
    "recurrence": (RECURRENCE, ("hoist-invariants", "outline-recurrences")),
    "padded": (PADDED, ("fuse-pads",)),
    "units": (PAIRS, ("units",)),
    "patches": (PATCHES, ("convolutions-as-products",)),
    "product": (PRODUCT, ("reduction-blocks",)),
    "scores": (SCORES, ("block-attention-gradients",)),
    "roll": (ROLL, ("compute-at-consumers",)),
    "state": (STATE, ("store-states",)),
    "dilated": (DILATED, ("split-taps",)),
    "sum": (SUM, ("sums",)),
    "view": (VIEW, ("sink-views",)),
}
"""Small models on which optimisations do something: the scores of the attention and the rows of the product outgrow
L2 of the target, the convolution is worth Winograd's algorithm."""

SHAPES = {
    "first": (16, 16, 3, 3), "scale": (16,), "offset": (16,), "mean": (16,), "variance": (16,),
    "second": (32, 16, 1, 1), "dense": (24, 64), "w": (64, 64, 3, 3), "d": (64, 128, 3, 3),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, random = tmp_path_factory.mktemp("switches"), np.random.default_rng(0)
    arrays = {name: (random.random(shape, np.float32) + 0.5) / shape[-1] for name, shape in SHAPES.items()}
    for name, (text, _) in MODELS.items():
        (folder / f"{name}.safetensors").write_bytes(save(arrays))
        (folder / f"{name}.mir").write_text(text, "utf-8")
    (folder / "machine.toml").write_text(f'base = "x86-64-v3"\n{PAIR}', "utf-8")
    return folder


def options(*without: str, march: str = "x86-64-v3") -> CompileOptions:
    return CompileOptions(march=march, without=without)


@cache
def text_of(model: str, march: str) -> str:
    """The last stage of a model with all optimisations."""
    return stage_text(compile_model(model, options(march=march)))


def assert_is_right(model: str, compilation: Compilation) -> None:
    """What a compilation computes is what the model means."""
    read, random = read_model(model, options()), np.random.default_rng(1)
    shapes = [static_shape(argument) for argument in entry_function(read.module).args]
    inputs = [random.standard_normal(shape, np.float32) for shape in shapes]
    expected = interpret(read, inputs)
    with TemporaryDirectory() as folder:
        library = Path(folder) / "model.so"
        build(generate_c(compilation), compilation.parameters(), "so", library, BuildOptions(QUICK))
        results = load(library).results(*inputs)
    for result, right in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, right, rtol=1e-3, atol=1e-4 * float(np.abs(right).max()))


@pytest.mark.parametrize(("model", "name"), [(model, name) for model, (_, names) in MODELS.items() for name in names])
def test_without_an_optimisation_another_module_gives_the_same_results(model: str, name: str, folder: Path) -> None:
    path, march = str(folder / f"{model}.mir"), str(folder / "machine.toml")
    without_it = compile_model(path, options(name, march=march))
    assert stage_text(without_it) != text_of(path, march)
    if name == "pairs":  # of a machine that this one may not be
        without_it = compile_model(path, options(name))
    assert_is_right(path, without_it)


def test_every_switch_has_a_model() -> None:
    assert sorted(name for _, names in MODELS.values() for name in names) == sorted(SWITCHES)


@pytest.mark.parametrize("model", ["block", "attention", "recurrence"])
def test_results_are_right_without_any_optimisation(model: str, folder: Path) -> None:
    path = str(folder / f"{model}.mir")
    assert_is_right(path, compile_model(path, options(*SWITCHES)))


def test_every_switch_is_of_a_pass_of_the_table() -> None:
    passes = {run.name for stage in TABLE.stages for run in stage.passes}
    assert {switch.pass_name for switch in SWITCHES.values()} <= passes
    assert all((switch.name in passes) == (not switch.options) for switch in SWITCHES.values())


def test_a_pass_is_left_out_or_gets_an_option() -> None:
    changes = without(find_backend("cpu"), ("sink-views", "fusion", "vectors"))
    passes = runs("dce", "sink-views", PassRun("cluster-kernels", {"max_operations": 3}), "vectorize")
    left = [str(item.pipeline_pass_spec()) for item in pass_instances(passes, changes)]
    assert left == ["dce", "cluster-kernels{max_operations=3 fuse=false}", "vectorize{enable=false}"]


def test_options_of_one_pass_add_up() -> None:
    changes = without(find_backend("cpu"), ("reduction-blocks", "prefetches", "schedules"))
    assert changes == {"schedule-kernels": {"blocks": False, "prefetches": False, "plain": True}}


def test_an_unknown_optimisation_is_refused_by_name() -> None:
    with pytest.raises(MscError) as raised:
        options("fusoin")
    assert raised.value.diagnostics[0].code == "MSC0008"
    assert "fusion" in (raised.value.diagnostics[0].help or "")


def test_the_command_line_takes_names(model: Path) -> None:
    arguments = ["compile", str(model), "--stop-after", "gk", "--without", "fusion,pack-operands"]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.count("gk.kernel") > 3
