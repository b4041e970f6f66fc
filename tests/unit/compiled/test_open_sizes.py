"""One library for a range of sizes against the interpreter on the model bound at each size."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import save

import msc
from msc.analysis.kernel_model import kernel_dependences, kernel_model
from msc.dialects.gk import KernelOp
from msc.dialects.open_sizes import KERNEL_VALID
from msc.driver.compile import compile_model, generate_c
from msc.driver.models.interpretation import input_tensors
from msc.driver.models.model_inputs import random_inputs
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions, Dim
from msc.driver.reports.explanations import explain_model
from msc.driver.tuner.variants import variants_module
from msc.interp import evaluate
from msc.runtime.artifact import CompiledModel
from msc.runtime.flags import SANITIZER_FLAGS
from msc.runtime.toolchain import find_toolchain
from msc.schedule.strategy import plain
from msc.support.diagnostics import MscError
from msc.targets.catalogue import machine_named
from tests.unit.compiled.processes import write_sources

Write = Callable[[str], Path]


class Model(NamedTuple):
    """The entry's arguments, its operations, of which `%r` is the result, and the type of that."""

    arguments: str
    operations: tuple[str, ...]
    result: str

    @property
    def text(self) -> str:
        lines = "\n    ".join(self.operations)
        return (
            f"builtin.module @open {{\n  func.func @main({self.arguments}) -> tensor<{self.result}xf32> {{\n"
            f"    {lines}\n    func.return %r : tensor<{self.result}xf32>\n  }}\n}}\n"
        )


_SEQUENCE = '%x: tensor<?x?x8xf32> {ms.name = "x", ms.dims = ["batch", "sequence", ""]}'
_OPEN_ROWS = '%x: tensor<3x?xf32> {ms.name = "x", ms.dims = ["", "width"]}'
_ROWS = '%x: tensor<?x6xf32> {ms.name = "x", ms.dims = ["n", ""]}'

