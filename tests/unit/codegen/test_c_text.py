"""The C that is generated as text and as programs: names, order of effects, aliasing, pragmas, hostile strings."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from msc.codegen.c import COptions, emit_c
from msc.codegen.c.prelude_text import TEMPLATES
from msc.codegen.c.types import CType
from msc.interp import evaluate_loops
from msc.runtime.artifact import CompiledModel
from msc.runtime.build import BuildOptions, build
from msc.support.diagnostics import MscError
from msc.targets.catalogue import machine_named

Parse = Callable[[str], ModuleOp]
Compile = Callable[..., CompiledModel]

CONV2D = Path(__file__).parent / "c" / "conv2d.mir"


def module_text(
    kernel: str, main: str, call: str, name: str = "test", attributes: str = "{loop.outputs = 1 : i64}"
) -> str:
    """A module of one kernel `@k` and an entry function that calls it."""
    signature, body = kernel.split("|")
    return f"""builtin.module @{name} {{
      func.func @k({signature}) attributes {attributes} {{ {body}
        func.return
      }}
      func.func @main({main}) {{ {call}
        func.return
      }}
    }}"""


COPY = module_text(
    """%x: memref<8xf32>, %y: memref<8xf32> |
        loop.for %i = 0 to 8 "i" {
          %a = loop.load %x[%i] : memref<8xf32>
          loop.store %a, %y[%i] : f32, memref<8xf32>
        }""",
    '%x: memref<8xf32> {ms.role = "input", ms.name = "x"}, %y: memref<8xf32> {ms.role = "output", ms.name = "y"}',
    "func.call @k(%x, %y) : (memref<8xf32>, memref<8xf32>) -> ()",
)


def same_as_interpreter(model: CompiledModel, module: ModuleOp, *arrays: NDArray[Any]) -> None:
    expected = evaluate_loops(module, arrays, {})
    for got, wanted in zip(model.results(*arrays), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_convolution(compiled: Compile, module_of: Parse, rng: np.random.Generator) -> None:
    module = module_of(CONV2D.read_text())
    weights = {
        "conv1.weight": rng.standard_normal((6, 1, 5, 5)).astype(np.float32),
        "conv1.bias": rng.standard_normal(6).astype(np.float32),
    }
    image = rng.standard_normal((1, 1, 32, 32)).astype(np.float32)
    (expected,) = evaluate_loops(module, [image], weights)
    for threads in (1, 2):
        model = compiled(module, weights, threads=threads)
        np.testing.assert_allclose(model(image), expected, rtol=1e-5)


def test_a_prefetch_past_the_end_changes_nothing(compiled: Compile, module_of: Parse) -> None:
    hint = "loop.prefetch %x[%i] ahead 1000000 : memref<8xf32>\n"
    module = module_of(COPY.replace("%a = loop.load", f"{hint} %a = loop.load"))
    assert "msc_prefetch(&x[i], 4000000);" in emit_c(module).source
    same_as_interpreter(compiled(module), module, np.arange(8, dtype=np.float32))


def test_same_input_same_bytes(module_of: Parse) -> None:
    text = CONV2D.read_text()
    first, second = (emit_c(module_of(text)) for _ in range(2))
    assert (first.source, first.header) == (second.source, second.header)


def test_one_line_of_the_convolution_reads_as_a_person_would_write_it(module_of: Parse) -> None:
    source = emit_c(module_of(CONV2D.read_text())).source
    assert "load_f32x4(&acc[oc][ow]) + (&w[0][0][kh][kw])[oc * 25] * load_f32x4(&x[0][0][oh + kh][ow + kw])" in source
    assert "acc += reduce_add_f32x4(load_f32x4(&x[0][c][h][w]));" in source
    assert "f32x2" not in source


HOSTILE = "*/ int evil(void) { return 1; } /* \\\\ ??/ \\n #include <evil.h>"


def test_no_string_of_a_model_escapes_into_c(compiled: Compile, module_of: Parse) -> None:
    attributes = (
        f'{{loop.outputs = 1 : i64, loop.origin = ["{HOSTILE}"], loop.schedule = ["{HOSTILE}", "{"x" * 5000}"]}}'
    )
    text = (
        COPY.replace("{loop.outputs = 1 : i64}", attributes)
        .replace('"x"', f'"{HOSTILE}"')
        .replace('"i"', f'"{HOSTILE}"')
    )
    module = module_of(text.replace("@test", f'@"{HOSTILE}"'))
    program = emit_c(module)
    for c in (program.source, program.header):
        code = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', re.sub(r"/\*.*?\*/", "", c, flags=re.DOTALL))
        assert "evil(" not in code
        assert "#include <evil" not in code
        assert max(len(line) for line in c.splitlines()) < 1000
    model = compiled(program)
    assert model.signature.inputs[0].name == HOSTILE.encode().decode("unicode_escape")
    np.testing.assert_array_equal(model(np.arange(8, dtype=np.float32)), np.arange(8))


@pytest.mark.parametrize(
    "name", ["int", "workspace", "weights", "y", "f32x4", "load_f32x4", "X", "2", "名", "main", "EOF"]
)
def test_any_name_of_a_tensor_compiles(compiled: Compile, module_of: Parse, name: str) -> None:
    model = compiled(module_of(COPY.replace('"x"', f'"{name}"').replace("%x", "%int").replace('"i"', f'"{name}"')))
    np.testing.assert_array_equal(model(np.ones(8, np.float32)), np.ones(8))


@pytest.mark.parametrize("name", ["lenet-5", "int", "4ever", "*/", "main", "artifact", "artifact_calls", "model"])
def test_any_name_of_a_module_compiles(compiled: Compile, module_of: Parse, name: str) -> None:
    model = compiled(module_of(COPY.replace("@test", f'@"{name}"')))
    np.testing.assert_array_equal(model(np.ones(8, np.float32)), np.ones(8))


def test_a_load_does_not_move_past_a_store(compiled: Compile, module_of: Parse) -> None:
    text = module_text(
        """%x: memref<8xf32>, %y: memref<8xf32> |
        loop.for %i = 0 to 8 { %v = loop.load %x[%i] : memref<8xf32> loop.store %v, %y[%i] : f32, memref<8xf32> }
        %a = loop.load %y[0] : memref<8xf32>
        %b = loop.load %y[1] : memref<8xf32>
        loop.store %b, %y[0] : f32, memref<8xf32>
        loop.store %a, %y[1] : f32, memref<8xf32>
        %c = loop.load %y[2] : memref<8xf32>
        loop.for %i = 2 to 5 { %k = arith.constant 9.0 : f32 loop.store %k, %y[%i] : f32, memref<8xf32> }
        loop.store %c, %y[7] : f32, memref<8xf32>""",
        '%x: memref<8xf32> {ms.role = "input"}, %y: memref<8xf32> {ms.role = "output"}',
        "func.call @k(%x, %y) : (memref<8xf32>, memref<8xf32>) -> ()",
    )
    module = module_of(text)
    same_as_interpreter(compiled(module), module, np.arange(8, dtype=np.float32))


IN_PLACE = module_text(
    """%x: memref<8xf32>, %y: memref<8xf32> |
        loop.for %i = 0 to 8 "i" {
          %a = loop.load %x[%i] : memref<8xf32>
          %b = arith.addf %a, %a : f32
          loop.store %b, %y[%i] : f32, memref<8xf32>
        }""",
    """%x: memref<8xf32> {ms.role = "input"}, %y: memref<8xf32> {ms.role = "output"},
       %workspace: memref<64xi8> {ms.role = "workspace"}""",
    """%o = arith.constant 0 : index
       %t = memref.view %workspace[%o][] : memref<64xi8> to memref<8xf32>
       func.call @k(%x, %t) : (memref<8xf32>, memref<8xf32>) -> ()
       func.call @k(%t, %t) : (memref<8xf32>, memref<8xf32>) -> ()
       "memref.copy"(%t, %y) : (memref<8xf32>, memref<8xf32>) -> ()""",
)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_parts_are_stored_without_masks(lanes: int) -> None:
    """What reads just behind a part, the next row, would wait for a store with a mask."""
    vector = CType("f32", lanes)
    assert "mask" not in TEMPLATES["store_part"].instantiate(vector)
    assert "mask" in TEMPLATES["load_part"].instantiate(vector)


def test_parameters_that_share_memory_are_not_restrict(compiled: Compile, module_of: Parse) -> None:
    module = module_of(IN_PLACE)
    assert "k(const float x[8], float y[8])" in emit_c(module).source
    same_as_interpreter(compiled(module), module, np.arange(8, dtype=np.float32))
    assert "k(const float x[restrict 8], float y[restrict 8])" in emit_c(module_of(COPY)).source


def test_vector_masks(compiled: Compile, module_of: Parse, rng: np.random.Generator) -> None:
    """xDSL's comparison of vectors says i1; the mask is a vector all the same."""
    text = module_text(
        """%x: memref<32xf32>, %y: memref<32xf32> |
        loop.for %i = 0 to 32 step 16 "i" {
          %a = loop.load %x[%i] : memref<32xf32>, vector<16xf32>
          %zero = arith.constant dense<0.0> : vector<16xf32>
          %ten = arith.constant dense<10.0> : vector<16xf32>
          %m = arith.cmpf ult, %a, %zero : vector<16xf32>
          %r = arith.select %m, %ten, %a : vector<16xf32>
          loop.store %r, %y[%i] : vector<16xf32>, memref<32xf32>
        }""",
        '%x: memref<32xf32> {ms.role = "input"}, %y: memref<32xf32> {ms.role = "output"}',
        "func.call @k(%x, %y) : (memref<32xf32>, memref<32xf32>) -> ()",
    )
    x = rng.standard_normal(32).astype(np.float32)
    x[5] = np.nan
    np.testing.assert_array_equal(compiled(module_of(text))(x), np.where(~(x >= 0), np.float32(10), x))


