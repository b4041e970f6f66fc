"""Every operation of the loop stage as C, against the interpreter: scalars, vectors, edge values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from msc.codegen.c.arithmetic import RULES
from msc.codegen.c.conversions import CONVERSIONS
from msc.dialects.arrays import numpy_dtype
from msc.interp import evaluate_loops
from msc.lowering.cpu.verification.verify_loop_stage import KERNEL
from msc.lowering.cpu.verification.verify_loop_stage import LANES as LANE_BY_LANE
from msc.runtime.artifact import CompiledModel

Parse = Callable[[str], ModuleOp]
Compile = Callable[..., CompiledModel]

N = 32
LANES = 16

FLOAT_BINARY = "addf subf mulf divf maximumf minimumf maxnumf minnumf".split()
FLOAT_PREDICATES = "oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno".split()
INTEGER_BINARY = "addi subi muli andi ori xori divsi remsi divui remui shli shrsi shrui maxsi minsi maxui minui".split()
INTEGER_PREDICATES = "eq ne slt sle sgt sge ult ule ugt uge".split()
CASTS = """
    extf f16 f32, extf bf16 f32, extf f32 f64, truncf f32 f16, truncf f32 bf16, truncf f64 f32,
    sitofp i8 f32, uitofp i8 f32, sitofp i64 f64, sitofp i1 f32, uitofp i1 f32, sitofp i32 bf16,
    fptosi f32 i8, fptosi f32 i32, fptosi f64 i64, fptoui f32 i8, fptoui f32 i32,
    extsi i8 i32, extui i8 i32, extsi i1 i32, extui i1 i16, trunci i64 i8, trunci i32 i1,
    bitcast f32 i32, bitcast i64 f64