MODELS = {
    "softmax along an open axis": Model(
        '%x: tensor<4x?xf32> {ms.dims = ["", "n"]}', ("%r = ms.softmax %x {axis = -1}",), "4x?"
    ),
    "activation of open rows": Model(_OPEN_ROWS, ("%s = ms.sigmoid %x", "%r = ms.mul %x, %s"), "3x?"),
    "mean of open rows": Model(_OPEN_ROWS, ("%r = ms.reduce_mean %x {axis = [1]}",), "3"),
    "softmax of open rows": Model(_OPEN_ROWS, ("%r = ms.softmax %x {axis = -1}",), "3x?"),
    "bytes of open rows": Model(
        _OPEN_ROWS,
        ("%b = ms.cast %x {dtype = i8}", "%m = ms.maximum %b, %b", "%r = ms.cast %m {dtype = f32}"),
        "3x?",
    ),
    "mean over an open axis": Model(_ROWS, ("%r = ms.reduce_mean %x {axis = [0]}",), "6"),
    "mean over another axis": Model(_ROWS, ("%r = ms.reduce_mean %x {axis = [1]}",), "?"),
    "maximum over an open axis": Model(
        '%x: tensor<3x?x5xf32> {ms.dims = ["", "n", ""]}', ("%r = ms.reduce_max %x {axis = [1]}",), "3x5"
    ),
    "transposition": Model(_ROWS, ("%r = ms.transpose %x {perm = [1, 0]}",), "6x?"),
    "rows cut into rows": Model(
        _ROWS,
        ("%a = ms.exp %x", "%b = ms.reshape %a {shape = [-1, 2]}", "%r = ms.softmax %b {axis = 1}"),
        "?x2",
    ),
    "product summed over an open size": Model(
        '%x: tensor<5x?xf32> {ms.dims = ["", "n"]}, %y: tensor<?x7xf32> {ms.dims = ["n", ""]}',
        ("%r = ms.matmul %x, %y",),
        "5x7",
    ),
    "product of three open sizes": Model(
        '%x: tensor<?x?xf32> {ms.dims = ["m", "k"]}, %y: tensor<?x?xf32> {ms.dims = ["k", "n"]}',
        ("%r = ms.matmul %x, %y",),
        "?x?",
    ),
    "rows of two sizes as one": Model(
        _SEQUENCE,
        (
            "%w = ms.constant dense<0.5> : tensor<4x8xf32>",
            "%g = ms.constant dense<1.5> : tensor<8xf32>",
            "%n = ms.layer_norm %x, %g, %g {begin_norm_axis = 2}",
            "%r = ms.dense %n, %w",
        ),
        "?x?x4",
    ),
    "attention": Model(
        _SEQUENCE,
        (
            "%t = ms.transpose %x {perm = [0, 2, 1]}",
            "%s = ms.batch_matmul %x, %t",
            "%p = ms.softmax %s {axis = -1}",
            "%r = ms.batch_matmul %p, %x",
        ),
        "?x?x8",
    ),
    "mean of a sequence": Model(_SEQUENCE, ("%a = ms.reduce_mean %x {axis = [1]}", "%r = ms.sigmoid %a"), "?x8"),
    "convolution and pool": Model(
        '%x: tensor<?x3x9x9xf32> {ms.dims = ["batch", "", "", ""]}',
        (
            "%w = ms.constant dense<0.25> : tensor<4x3x3x3xf32>",
            '%c = ms.conv2d %x, %w {pad_mode = "same"}',
            "%a = ms.relu %c",
            "%r = ms.max_pool2d %a {kernel_size = [2, 2], stride = [2, 2]}",
        ),
        "?x4x4x4",
    ),
    "reversed": Model(_ROWS, ("%r = ms.reverse %x {axis = [0, 1]}",), "?x6"),
    "joined": Model(
        _ROWS,
        (
            "%e = ms.exp %x",
            "%c = ms.constant dense<7.0> : tensor<2x6xf32>",
            "%r = ms.concat %x, %c, %e {axis = 0}",
        ),
        "?x6",
    ),
    "padded, and summed": Model(
        _ROWS,
        ("%p = ms.pad %x {pad = [2, 0, 1, 3], value = -1.0}", "%r = ms.reduce_sum %p {axis = [0]}"),
        "9",
    ),
    "padded with its edge": Model(_ROWS, ('%r = ms.pad %x {pad = [1, 0, 2, 0], mode = "edge"}',), "?x6"),
    "repeated": Model(_ROWS, ("%r = ms.tile %x {multiples = [3, 2]}",), "?x12"),
    "the last row": Model(_ROWS, ("%r = ms.slice %x {begin = [-1, 1], end = [40, 5]}",), "?x4"),
    "all but the last": Model(
        _ROWS,
        (
            "%e = ms.concat %x, %x {axis = 0}",
            "%s = ms.slice %e {begin = [1, 0], end = [-1, 6]}",
            "%r = ms.reduce_max %s {axis = [1]}",
        ),
        "?",
    ),
    "rows by number": Model(
        _ROWS,
        (
            "%i = ms.argmax %x {axis = 0}",
            "%one = ms.constant dense<-1> : tensor<i64>",
            "%m = ms.mul %i, %one",
            "%r = ms.gather %x, %m {axis = 0}",
        ),
        "6x6",
    ),
    "running sums": Model(_ROWS, ("%r = ms.cumsum %x {axis = 0, exclusive = true, reverse = true}",), "?x6"),
    "rows in order": Model(
        _ROWS,
        ("%p = ms.argsort %x {axis = 0}", "%r = ms.gather_elements %x, %p {axis = 0}"),
        "?x6",
    ),
    "the best of each row": Model(
        _ROWS,
        ("%p = ms.argsort %x {count = 2, descending = true}", "%r = ms.gather_elements %x, %p {axis = 1}"),
        "?x2",
    ),
    "mean over two open sizes": Model(_SEQUENCE, ("%r = ms.reduce_mean %x {axis = [0, 1]}",), "8"),
    "input that is an output": Model(_ROWS, ("%r = ms.identity %x",), "?x6"),
}

HIGH = {"batch": 9, "sequence": 21, "m": 18, "width": 150, "k": 20, "n": 40}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, CompiledModel]]:
    """A function that gives a model of MODELS as a file, and compiled for all its sizes, once."""
    known: dict[str, tuple[Path, CompiledModel]] = {}

    def get(name: str) -> tuple[Path, CompiledModel]:
        if name not in known:
            path = tmp_path_factory.mktemp("open") / "model.mir"
            path.write_text(MODELS[name].text)
            compiled = msc.compile(path, dims=ranges(name), use_cache=False)
            assert type(compiled) is CompiledModel, "it is compiled at each call"
            known[name] = path, compiled
        return known[name]

    return get