def test_index_arithmetic_and_gather(compiled: Compile, module_of: Parse, rng: np.random.Generator) -> None:
    text = module_text(
        """%t: memref<9x3xf32>, %n: memref<5xi32>, %y: memref<5x3xf32> |
        loop.for %p = 0 to 15 "p" {
          %row = loop.apply %p floordiv 3
          %back = loop.apply (%p - 20) floordiv 7 + 3
          %id = memref.load %n[%row] : memref<5xi32>
          %k = arith.index_cast %id : i32 to index
          %c = loop.apply %p mod 3
          %a = memref.load %t[%k, %c] : memref<9x3xf32>
          %b = loop.load %t[%back, (%p - 16) mod 3] : memref<9x3xf32>
          %s = arith.addf %a, %b : f32
          loop.store %s, %y[%p floordiv 3, %p mod 3] : f32, memref<5x3xf32>
        }""",
        """%t: memref<9x3xf32> {ms.role = "input"}, %n: memref<5xi32> {ms.role = "input"},
           %y: memref<5x3xf32> {ms.role = "output"}""",
        "func.call @k(%t, %n, %y) : (memref<9x3xf32>, memref<5xi32>, memref<5x3xf32>) -> ()",
    )
    module = module_of(text)
    table = rng.standard_normal((9, 3)).astype(np.float32)
    same_as_interpreter(compiled(module), module, table, np.array([0, 8, 3, 3, 1], np.int32))


