"""Random programs of kernels, views and control flow: on planned buffers they give what they give on tensors."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.dialects.math import Math
from xdsl.dialects.memref import MemRef
from xdsl.dialects.scf import Scf
from xdsl.dialects.tensor import Tensor
from xdsl.dialects.vector import Vector

from msc.dialects.gk import GK
from msc.dialects.loop import LOOP
from msc.dialects.ms import MS
from msc.interp import evaluate
from msc.interp.loops import evaluate_loops
from msc.ir.reading import parse_module
from msc.ir.verification import verify_module
from msc.lowering.cpu.bufferize.bufferize import Bufferize
from msc.lowering.cpu.memory.plan_memory import plan_memory
from msc.lowering.cpu.memory.verify_memory_plan import VerifyMemoryPlan
from msc.lowering.cpu.verification.verify_loop_stage import VerifyLoopStage

VECTOR, MATRIX = "4xf32", "2x2xf32"


@dataclass(frozen=True)
class Kernel:
    """A kernel's function, and the body that means the same; all its tensors have one shape."""

    name: str
    inputs: int
    outputs: int
    body: str
    function: str
    shape: str = VECTOR

    def call(self, results: tuple[str, ...], operands: tuple[str, ...]) -> str:
        """The operation `results = gk.kernel ... operands`."""
        type_ = f"tensor<{self.shape}>"
        bound = ", ".join(f"%{'ab'[i]} = {operand} : {type_}" for i, operand in enumerate(operands))
        types = f"({', '.join([type_] * self.outputs)})"
        return (
            f'{", ".join(results)} = gk.kernel "{self.name}" ({bound}) -> {types}'
            f" attributes {{gk.function = @{self.name}}} {{\n{self.body}\n}}"
        )


def _function(name: str, parameters: str, shape: str, attributes: str, body: str) -> str:
    typed = ", ".join(f"%{p}: memref<{shape}>" for p in parameters.split())
    return f"func.func @{name}({typed}) attributes {{{attributes}}} {{\n{body}\nfunc.return\n}}"


def _attributes(outputs: int, temporaries: int = 0, in_place: str = "") -> str:
    return (
        f"loop.outputs = {outputs} : i64, loop.temporaries = {temporaries} : i64, loop.in_place = [{in_place}],"
        " loop.origin = [], loop.schedule = []"
    )


_T = "tensor<4xf32>"
_M = "memref<4xf32>"

NEG = Kernel(
    "neg",
    1,
    1,
    f"%r = ms.neg %a\ngk.yield %r : {_T}",
    _function(
        "neg",
        "x y",
        VECTOR,
        _attributes(1, in_place="array<i64: 0, 0>"),
        f"loop.for %i = 0 to 4 {{\n%v = loop.load %x[%i] : {_M}\n%r = arith.negf %v : f32\n"
        f"loop.store %r, %y[%i] : f32, {_M}\n}}",
    ),
)

ADD = Kernel(
    "add",
    2,
    1,
    f"%r = ms.add %a, %b\ngk.yield %r : {_T}",
    _function(
        "add",
        "a b y",
        VECTOR,
        _attributes(1, in_place="array<i64: 0, 0>, array<i64: 0, 1>"),
        f"loop.for %i = 0 to 4 {{\n%v = loop.load %a[%i] : {_M}\n%w = loop.load %b[%i] : {_M}\n"
        f"%r = arith.addf %v, %w : f32\nloop.store %r, %y[%i] : f32, {_M}\n}}",
    ),
)

SUB_THROUGH_SCRATCH = Kernel(
    "sub",
    2,
    1,
    f"%r = ms.sub %a, %b\ngk.yield %r : {_T}",
    _function(
        "sub",
        "a b y s",
        VECTOR,
        _attributes(1, temporaries=1),
        f"loop.for %i = 0 to 4 {{\n%v = loop.load %b[%i] : {_M}\nloop.store %v, %s[%i] : f32, {_M}\n"
        f"loop.store %v, %y[%i] : f32, {_M}\n}}\n"
        f"loop.for %i = 0 to 4 {{\n%v = loop.load %a[%i] : {_M}\n%w = loop.load %s[%i] : {_M}\n"
        f"%r = arith.subf %v, %w : f32\nloop.store %r, %y[%i] : f32, {_M}\n}}",
    ),
)