def ranges(name: str) -> dict[str, tuple[int, int]]:
    return {size: (1, high) for size, high in HIGH.items() if f'"{size}"' in MODELS[name].arguments}


def check(path: Path, compiled: Callable[..., NDArray[Any]], sizes: Mapping[str, Dim]) -> None:
    """The library gives for inputs of these sizes what the model of these sizes gives."""
    model = read_model(str(path), CompileOptions(dims=sizes))
    inputs = random_inputs(input_tensors(model.module), 1)
    (expected,) = evaluate(model.module, inputs, model.weights())
    result = compiled(*inputs)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=2e-4, atol=1e-5, err_msg=str(sizes))


@pytest.mark.parametrize("name", MODELS)
def test_each_size_gives_what_the_model_of_that_size_gives(
    name: str, library: Callable[[str], tuple[Path, CompiledModel]]
) -> None:
    path, compiled = library(name)
    between = {size: st.integers(low, high) for size, (low, high) in ranges(name).items()}

    @settings(max_examples=12, deadline=None, derandomize=True)
    @given(st.fixed_dictionaries(between))
    def at(sizes: dict[str, int]) -> None:
        check(path, compiled, sizes)

    at()
    check(path, compiled, {size: low for size, (low, _) in ranges(name).items()})
    check(path, compiled, {size: high for size, (_, high) in ranges(name).items()})


def test_sizes_out_of_range_and_inputs_that_disagree_are_named(
    library: Callable[[str], tuple[Path, CompiledModel]],
) -> None:
    _, product = library("product summed over an open size")
    with pytest.raises(MscError, match=r"MSC0603.*dimension 1 \('n'\) of input 'x' is 41, expected 1 to 40"):
        product(np.zeros((5, 41), np.float32), np.zeros((41, 7), np.float32))
    with pytest.raises(MscError, match=r"dimension 0 \('n'\) of input 'y' is 4, expected 3, as in input 'x'"):
        product(np.zeros((5, 3), np.float32), np.zeros((4, 7), np.float32))
    with pytest.raises(MscError, match=r"MSC0603.*dimension 1 is 8 instead of 7"):
        product(np.zeros((5, 3), np.float32), np.zeros((3, 8), np.float32))


def test_threads_share_calls_of_many_iterations(tmp_path: Path) -> None:
    """The schedule says from how many on."""
    path = tmp_path / "model.mir"
    path.write_text(Model(_ROWS, ("%e = ms.exp %x", "%r = ms.tanh %e"), "?x6").text)
    (kernel,) = explain_model(str(path), CompileOptions(dims={"n": (1, 30000)}, threads=2, march="x86-64-v3"))
    found = re.search(r"parallel from (\d+)", "\n".join(kernel.schedule))
    assert found is not None
    least = int(found[1])
    assert 2 < least < 10000
    compiled = msc.compile(path, dims={"n": (1, 30000)}, threads=2, use_cache=False)
    for rows in (1, least - 1, least, 30000):
        check(path, compiled, {"n": rows})


