"""From model to artifact: every stage resumes to the same C, the API calls, the cache finds."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

import msc
from msc.backends.registry import find_backend
from msc.driver.artifacts.artifact_cache import ArtifactCache
from msc.driver.artifacts.emission import emit
from msc.driver.artifacts.forms import Output
from msc.driver.compile import compile_model, generate_c
from msc.driver.models.interpretation import interpret
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions, Reporting, parse_size
from msc.support.diagnostics import MscError
from msc.support.wording import size_text

TABLE = find_backend("cpu").table

SAMPLES = Path(__file__).parents[3] / "samples"
OPTIONS = CompileOptions(march="x86-64-v3")


def program_text(model: Path, options: CompileOptions = OPTIONS) -> str:
    program = generate_c(compile_model(str(model), options))
    return program.source + program.header


@pytest.mark.parametrize("sample", ["lenet5", "attention"])
def test_every_stage_resumes_to_the_same_c(sample: str, tmp_path: Path) -> None:
    model = SAMPLES / sample / f"{sample}.mir"
    whole = generate_c(compile_model(str(model), OPTIONS, reporting=Reporting(dump=tmp_path)))
    for stage in TABLE.ir:
        assert program_text(tmp_path / f"{sample}{stage.extension}") == whole.source + whole.header, stage.name


LOOPS = """
func.func @main(%x: tensor<4xf32> {ms.name = "x"}, %c: tensor<i1> {ms.name = "c"}) -> (tensor<4xf32> {ms.name = "y"}) {
  %b = tensor.extract %c[] : tensor<i1>
  %r = scf.if %b -> (tensor<4xf32>) {
    %w = scf.while (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
      %m = ms.reduce_max %a
      %one = ms.constant dense<1.0> : tensor<f32>
      %g = ms.greater %m, %one
      %go = tensor.extract %g[] : tensor<i1>
      scf.condition(%go) %a : tensor<4xf32>
    } do {
    ^bb0(%a2: tensor<4xf32>):
      %half = ms.constant dense<0.5> : tensor<f32>
      %n = ms.mul %a2, %half
      scf.yield %n : tensor<4xf32>
    }
    scf.yield %w : tensor<4xf32>
  } else {
    %first = arith.constant 0 : index
    %last = arith.constant 3 : index
    %step = arith.constant 1 : index
    %f = scf.for %i = %first to %last step %step iter_args(%s = %x) -> (tensor<4xf32>) {
      %t = ms.sin %s
      scf.yield %t : tensor<4xf32>
    }
    scf.yield %f : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
"""


def test_control_flow_resumes_to_the_same_c(tmp_path: Path) -> None:
    model = tmp_path / "loops.mir"
    model.write_text(LOOPS)
    (tmp_path / "stages").mkdir()
    whole = generate_c(compile_model(str(model), OPTIONS, reporting=Reporting(dump=tmp_path / "stages")))
    for stage in TABLE.ir:
        assert program_text(tmp_path / "stages" / f"loops{stage.extension}") == whole.source + whole.header, stage.name


def test_a_stage_never_reaches_back(model: Path, tmp_path: Path) -> None:
    (tmp_path / "stages").mkdir()
    compile_model(str(model), OPTIONS, "gk", Reporting(dump=tmp_path / "stages"))
    with pytest.raises(MscError, match="MSC0006"):
        compile_model(str(tmp_path / "stages" / "small.gk.mir"), OPTIONS, "opt")


@pytest.mark.parametrize(("name", "code"), [("absent", "MSC0301"), ("w", "MSC0304"), ("v", "MSC0303")])
def test_weights_that_do_not_fit_are_told_of_before_any_pass(name: str, code: str, tmp_path: Path) -> None:
    """A file that is not there, a tensor of another shape, a tensor that is not there."""
    text = (
        'builtin.module @m attributes {ms.weights = "m.safetensors"} {\n  ms.parameter @w : tensor<3xf32>\n'
        "  func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n    %w = ms.get_parameter @w : tensor<3xf32>\n"
        "    %y = ms.add %x, %w\n    func.return %y : tensor<3xf32>\n  }\n}\n"
    )
    (tmp_path / "m.mir").write_text(text)
    if name != "absent":
        (tmp_path / "m.safetensors").write_bytes(save({name: np.zeros(4, np.float32)}))
    reporting = Reporting(dump=tmp_path / "stages")
    with pytest.raises(MscError, match=code):
        emit(str(tmp_path / "m.mir"), Output("c", tmp_path / "m.c"), OPTIONS, reporting)
    assert not (tmp_path / "stages").exists()
    emit(str(tmp_path / "m.mir"), Output("gk", tmp_path / "m.gk.mir"), OPTIONS, Reporting())


def test_a_model_starts_at_main(tmp_path: Path) -> None:
    model = tmp_path / "other.mir"
    model.write_text("func.func @other(%x: tensor<1xf32>) -> tensor<1xf32> { func.return %x : tensor<1xf32> }", "utf-8")
    with pytest.raises(MscError, match="MSC0605"):
        msc.compile(model)


def test_the_same_input_gives_the_same_bytes(model: Path) -> None:
    assert program_text(model) == program_text(model)


def test_compiled_models_are_called_with_arrays(model: Path) -> None:
    x = np.random.default_rng(1).standard_normal((2, 6), np.float32)
    (expected,) = interpret(read_model(str(model), OPTIONS), [x])
    compiled = msc.compile(model)
    np.testing.assert_allclose(compiled(x), expected, 1e-5, 1e-6)
    np.testing.assert_array_equal(compiled(x=x), compiled(x))


def test_saved_models_load_and_are_what_the_compiler_built(model: Path, tmp_path: Path) -> None:
    x = np.ones((2, 6), np.float32)
    compiled = msc.compile(model)
    compiled.save(tmp_path / "saved.so")
    uncached = msc.compile(model, use_cache=False)
    uncached.save(tmp_path / "again.so")
    np.testing.assert_array_equal(msc.load(tmp_path / "saved.so")(x), compiled(x))
    assert (tmp_path / "saved.so").read_bytes() == (tmp_path / "again.so").read_bytes()


def test_the_second_compilation_comes_from_the_cache(model: Path) -> None:
    options = CompileOptions()
    assert ArtifactCache(str(model), options).find() is None
    path = msc.compile(model).path
    assert ArtifactCache(str(model), options).find() == path
    assert ArtifactCache(str(model), CompileOptions(threads=2)).find() is None


def test_the_cache_knows_a_copy_in_another_folder(model: Path, tmp_path: Path) -> None:
    path = msc.compile(model).path
    other = tmp_path / "other"
    shutil.copytree(model.parent, other)
    found = ArtifactCache(str(other / model.name), CompileOptions(weights=other)).find()
    assert found == path is not None
    (other / model.name).rename(other / "renamed.mir")
    assert ArtifactCache(str(other / "renamed.mir"), CompileOptions()).find() is None


def test_the_cache_sees_that_weights_change(model: Path) -> None:
    x = np.ones((2, 6), np.float32)
    before = msc.compile(model)(x)
    weights = model.parent / "small.safetensors"
    data = bytearray(weights.read_bytes())
    data[-4:] = np.float32(9).tobytes()
    weights.write_bytes(data)
    assert not np.array_equal(msc.compile(model)(x), before)


def test_what_changed_while_it_was_compiled_is_not_kept(model: Path) -> None:
    library = msc.compile(model).path
    assert library is not None
    store = ArtifactCache(str(model), OPTIONS)
    store.begin()
    weights = model.parent / "small.safetensors"
    weights.write_bytes(weights.read_bytes())
    assert store.put(library, [weights.name]) is None
    assert store.find() is None


def test_a_model_that_changed_while_it_was_compiled_is_not_kept(model: Path) -> None:
    library = msc.compile(model).path
    assert library is not None
    store = ArtifactCache(str(model), OPTIONS)
    model.write_text(model.read_text("utf-8") + "\n", "utf-8")
    store.begin()
    assert store.put(library, []) is None


@pytest.mark.parametrize("text", ['[{"name": 1}]', '{"name": 1}', '["gone"]', "[", ""])
def test_a_damaged_recipe_is_a_miss(model: Path, text: str) -> None:
    path = msc.compile(model).path
    assert path is not None
    for recipe in path.parent.glob("*.json"):
        recipe.write_text(text, "utf-8")
    assert msc.compile(model)(np.ones((2, 6), np.float32)).shape == (2, 4)


def test_a_look_up_loads_no_compiler(model: Path) -> None:
    msc.compile(model)
    code = f"import sys, msc; msc.compile({str(model)!r}); print('xdsl' in sys.modules, 'islpy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", "False"]


def test_open_dimensions_get_sizes(tmp_path: Path) -> None:
    model = tmp_path / "open.mir"
    model.write_text(
        'func.func @main(%x: tensor<?x3xf32> {ms.name = "x", ms.dims = ["batch", ""]}) -> tensor<?x3xf32> {\n'
        "  %0 = ms.relu %x : (tensor<?x3xf32>) -> tensor<?x3xf32>\n  func.return %0 : tensor<?x3xf32>\n}\n",
        "utf-8",
    )
    assert msc.compile(model, dims={"batch": 4})(-np.ones((4, 3), np.float32)).tolist() == [[0, 0, 0]] * 4
    with pytest.raises(MscError, match=r"MSC0207.*'batch'"):
        msc.compile(model).save(tmp_path / "open.so")
    with pytest.raises(MscError, match="did you mean 'batch'"):
        msc.compile(model, dims={"bath": 4})


@pytest.mark.parametrize(("text", "size"), [("12", 12), ("2K", 2048), ("512MiB", 512 << 20), ("4g", 4 << 30)])
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1", "1.5G", "lots"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(MscError, match="MSC0008"):
        parse_size(text)


def test_sizes_are_shown_for_people() -> None:
    assert [size_text(n) for n in (5, 2048, 3 << 20, 6 << 30)] == ["5 bytes", "2.0 KiB", "3.0 MiB", "6.0 GiB"]


def test_large_results_start_at_a_cache_line(tmp_path: Path) -> None:
    model = tmp_path / "large.mir"
    model.write_text(
        "func.func @main(%x: tensor<128x256xf32>) -> tensor<128x256xf32> {\n"
        "%y = ms.relu %x : (tensor<128x256xf32>) -> tensor<128x256xf32>\n"
        "func.return %y : tensor<128x256xf32>\n}",
        "utf-8",
    )
    compiled = msc.compile(model)
    x = np.linspace(-1, 1, 128 * 256, dtype=np.float32).reshape(128, 256)
    results = [compiled(x) for _ in range(5)]
    assert all(y.ctypes.data % 64 == 0 for y in results)
    assert all(np.array_equal(y, np.maximum(x, 0)) for y in results)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("flush", [False, True])
def test_subnormal_numbers_are_kept_unless_flushed(tmp_path: Path, flush: bool, threads: int) -> None:
    """In all threads, and only while the model runs."""
    model = tmp_path / "halves.mir"
    shape = "tensor<512x512xf32>"
    model.write_text(
        f"func.func @main(%x: {shape}) -> {shape} {{\n%c = ms.constant dense<0.5> : tensor<f32>\n"
        f"%y = ms.mul %x, %c : ({shape}, tensor<f32>) -> {shape}\nfunc.return %y : {shape}\n}}",
        "utf-8",
    )
    compiled = msc.compile(model, threads=threads, flush_subnormals=flush)
    x = np.full((512, 512), 1.2e-38, np.float32)
    half = x * np.float32(0.5)
    assert half.all()
    for _ in range(2):
        np.testing.assert_array_equal(compiled(x), half * (not flush))
    np.testing.assert_array_equal(x * np.float32(0.5), half)