def test_bounds_of_several_expressions(compiled: Compile, module_of: Parse) -> None:
    text = module_text(
        """%x: memref<10xf32>, %y: memref<10xf32> |
        loop.for %o = 0 to 10 step 4 "o" {
          loop.for %i = max(%o, 0) to min(%o + 4, 10) "i" {
            %a = loop.load %x[%i] : memref<10xf32>
            loop.store %a, %y[%i] : f32, memref<10xf32>
          }
        }""",
        '%x: memref<10xf32> {ms.role = "input"}, %y: memref<10xf32> {ms.role = "output"}',
        "func.call @k(%x, %y) : (memref<10xf32>, memref<10xf32>) -> ()",
    )
    module = module_of(text)
    same_as_interpreter(compiled(module), module, np.arange(10, dtype=np.float32))


def test_scalars_empty_tensors_and_booleans(compiled: Compile, module_of: Parse) -> None:
    text = module_text(
        """%x: memref<f32>, %e: memref<0x4xf32>, %b: memref<3xi1>, %y: memref<3xi1> |
        %zero = arith.constant 0.0 : f32
        loop.for %i = 0 to 3 "i" {
          %v = loop.load %x[] : memref<f32>
          %p = arith.cmpf ogt, %v, %zero : f32
          %q = loop.load %b[%i] : memref<3xi1>
          %true = arith.constant true
          %n = arith.xori %q, %true : i1
          %r = arith.andi %p, %n : i1
          loop.store %r, %y[%i] : i1, memref<3xi1>
        }""",
        """%x: memref<f32> {ms.role = "input"}, %e: memref<0x4xf32> {ms.role = "input"},
           %b: memref<3xi1> {ms.role = "input"},
           %y: memref<3xi1> {ms.role = "output"}""",
        "func.call @k(%x, %e, %b, %y) : (memref<f32>, memref<0x4xf32>, memref<3xi1>, memref<3xi1>) -> ()",
    )
    module = module_of(text)
    arrays = np.array(2, np.float32), np.zeros((0, 4), np.float32), np.array([True, False, True])
    same_as_interpreter(compiled(module), module, *arrays)