"""


def elementwise(inputs: list[str], output: str, body: str, lanes: int = 1, count: int = N) -> str:
    """A module that applies `body` (from %a, %b, ... to %r) to `count` elements."""
    names = "abcd"[: len(inputs)]
    arguments = ", ".join(f"%{n}_in: memref<{count}x{t}>" for n, t in zip(names, inputs, strict=True))
    main = ", ".join(
        f'%{n}_in: memref<{count}x{t}> {{ms.name = "{n}", ms.role = "input"}}'
        for n, t in zip(names, inputs, strict=True)
    )
    types = ", ".join(f"memref<{count}x{t}>" for t in (*inputs, output))

    def vector(t: str) -> str:
        return f"vector<{lanes}x{t}>" if lanes > 1 else t

    def shown(t: str) -> str:
        return f", vector<{lanes}x{t}>" if lanes > 1 else ""

    loads = "\n".join(
        f"%{n} = loop.load %{n}_in[%i] : memref<{count}x{t}>{shown(t)}" for n, t in zip(names, inputs, strict=True)
    )
    return f"""builtin.module @test {{
      func.func @kernel({arguments}, %y: memref<{count}x{output}>) attributes {{loop.outputs = 1 : i64}} {{
        loop.for %i = 0 to {count} step {lanes} "i" {{
          {loads}
          {body}
          loop.store %r, %y[%i] : {vector(output)}, memref<{count}x{output}>
        }}
        func.return
      }}
      func.func @main({main}, %y: memref<{count}x{output}> {{ms.name = "y", ms.role = "output"}}) {{
        func.call @kernel({", ".join(f"%{n}_in" for n in names)}, %y) : ({types}) -> ()
        func.return
      }}
    }}"""


def values(dtype: str, rng: np.random.Generator, order: int = 0) -> NDArray[Any]:
    """Edge values first, then random ones; shifted by `order`, so that two operands meet in many ways."""
    numpy = numpy_dtype(dtype)
    if dtype == "i1":
        return rng.integers(0, 2, N).astype(np.bool_)
    if numpy.kind in "iu":
        info = np.iinfo(numpy)
        edges = np.array([0, 1, -1, info.min, info.max, 2, 7, -3], numpy)
        return np.roll(np.concatenate([edges, rng.integers(info.min, info.max, N - 8, numpy, True)]), 3 * order)
    edges = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-3], numpy)
    return np.roll(np.concatenate([edges, rng.standard_normal(N - 8).astype(numpy) * 4]), 3 * order)


def check(
    compiled: Compile, module_of: Parse, text: str, arrays: list[NDArray[Any]], ulp: int = 0, **options: Any
) -> None:
    module = module_of(text)
    (expected,) = evaluate_loops(module, arrays, {})
    (actual,) = compiled(module, **options).results(*arrays)
    if ulp and expected.dtype.kind == "f":
        np.testing.assert_allclose(actual, expected, rtol=ulp * float(np.finfo(expected.dtype).eps), atol=1e-30)
        return
    np.testing.assert_array_equal(actual.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("lanes", [1, LANES])
def test_float_arithmetic(
    compiled: Compile, module_of: Parse, rng: np.random.Generator, dtype: str, lanes: int
) -> None:
    """All binary operations in one model a type: a sum of selects would hide NaNs, so each has its own output."""
    vector = dtype if lanes == 1 else f"vector<{lanes}x{dtype}>"
    for name in FLOAT_BINARY:
        text = elementwise([dtype, dtype], dtype, f"%r = arith.{name} %a, %b : {vector}", lanes)
        check(compiled, module_of, text, [values(dtype, rng), values(dtype, rng, 1)])


@pytest.mark.parametrize("name", FLOAT_PREDICATES)
def test_float_comparison(compiled: Compile, module_of: Parse, rng: np.random.Generator, name: str) -> None:
    text = elementwise(["f32", "f32"], "i1", f"%r = arith.cmpf {name}, %a, %b : f32")
    check(compiled, module_of, text, [values("f32", rng), values("f32", rng, 1)])


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
@pytest.mark.parametrize("name", INTEGER_BINARY)
def test_integer_arithmetic(
    compiled: Compile, module_of: Parse, rng: np.random.Generator, dtype: str, name: str
) -> None:
    second = values(dtype, rng, 1)
    if name.startswith("sh"):
        second = (second % int(dtype[1:])).astype(second.dtype)
    if name.startswith(("div", "rem")):
        second = np.where(second == 0, 3, second).astype(second.dtype)
    text = elementwise([dtype, dtype], dtype, f"%r = arith.{name} %a, %b : {dtype}")
    check(compiled, module_of, text, [values(dtype, rng), second])


@pytest.mark.parametrize("name", INTEGER_PREDICATES)
def test_integer_comparison(compiled: Compile, module_of: Parse, rng: np.random.Generator, name: str) -> None:
    text = elementwise(["i8", "i8"], "i1", f"%r = arith.cmpi {name}, %a, %b : i8")
    check(compiled, module_of, text, [values("i8", rng), values("i8", rng, 1)])


@pytest.mark.parametrize("cast", CASTS.replace("\n", " ").split(","))
def test_casts(compiled: Compile, module_of: Parse, rng: np.random.Generator, cast: str) -> None:
    name, source, target = cast.split()
    array = values(source, rng)
    if name.startswith("fpto"):
        array = np.where(np.isfinite(array), array, 3).astype(array.dtype)
        array = np.abs(array) if name == "fptoui" else array
    text = elementwise([source], target, f"%r = arith.{name} %a : {source} to {target}")
    if name == "bitcast" and target.startswith("f"):
        array = np.abs(array) % 1000
    check(compiled, module_of, text, [array])


@pytest.mark.parametrize(
    ("source", "target", "name"),
    [("f16", "f32", "extf"), ("bf16", "f32", "extf"), ("f32", "f16", "truncf"), ("f32", "bf16", "truncf")],
)
def test_vector_casts(
    compiled: Compile, module_of: Parse, rng: np.random.Generator, source: str, target: str, name: str
) -> None:
    text = elementwise([source], target, f"%r = arith.{name} %a : vector<16x{source}> to vector<16x{target}>", 16)
    check(compiled, module_of, text, [values(source, rng)])


@pytest.mark.parametrize("lanes", [1, 4, LANES])
@pytest.mark.parametrize(
    "name", ["exp", "log", "tanh", "erf", "sqrt", "rsqrt", "floor", "ceil", "roundeven", "trunc", "absf"]
)
def test_math(compiled: Compile, module_of: Parse, rng: np.random.Generator, name: str, lanes: int) -> None:
    vector = "f32" if lanes == 1 else f"vector<{lanes}xf32>"
    array = values("f32", rng)
    text = elementwise(["f32"], "f32", f"%r = math.{name} %a : {vector}", lanes)
    check(compiled, module_of, text, [np.abs(array) if name in ("log", "sqrt", "rsqrt") else array], ulp=8)


def test_splats_stay_scalar_and_selects_choose_lanes(
    compiled: Compile, module_of: Parse, rng: np.random.Generator
) -> None:
    body = """%k = loop.load %b_in[0] lanes [0] : memref<32xf32>, vector<16xf32>
              %two = arith.constant dense<2.0> : vector<16xf32>
              %s = arith.mulf %k, %two : vector<16xf32>
              %r = arith.addf %a, %s : vector<16xf32>"""
    text = elementwise(["f32", "f32"], "f32", body, 16)
    check(compiled, module_of, text, [values("f32", rng), np.full(N, 1.5, np.float32)])


@pytest.mark.parametrize("kind", ["add", "mul", "maximumf", "minimumf"])
def test_reductions(compiled: Compile, module_of: Parse, rng: np.random.Generator, kind: str) -> None:
    body = f"""%s = vector.reduction <{kind}>, %a : vector<16xf32> into f32
               %r = vector.broadcast %s : f32 to vector<16xf32>"""
    array = np.abs(rng.standard_normal(N)).astype(np.float32)
    check(compiled, module_of, elementwise(["f32"], "f32", body, 16), [array], ulp=16)
    if kind.endswith("f"):
        array[3] = np.nan
        check(compiled, module_of, elementwise(["f32"], "f32", body, 16), [array])


@pytest.mark.parametrize("march", ["generic", "x86-64-v3"])
def test_other_targets_compile_without_warnings(
    compiled: Compile, module_of: Parse, rng: np.random.Generator, march: str
) -> None:
    body = """%m = arith.maximumf %a, %b : vector<16xf32>
              %r = math.exp %m : vector<16xf32>"""
    text = elementwise(["f32", "f32"], "f32", body, 16)
    check(compiled, module_of, text, [values("f32", rng), values("f32", rng, 1)], ulp=8, march=march)


@pytest.mark.parametrize("step", [2, 3, -1])
def test_strided_lanes(compiled: Compile, module_of: Parse, rng: np.random.Generator, step: int) -> None:
    start = 0 if step > 0 else 15
    text = f"""builtin.module {{
      func.func @k(%x: memref<64xf32>, %y: memref<64xf32>) attributes {{loop.outputs = 1 : i64}} {{
        %v = loop.load %x[{start}] lanes [{step}] : memref<64xf32>, vector<16xf32>
        %z = arith.constant dense<0.0> : vector<16xf32>
        loop.for %i = 0 to 64 step 16 {{ loop.store %z, %y[%i] : vector<16xf32>, memref<64xf32> }}
        loop.store %v, %y[{start}] lanes [{step}] : vector<16xf32>, memref<64xf32>
        func.return
      }}
      func.func @main(%x: memref<64xf32> {{ms.role = "input"}}, %y: memref<64xf32> {{ms.role = "output"}}) {{
        func.call @k(%x, %y) : (memref<64xf32>, memref<64xf32>) -> ()
        func.return
      }}
    }}"""
    check(compiled, module_of, text, [rng.standard_normal(64).astype(np.float32)])


@pytest.mark.parametrize("march", ["generic", "x86-64-v3", "native"])
@pytest.mark.parametrize(
    ("dtype", "lanes", "part"),
    [("f32", 16, 13), ("f32", 16, 9), ("f32", 16, 3), ("f32", 8, 7), ("f32", 4, 3), ("f64", 8, 5), ("i64", 4, 3)],
)
def test_parts_of_vectors(
    compiled: Compile, module_of: Parse, rng: np.random.Generator, march: str, dtype: str, lanes: int, part: int
) -> None:
    array, vector = f"memref<{part}x{dtype}>", f"vector<{lanes}x{dtype}>"
    twice = f"memref<{2 * lanes}x{dtype}>"
    text = f"""builtin.module {{
      func.func @k(%x: {array}, %y: {twice}) attributes {{loop.outputs = 1 : i64}} {{
        %v = loop.load %x[0] part {part} : {array}, {vector}
        loop.for %i = 0 to {2 * lanes} step {lanes} {{ loop.store %v, %y[%i] : {vector}, {twice} }}
        loop.store %v, %y[{lanes - 1}] part {part} : {vector}, {twice}
        %e = loop.load %x[0] lanes [2] part {part // 2 + 1} : {array}, {vector}
        loop.store %e, %y[{part}] lanes [-1] part {part // 2 + 1} : {vector}, {twice}
        func.return
      }}
      func.func @main(%x: {array} {{ms.role = "input"}}, %y: {twice} {{ms.role = "output"}}) {{
        func.call @k(%x, %y) : ({array}, {twice}) -> ()
        func.return
      }}
    }}"""
    check(compiled, module_of, text, [values(dtype, rng)[:part]], march=march)


def test_every_operation_of_the_stage_has_a_c_form() -> None:
    structural = {"arith.constant", "memref.alloca", "memref.load", "memref.store", "func.return", "loop.add_products"}
    loops = {"loop.for", "loop.load", "loop.store", "loop.apply", "loop.lanes", "loop.prefetch", "loop.call"}
    assert not (KERNEL | LANE_BY_LANE) - structural - loops - set(RULES) - set(CONVERSIONS)


@pytest.mark.parametrize("name", ["floordivsi", "ceildivsi"])
def test_directed_divisions(compiled: Compile, module_of: Parse, rng: np.random.Generator, name: str) -> None:
    second = values("i32", rng, 1)
    second = np.where(second == 0, 3, second).astype(np.int32)
    text = elementwise(["i32", "i32"], "i32", f"%r = arith.{name} %a, %b : i32")
    check(compiled, module_of, text, [values("i32", rng) | 1, second])


@pytest.mark.parametrize("dtype", ["i32", "i8"])
@pytest.mark.parametrize("lanes", [1, LANES])
def test_absi(compiled: Compile, module_of: Parse, rng: np.random.Generator, dtype: str, lanes: int) -> None:
    vector = dtype if lanes == 1 else f"vector<{lanes}x{dtype}>"
    text = elementwise([dtype], dtype, f"%r = math.absi %a : {vector}", lanes)
    check(compiled, module_of, text, [values(dtype, rng)])


@pytest.mark.parametrize("lanes", [1, LANES])
def test_round_takes_ties_away_from_zero(compiled: Compile, module_of: Parse, lanes: int) -> None:
    array = np.resize(np.array([0.5, -0.5, 2.5, 0.49999997, -1.2, 8388609, np.inf], np.float32), N)
    vector = "f32" if lanes == 1 else f"vector<{lanes}xf32>"
    text = elementwise(["f32"], "f32", f"%r = math.round %a : {vector}", lanes)
    expected = np.copysign(np.floor(np.abs(array.astype(np.float64)) + 0.5), array)
    np.testing.assert_array_equal(compiled(module_of(text))(array), expected.astype(np.float32))


@pytest.mark.parametrize("march", ["generic", "native"])
@pytest.mark.parametrize("lanes", [1, 4, 8, LANES])
@pytest.mark.parametrize("half", ["f16", "bf16"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_half_width_float(compiled: Compile, module_of: Parse, march: str, lanes: int, half: str) -> None:
    """There and back through f32; and f32 values around the middle of two neighbours, which ties to even decide."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves = bits.view(numpy_dtype(half))
    vector = "{}" if lanes == 1 else f"vector<{lanes}x{{}}>"
    down = f"%r = arith.truncf %a : {vector.format('f32')} to {vector.format(half)}"
    up = f"%r = arith.extf %a : {vector.format(half)} to {vector.format('f32')}"
    widen = compiled(module_of(elementwise([half], "f32", up, lanes, 1 << 16)), march=march)
    narrow = compiled(module_of(elementwise(["f32"], half, down, lanes, 1 << 16)), march=march)
    single = halves.astype(np.float32)
    np.testing.assert_array_equal(widen(halves), single)
    upper = (
        np.nextafter(halves, np.inf, dtype=halves.dtype).astype(np.float32) if half == "f16" else single * 1.005859375
    )
    for value in (single, (single + upper) / 2, np.nextafter((single + upper) / 2, np.float32(0)), single * 3):
        with np.errstate(all="ignore"):
            expected = value.astype(numpy_dtype(half)).astype(np.float32)
        (actual,) = narrow.results(value.astype(np.float32))
        np.testing.assert_array_equal(actual.astype(np.float32), expected)


@pytest.mark.parametrize("dtype", ["i8", "i16", "i64"])
@pytest.mark.parametrize("name", ["divsi", "remsi", "divui", "remui", "shli", "shrsi", "shrui", "floordivsi"])
def test_integer_functions_on_vectors(
    compiled: Compile, module_of: Parse, rng: np.random.Generator, dtype: str, name: str
) -> None:
    second = values(dtype, rng, 1)
    if name.startswith("sh"):
        second = (second % int(dtype[1:])).astype(second.dtype)
    if "div" in name or "rem" in name:
        second = np.where(np.abs(second) <= 1, 3, second).astype(second.dtype)
    text = elementwise([dtype, dtype], dtype, f"%r = arith.{name} %a, %b : vector<{LANES}x{dtype}>", LANES)
    check(compiled, module_of, text, [values(dtype, rng), second])


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
@pytest.mark.parametrize("lanes", [1, LANES])
def test_integer_powers(compiled: Compile, module_of: Parse, rng: np.random.Generator, dtype: str, lanes: int) -> None:
    vector = dtype if lanes == 1 else f"vector<{lanes}x{dtype}>"
    base = np.resize(np.array([0, 1, -1, 2, -3, 7], numpy_dtype(dtype)), N)
    exponent = np.arange(N, dtype=numpy_dtype(dtype)) - 5
    text = elementwise([dtype, dtype], dtype, f"%r = math.ipowi %a, %b : {vector}", lanes)
    check(compiled, module_of, text, [base, exponent])


@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("name", ["arith.remf", "math.copysign"])
def test_binary_lanes(compiled: Compile, module_of: Parse, rng: np.random.Generator, name: str, lanes: int) -> None:
    vector = "f32" if lanes == 1 else f"vector<{lanes}xf32>"
    body = f'%r = loop.lanes "{name}" %a, %b : ({vector}, {vector}) -> {vector}'
    check(
        compiled,
        module_of,
        elementwise(["f32", "f32"], "f32", body, lanes),
        [values("f32", rng), values("f32", rng, 1)],
    )


@pytest.mark.parametrize("predicate", range(1, 15))
def test_masks_choose_lanes(compiled: Compile, module_of: Parse, rng: np.random.Generator, predicate: int) -> None:
    types = f"vector<{LANES}xf32>, vector<{LANES}xf32>"
    body = f"""%m = loop.lanes "arith.cmpf" %a, %b {{predicate = {predicate} : i64}} : ({types}) -> vector<{LANES}xi1>
               %r = loop.lanes "arith.select" %m, %b, %a : (vector<{LANES}xi1>, {types}) -> vector<{LANES}xf32>"""
    text = elementwise(["f32", "f32"], "f32", body, LANES)
    check(compiled, module_of, text, [values("f32", rng), values("f32", rng, 1)])