SUM_AND_MAXIMUM = Kernel(
    "both",
    2,
    2,
    f"%r = ms.add %a, %b\n%s = ms.maximum %a, %b\ngk.yield %r, %s : {_T}, {_T}",
    _function(
        "both",
        "a b y z",
        VECTOR,
        _attributes(2, in_place="array<i64: 0, 0>, array<i64: 1, 0>, array<i64: 1, 1>"),
        f"loop.for %i = 0 to 4 {{\n%v = loop.load %a[%i] : {_M}\n%w = loop.load %b[%i] : {_M}\n"
        f"%r = arith.addf %v, %w : f32\n%s = arith.maximumf %v, %w : f32\n"
        f"loop.store %r, %y[%i] : f32, {_M}\nloop.store %s, %z[%i] : f32, {_M}\n}}",
    ),
)

TRANSPOSE = Kernel(
    "transposed",
    1,
    1,
    "%r = ms.transpose %a {perm = [1, 0]}\ngk.yield %r : tensor<2x2xf32>",
    _function(
        "transposed",
        "x y",
        MATRIX,
        _attributes(1),
        "loop.for %i = 0 to 2 {\nloop.for %j = 0 to 2 {\n%v = loop.load %x[%i, %j] : memref<2x2xf32>\n"
        "loop.store %v, %y[%j, %i] : f32, memref<2x2xf32>\n}\n}",
    ),
    MATRIX,
)

KERNELS = (NEG, ADD, SUB_THROUGH_SCRATCH, SUM_AND_MAXIMUM, TRANSPOSE)


@dataclass
class Writer:
    """Writes a program statement by statement, choosing with hypothesis; `pools` are the vectors in scope."""

    draw: st.DrawFn
    lines: list[str] = field(default_factory=list[str])
    fresh: int = 0

    def name(self) -> str:
        self.fresh += 1
        return f"%v{self.fresh}"

    def write(self, line: str) -> None:
        self.lines.append(line)

    def pick(self, pool: list[str]) -> str:
        """A value, one of the latest more often than not: most conflicts are between neighbours."""
        return self.draw(st.sampled_from(pool[-4:] * 3 + pool))

    def statements(self, pool: list[str], depth: int) -> list[str]:
        """Some statements; returns the vectors in scope after them."""
        kinds = (self.kernel, self.kernel, self.kernel, self.transposed, self.branches, self.for_loop, self.while_loop)
        for _ in range(self.draw(st.integers(1, 4))):
            kind = self.draw(st.sampled_from(kinds if depth else kinds[:4]))
            pool = pool + kind(pool, depth - 1)
        return pool

    def kernel(self, pool: list[str], depth: int) -> list[str]:
        kernel = self.draw(st.sampled_from(KERNELS[:-1]))
        results = tuple(self.name() for _ in range(kernel.outputs))
        self.write(kernel.call(results, tuple(self.pick(pool) for _ in range(kernel.inputs))))
        return list(results)

    def transposed(self, pool: list[str], depth: int) -> list[str]:
        matrix, result, vector = self.name(), self.name(), self.name()
        self.write(f"{matrix} = ms.reshape {self.pick(pool)} {{shape = [2, 2]}}")
        self.write(TRANSPOSE.call((result,), (matrix,)))
        self.write(f"{vector} = ms.reshape {result} {{shape = [4]}}")
        return [vector]

    def branches(self, pool: list[str], depth: int) -> list[str]:
        count = self.draw(st.integers(1, 2))
        results = [self.name() for _ in range(count)]
        flag = self.draw(st.sampled_from(["%yes", "%no"]))
        self.write(f"{', '.join(results)} = scf.if {flag} -> ({_types(count)}) {{")
        self.yielded(pool, count, depth)
        self.write("} else {")
        self.yielded(pool, count, depth)
        self.write("}")
        return results

    def yielded(self, pool: list[str], count: int, depth: int) -> None:
        inner = self.statements(pool, depth)
        values = [self.pick(inner) for _ in range(count)]
        self.write(f"scf.yield {', '.join(values)} : {_types(count)}")

    def for_loop(self, pool: list[str], depth: int) -> list[str]:
        count = self.draw(st.integers(1, 3))
        results, carried = ([self.name() for _ in range(count)] for _ in range(2))
        bindings = ", ".join(f"{c} = {self.pick(pool)}" for c in carried)
        bound = self.draw(st.sampled_from(["%zero", "%one", "%three"]))
        head = f"{', '.join(results)} = scf.for {self.name()} = %zero to {bound} step %one iter_args({bindings})"
        self.write(f"{head} -> ({_types(count)}) {{")
        self.yielded(pool + carried, count, depth)
        self.write("}")
        return results

    def while_loop(self, pool: list[str], depth: int) -> list[str]:
        """Counts to three; the condition's block computes too, and passes its values on in any order."""
        count = self.draw(st.integers(1, 2))
        before, after, results = ([self.name() for _ in range(count)] for _ in range(3))
        counter, limit, step, counted, last = (self.name() for _ in range(5))
        bindings = ", ".join([f"{counter} = %zero", *(f"{b} = {self.pick(pool)}" for b in before)])
        types = ", ".join(["index", *[_T] * count])
        self.write(f"{', '.join([last, *results])} = scf.while ({bindings}) : ({types}) -> ({types}) {{")
        inner = self.statements(pool + before, depth) if self.draw(st.booleans()) else pool + before
        self.write(f"{limit} = arith.cmpi slt, {counter}, %three : index")
        passed = ", ".join([counter, *(self.pick(inner) for _ in range(count))])
        self.write(f"scf.condition({limit}) {passed} : {types}")
        self.write(f"}} do {{\n^bb0({', '.join([f'{counted} : index', *(f'{a} : {_T}' for a in after)])}):")
        inner = self.statements(pool + after, depth)
        self.write(f"{step} = arith.addi {counted}, %one : index")
        yielded = ", ".join([step, *(self.pick(inner) for _ in range(count))])
        self.write(f"scf.yield {yielded} : {types}\n}}")
        return results