REFUSED = {
    "a dimension of open size is split": ("%r = ms.reshape %x {shape = [2, -1]}", "2x?"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_library_is_right_for_is_compiled_at_each_call(name: str, tmp_path: Path) -> None:
    """The reason is what saving it raises."""
    operation, result = REFUSED[name]
    path = tmp_path / "model.mir"
    path.write_text(Model(_ROWS, (operation,), result).text)
    function = msc.compile(path, dims={"n": (1, 8)}, use_cache=False)
    with pytest.raises(MscError, match="MSC0208"):
        function.save(tmp_path / "model.so")
    check(path, function, {"n": 3})
    with pytest.raises(MscError, match=r"MSC0603.*'n' is 9, expected 1 to 8"):
        function(np.zeros((9, 6), np.float32))


MAIN = """#include "{name}.h"
#include <stdlib.h>

int main(void)
{{
    void *const workspace = aligned_alloc(64, {macro}_WORKSPACE_BYTES + 64);
    for (int64_t n = 1; n <= {high}; ++n) {{
        float *const x = calloc((size_t)n, {macro}_X_BYTES / {high});
        float *const y = malloc((size_t)n * ({macro}_OUTPUT0_BYTES / {high}));
        if ({name}_run(x, y, n, workspace) != {macro}_OK)
            return 1;
        free(x);
        free(y);
    }}
    const int refused = {name}_run((const float *)MSC_ANY, MSC_ANY, {high} + 1, workspace) == {macro}_ERROR_SIZE;
    free(workspace);
    return !refused;
}}
"""


@pytest.mark.parametrize("name", ["rows cut into rows", "mean over another axis", "convolution and pool"])
def test_no_more_than_the_live_part_is_touched(name: str, tmp_path: Path) -> None:
    """With AddressSanitizer, on memory of just that part."""
    (tmp_path / "model.mir").write_text(MODELS[name].text.replace("%x: tensor", "%x: tensor"))
    compilation = compile_model(str(tmp_path / "model.mir"), CompileOptions(dims=ranges(name)))
    program = generate_c(compilation)
    write_sources(program, compilation.parameters(), tmp_path, "o")
    (high,) = (size.high for size in program.signature.sizes)
    text = MAIN.format(name=program.name, macro=program.name.upper(), high=high).replace("MSC_ANY", "(void *)workspace")
    (tmp_path / "main.c").write_text(text)
    sources = sorted(str(p) for p in tmp_path.iterdir() if p.suffix in (".c", ".S"))
    flags = ["-std=c11", "-O1", *program.march, *SANITIZER_FLAGS]
    toolchain = find_toolchain()
    result = toolchain.run([*flags, *sources, "-lm", "-o", str(tmp_path / "check")], tmp_path)
    assert result.returncode == 0, result.stderr
    run = subprocess.run([str(tmp_path / "check")], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr


def test_kernels_of_open_sizes_are_tuned_at_the_largest(tmp_path: Path) -> None:
    path = tmp_path / "model.mir"
    path.write_text(MODELS["softmax along an open axis"].text)
    options = CompileOptions(dims={"n": (1, 40)})
    kernels = [op for op in compile_model(str(path), options, "gk").module.walk() if isinstance(op, KernelOp)]
    for kernel in kernels:
        assert KERNEL_VALID in kernel.attributes
        schedule = plain(kernel_model(kernel), kernel_dependences(kernel), machine_named("native"))
        copies = [op for op in variants_module(kernel, [schedule]).walk() if isinstance(op, KernelOp)]
        assert all(KERNEL_VALID not in copy.attributes for copy in copies)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("columns", [256, 200])
def test_products_with_weights_larger_than_a_cache_have_legal_schedules(
    columns: int, threads: int, tmp_path: Path
) -> None:
    """Tiles of an open size end in smaller ones, whose iterations share what is requested ahead: tests are strict."""
    weights = np.random.default_rng(0).standard_normal((192, columns)).astype(np.float32)
    (tmp_path / "w.safetensors").write_bytes(save({"w": weights}))
    (tmp_path / "machine.toml").write_text('base = "x86-64-v3"\n[memory.L2]\nbytes = 65_536\n')
    path = tmp_path / "model.mir"
    path.write_text(
        'builtin.module attributes {ms.weights = "w.safetensors"} {\n'
        f"ms.parameter @w : tensor<192x{columns}xf32>\n"
        'func.func @main(%x: tensor<?x192xf32> {ms.dims = ["n", ""]}) -> tensor<?x'
        f"{columns}xf32> {{\n%w = ms.get_parameter @w : tensor<192x{columns}xf32>\n"
        f"%y = ms.matmul %x, %w\nfunc.return %y : tensor<?x{columns}xf32>\n}}\n}}\n"
    )
    march = str(tmp_path / "machine.toml")
    compiled = msc.compile(path, dims={"n": (1, 60)}, march=march, threads=threads, use_cache=False)
    for size in (1, 7, 13, 32, 59, 60):
        x = np.random.default_rng(size).standard_normal((size, 192)).astype(np.float32)
        np.testing.assert_allclose(compiled(x), x @ weights, rtol=1e-4, atol=1e-4)