@pytest.mark.parametrize(("value", "trips", "rolled"), [("%zero", 9, True), ("%a", 9, True), ("%a", 17, False)])
def test_short_loops_that_move_vectors_stay_loops(module_of: Parse, value: str, trips: int, rolled: bool) -> None:
    """The C compiler unrolls short loops; where they compute nothing, that only takes it time."""
    shape = f"memref<{trips}x4xf32>"
    nest = f"""%x: {shape}, %y: {shape} |
        %zero = arith.constant dense<0.0> : vector<4xf32>
        loop.for %i = 0 to {trips} "i" {{
          %a = loop.load %x[%i, 0] : {shape}, vector<4xf32>
          loop.store {value}, %y[%i, 0] : vector<4xf32>, {shape}
        }}"""
    buffers = f'%x: {shape} {{ms.role = "input"}}, %y: {shape} {{ms.role = "output"}}'
    module = module_of(module_text(nest, buffers, f"func.call @k(%x, %y) : ({shape}, {shape}) -> ()"))
    assert ("MSC_ROLLED\n    for" in emit_c(module, COptions(target=machine_named("x86-64-v3"))).source) is rolled


def test_threads_share_what_is_parallel(module_of: Parse) -> None:
    """However little it is: schedules decide."""
    text = CONV2D.read_text()
    assert "msc_share(k0_conv2d_add_relu_part_of" in emit_c(module_of(text), COptions(threads=2)).source
    assert "msc_share" not in emit_c(module_of(text), COptions(threads=1)).source
    small = text.replace("0 to 5", "0 to 2").replace("0 to 28 parallel", "0 to 2 parallel")
    assert "msc_share(k0_conv2d_add_relu_part_of" in emit_c(module_of(small), COptions(threads=2)).source


def test_a_call_of_few_iterations_does_not_wake_threads(module_of: Parse) -> None:
    text = CONV2D.read_text().replace("0 to 28 parallel", "0 to 28 parallel from 40")
    source = emit_c(module_of(text), COptions(threads=2)).source
    head, _, shared = source.rpartition("msc_share(k0_conv2d_add_relu_part_of, arguments, 28);")
    assert "if (28 < 40) {\n        k0_conv2d_add_relu_part_of(arguments, 0, 28);\n    }" in head
    assert shared


def test_profile_names_and_times_every_call(compiled: Compile, module_of: Parse) -> None:
    model = compiled(module_of(IN_PLACE), profile=True)
    assert model.calls == ("k", "k", "copy")
    seconds = np.zeros(3)
    (y,) = model.profile([np.ones(8, np.float32)], seconds)
    np.testing.assert_array_equal(y, np.full(8, 4, np.float32))
    assert (seconds > 0).all()