def _types(count: int) -> str:
    return ", ".join([_T] * count)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A module at the kernel stage."""
    writer = Writer(draw)
    pool = writer.statements(["%x", "%y", "%w", "%c"], depth=2)
    outputs = [writer.pick(pool) for _ in range(draw(st.integers(1, 3)))]
    return "\n".join(
        (
            'builtin.module @program attributes {ms.weights = "none.safetensors"} {',
            f"ms.parameter @unused : {_T}",
            f"ms.parameter @w : {_T} = {{\n%0 = ms.constant dense<[0.5, 1.5, 2.5, 3.5]> : {_T}\nms.yield %0 : {_T}\n}}",
            *(kernel.function for kernel in KERNELS),
            f"func.func @main(%x: {_T}, %y: {_T}, %flags: tensor<2xi1>) -> ({_types(len(outputs))}) {{",
            f"%w = ms.get_parameter @w : {_T}",
            f"%c = ms.constant dense<[4.0, 3.0, 2.0, 1.0]> : {_T}",
            "%zero = arith.constant 0 : index\n%one = arith.constant 1 : index\n%three = arith.constant 3 : index",
            "%yes = tensor.extract %flags[%zero] : tensor<2xi1>\n%no = tensor.extract %flags[%one] : tensor<2xi1>",
            *writer.lines,
            f"func.return {', '.join(outputs)} : {_types(len(outputs))}\n}}\n}}",
        )
    )


def parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Arith, Func, Math, MemRef, Scf, Tensor, Vector, MS, GK, LOOP):
        context.load_dialect(dialect)
    module = parse_module(context, text, "program.gk.mir")
    verify_module(module)
    return module


INPUTS = (
    np.array([1.0, -2.0, 3.0, -4.0], np.float32),
    np.array([0.25, 8.0, -1.0, 2.0], np.float32),
    np.array([True, False]),
)


@settings(max_examples=40, deadline=None)
@given(programs())
def test_buffers_hold_what_the_tensors_are(text: str) -> None:
    expected = evaluate(parse(text), INPUTS, {})
    module = parse(text)
    Bufferize().apply(Context(), module)
    verify_module(module)
    np.testing.assert_array_equal(evaluate_loops(module, INPUTS, {}), expected)
    (plan,) = plan_memory(module)
    verify_module(module)
    assert plan is not None
    assert plan.lower_bound <= plan.workspace_bytes <= plan.bytes_without_reuse
    VerifyMemoryPlan().apply(Context(), module)
    VerifyLoopStage().apply(Context(), module)
    np.testing.assert_array_equal(evaluate_loops(module, INPUTS, {}), expected)
