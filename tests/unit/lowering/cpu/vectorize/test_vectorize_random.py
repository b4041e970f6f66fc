"""Random vector loops: before and after `vectorize`, for targets of several widths, they compute the same.

All numbers are small integers, so that the reassociation of sums changes nothing.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from msc.dialects.ms.target import TargetAttr, set_target
from msc.driver.passes.registry import new_context
from msc.interp.loops import evaluate_loops
from msc.ir.reading import parse_module
from msc.ir.verification import verify_module
from msc.lowering.cpu.vectorize.vectorize import Vectorize
from msc.lowering.cpu.verification.verify_bounds import VerifyBounds
from msc.lowering.cpu.verification.verify_loop_stage import VerifyLoopStage
from msc.support.diagnostics import MscError

_X, _Y, _Z = "memref<4x96xf32>", "memref<4x96xf32>", "memref<4xf32>"
_INPUTS = (
    np.random.default_rng(0).integers(-3, 4, (4, 96)).astype(np.float32),
    np.random.default_rng(1).integers(-3, 4, (4, 96)).astype(np.float32),
)
_ACCESSES = (
    "%x[%i, %j]",
    "%x[%i, %j + 3]",
    "%x[%i, 2]",
    "%x[%i, %j * 2]",
    "%w[%j floordiv 16, 1]",
    "%w[%i floordiv 2, %j]",
    "%w[0, %j]",
    "%w[%i, %i]",
)
_BINARY = ("addf", "subf", "mulf", "maximumf", "minimumf")


@st.composite
def values(draw: st.DrawFn) -> tuple[list[str], str]:
    """Straight-line code of scalars inside the vector loop, and the name of its last value."""
    lines, names = ["%c = arith.constant 2.0 : f32"], ["%c"]
    for n in range(draw(st.integers(1, 3))):
        lines.append(f"%l{n} = loop.load {draw(st.sampled_from(_ACCESSES))} : {_X}")
        names.append(f"%l{n}")
    for n in range(draw(st.integers(0, 4))):
        a, b = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        match draw(st.sampled_from(["binary", "unary", "select"])):
            case "binary":
                lines.append(f"%v{n} = arith.{draw(st.sampled_from(_BINARY))} {a}, {b} : f32")
            case "unary":
                lines.append(f"%v{n} = math.absf {a} : f32")
            case _:
                lines += [f"%m{n} = arith.cmpf olt, {a}, {b} : f32", f"%v{n} = arith.select %m{n}, {b}, {a} : f32"]
        names.append(f"%v{n}")
    return lines, names[-1]


@st.composite
def kernels(draw: st.DrawFn) -> str:
    lines, last = draw(values())
    start = draw(st.integers(0, 2))
    end = start + draw(st.integers(1, 45))
    if draw(st.booleans()):
        effect = [f"loop.store {last}, %y[%i, %j] : f32, {_Y}"]
    else:
        combine = draw(st.sampled_from(["addf", "maximumf", "minimumf"]))
        effect = [f"%old = loop.load %z[%i] : {_Z}", f"%new = arith.{combine} %old, {last} : f32"]
        effect += [f"loop.store %new, %z[%i] : f32, {_Z}"]
    body = "\n".join([*lines, *effect])
    return f"""builtin.module {{
func.func @k(%x: {_X}, %w: {_X}, %y: {_Y}, %z: {_Z}) attributes {{loop.outputs = 2 : i64}} {{
  %zero = arith.constant 0.0 : f32
  loop.for %i = 0 to 4 {{
    loop.store %zero, %z[%i] : f32, {_Z}
    loop.for %j = 0 to 96 {{ loop.store %zero, %y[%i, %j] : f32, {_Y} }}
    loop.for %j = {start} to {end} vector {{
{body}
    }}
  }}
  func.return
}}
func.func @main(%x: {_X}, %w: {_X}, %y: {_Y} {{ms.role = "output"}}, %z: {_Z} {{ms.role = "output"}}) {{
  func.call @k(%x, %w, %y, %z) : ({_X}, {_X}, {_Y}, {_Z}) -> ()
  func.return
}}
}}"""


def parse(text: str) -> ModuleOp:
    module = parse_module(new_context(), text, "kernel.loop.mir")
    verify_module(module)
    return module


@pytest.mark.parametrize("target", ["generic", "x86-64-v3", "x86-64-v4"])
@settings(max_examples=30, deadline=None)
@given(kernels())
def test_vectors_compute_what_the_loop_does(target: str, text: str) -> None:
    """Or there are none: a loop with a quotient in an index is refused, and never runs as something else."""
    expected = evaluate_loops(parse(text), _INPUTS, {})
    module = parse(text)
    set_target(module, TargetAttr.of("cpu", target, 1))
    if "%j floordiv" in text:
        with pytest.raises(MscError, match="is no vector loop: an index divides by a constant"):
            Vectorize().apply(Context(), module)
        return
    Vectorize().apply(Context(), module)
    verify_module(module)
    VerifyLoopStage().apply(Context(), module)
    VerifyBounds().apply(Context(), module)
    for before, after in zip(expected, evaluate_loops(module, _INPUTS, {}), strict=True):
        np.testing.assert_array_equal(after, before)