def test_exported_kernels_can_be_called(compiled: Compile, module_of: Parse) -> None:
    model = compiled(module_of(COPY), export_kernels=True)
    assert model.path is not None
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    ctypes.CDLL(str(model.path))["k"](ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data))
    np.testing.assert_array_equal(y, x)


def test_sanitizers_see_an_access_outside_a_buffer(module_of: Parse, tmp_path: Path) -> None:
    """And nothing where there is none."""
    options = BuildOptions(sanitize=True)
    for text, clean in ((COPY, True), (COPY.replace("0 to 8", "0 to 40"), False)):
        path = build(emit_c(module_of(text)), {}, "exe", tmp_path / f"clean{clean}", options)
        result = subprocess.run([str(path)], capture_output=True, text=True, check=False)
        assert (result.returncode == 0) is clean, result.stderr
        assert clean or re.search(r"runtime error|AddressSanitizer", result.stderr)


def test_an_operation_without_c_form_is_an_error(module_of: Parse) -> None:
    text = COPY.replace(
        "loop.store %a", "%r = math.ctpop %n : i32\n %q = arith.sitofp %r : i32 to f32 loop.store %q"
    ).replace("loop.for", "%n = arith.constant 3 : i32 loop.for")
    with pytest.raises(MscError, match=r"MSC0905.*math.ctpop"):
        emit_c(module_of(text))
    with pytest.raises(MscError, match=r"MSC0605.*@main"):
        emit_c(module_of("builtin.module {}"))


def test_targets() -> None:
    with pytest.raises(MscError, match=r"MSC0501(.|\n)*did you mean 'x86-64-v3'"):
        machine_named("x86_64-v3")
    assert machine_named("native").vector_bytes in (16, 32, 64)
    assert machine_named("x86-64-v4").lanes(4) == 16


CONTROL_FLOW = """builtin.module {
  func.func @add(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) attributes {loop.outputs = 1 : i64} {
    loop.for %i = 0 to 4 "i" {
      %a = loop.load %x[%i] : memref<4xf32>
      %b = loop.load %y[%i] : memref<4xf32>
      %c = arith.addf %a, %b : f32
      loop.store %c, %z[%i] : f32, memref<4xf32>
    }
    func.return
  }
  func.func @main(%x: memref<4xf32> {ms.role = "input"}, %n: memref<i64> {ms.role = "input"},
                  %p: memref<i1> {ms.role = "input"},
                  %y: memref<4xf32> {ms.role = "output"}, %w: memref<64xi8> {ms.role = "workspace"}) {
    %o = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : i64
    %t = memref.view %w[%o][] : memref<64xi8> to memref<4xf32>
    "memref.copy"(%x, %t) : (memref<4xf32>, memref<4xf32>) -> ()
    %count = memref.load %n[] : memref<i64>
    %trips = arith.index_cast %count : i64 to index
    scf.for %i = %o to %trips step %one {
      func.call @add(%t, %x, %t) : (memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
    }
    %twice, %last = scf.while (%k = %count, %j = %two) : (i64, i64) -> (i64, i64) {
      %go = arith.cmpi sgt, %k, %two : i64
      scf.condition(%go) %k, %j : i64, i64
    } do {
    ^bb0(%k: i64, %j: i64):
      %less = arith.subi %k, %two : i64
      func.call @add(%t, %t, %t) : (memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
      scf.yield %less, %k : i64, i64
    }
    %cond = memref.load %p[] : memref<i1>
    %small = arith.cmpi slt, %last, %count : i64
    %both = arith.andi %cond, %small : i1
    scf.if %both {
      func.call @add(%t, %x, %y) : (memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
    } else {
      "memref.copy"(%t, %y) : (memref<4xf32>, memref<4xf32>) -> ()
    }
    func.return
  }
}"""


@pytest.mark.parametrize("count", [0, 3, 8])
@pytest.mark.parametrize("flag", [True, False])
def test_control_flow_around_kernels(compiled: Compile, module_of: Parse, count: int, flag: bool) -> None:
    module = module_of(CONTROL_FLOW)
    arrays = np.arange(4, dtype=np.float32), np.array(count), np.array(flag)
    same_as_interpreter(compiled(module, profile=True), module, *arrays)
