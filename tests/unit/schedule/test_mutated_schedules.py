"""Schedules as a person may write them by mistake: each is used, or refused with an error that says where it stands."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from msc.backends.registry import find_backend
from msc.dialects.gk import KernelOp, ScheduleAttr
from msc.driver.compile import compile_read, generate_c, stage_text
from msc.driver.models.reading_models import LoadedModel
from msc.driver.options import CompileOptions
from msc.driver.passes.registry import new_context
from msc.ir.reading import parse_module
from msc.lowering.cpu.kernels.convert_gk_to_loop import ConvertGkToLoop
from msc.schedule.schedule_kernels import ScheduleKernels
from msc.support.diagnostics import Diagnostic, MscError

TABLE = find_backend("cpu").table
OPTIONS = CompileOptions(march="x86-64-v3", threads=2, without=("winograd",))
ROUNDS = 60

GRAPHS = {
    "matmul": """func.func @main(%a: tensor<6x8xf32>, %b: tensor<8x12xf32>, %c: tensor<12xf32>) -> tensor<6x12xf32> {
      %0 = ms.matmul %a, %b
      %1 = ms.add %0, %c
      func.return %1 : tensor<6x12xf32>
    }""",
    "collapsed": """func.func @main(%x: tensor<4x6x8xf32>) -> tensor<4x6x8xf32> {
      %0 = ms.relu %x
      func.return %0 : tensor<4x6x8xf32>
    }""",
    "softmax": """func.func @main(%x: tensor<6x16xf32>) -> tensor<6x16xf32> {
      %0 = ms.softmax %x
      func.return %0 : tensor<6x16xf32>
    }""",
    "pad": """func.func @main(%x: tensor<2x8x8xf32>) -> tensor<2x10x10xf32> {
      %0 = ms.pad %x {pad = [0, 1, 1, 0, 1, 1]}
      func.return %0 : tensor<2x10x10xf32>
    }""",
    "conv2d": """func.func @main(%x: tensor<1x3x6x10xf32>, %w: tensor<5x3x3x3xf32>) -> tensor<1x5x4x8xf32> {
      %0 = ms.conv2d %x, %w {pad_mode = "valid"}
      func.return %0 : tensor<1x5x4x8xf32>
    }""",
    "transpose": """func.func @main(%x: tensor<2x18x35xf32>) -> tensor<35x18x2xf32> {
      %0 = ms.transpose %x {perm = [2, 1, 0]}
      func.return %0 : tensor<35x18x2xf32>
    }""",
}
NUMBERS = ("0", "1", "2", "3", "7", "8", "16", "99999999999999999999")
_CLAUSES = (
    "vector unroll parallel pipeline tile register stack workspace partial prefetch ahead head tail run place".split()
)
_NAMES = "t0 t1 in0 in1 out0 S0 S1 S0.0 S1.1 S9.9 n m".split()
WORDS = (*_CLAUSES, *_NAMES)


@cache
def scheduled(name: str) -> str:
    """A module of kernels with the schedules that msc chooses."""
    context = new_context()
    module = parse_module(context, f"builtin.module {{\n{GRAPHS[name]}\n}}", f"{name}.mir")
    made = compile_read(LoadedModel(name, module, TABLE["graph"], Path(), {}, context), OPTIONS, "gk")
    ScheduleKernels().apply(context, made.module)
    return stage_text(made)


def mutated(lines: Sequence[str], rng: random.Random) -> list[str]:
    """The lines of a schedule with a mistake in one of them, or two."""
    lines = list(lines)
    k, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(8):
        case 0:
            del lines[k]
        case 1:
            lines.insert(other, lines[k])
        case 2:
            lines[k], lines[other] = lines[other], lines[k]
        case 3:
            lines[k] = "  " * rng.randrange(5) + lines[k].lstrip()
        case 4:
            lines[k] += rng.choice([" ", ", "]) + rng.choice([*WORDS, *NUMBERS])
        case _:
            words = re.findall(r"\w+|\W+", lines[k])
            word = rng.randrange(len(words))
            words[word] = rng.choice([*NUMBERS, *WORDS, *re.findall(r"\w+", " ".join(lines))])
            lines[k] = "".join(words)
    return mutated(lines, rng) if lines and rng.random() < 0.3 else lines


def with_mistake(text: str, rng: random.Random) -> str:
    """The module with one of its schedules mutated."""
    schedules = list(re.finditer(r"#gk\.schedule<\[(.*?)\]>", text, re.DOTALL))
    found = rng.choice(schedules)
    lines = mutated(re.findall(r'"([^"]*)"', found[1]), rng)
    return text[: found.start(1)] + ", ".join(f'"{line}"' for line in lines) + text[found.end(1) :]


def whole(text: str) -> None:
    """The C of a model whose schedules msc takes as they are."""
    context = new_context()
    module = parse_module(context, text, "model.gk.mir")
    generate_c(compile_read(LoadedModel("model.gk.mir", module, TABLE["gk"], Path(), {}, context), OPTIONS))


def loops_alone(text: str) -> None:
    """The one pass, as `msc opt` runs it."""
    context = new_context()
    ConvertGkToLoop().apply(context, parse_module(context, text, "model.gk.mir"))


def refused(run: Callable[[str], None], text: str) -> bool:
    """Whether a text is refused, which the error must place. Anything else that is raised is a fault of msc."""
    found: list[Diagnostic] = []
    try:
        run(text)
    except MscError as error:
        found += error.diagnostics
    assert all(d.code != "MSC0900" and d.location is not None for d in found), f"{found}\n{text}"
    return bool(found)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_mistake_in_a_schedule_is_an_error_with_a_place(name: str) -> None:
    rng, text = random.Random(name), scheduled(name)
    assert not refused(loops_alone, text)
    results = [refused(loops_alone, with_mistake(text, rng)) for _ in range(ROUNDS)]
    assert any(results)
    assert not all(results)


@pytest.mark.parametrize("name", GRAPHS)
def test_all_stages_refuse_what_the_pass_refuses(name: str) -> None:
    rng, text = random.Random(f"{name} whole"), scheduled(name)
    for changed in (with_mistake(text, rng) for _ in range(ROUNDS // 4)):
        assert refused(whole, changed) == refused(loops_alone, changed), changed


def test_schedules_over_dimensions_that_collapse_are_refused() -> None:
    module = parse_module(new_context(), scheduled("collapsed"), "model.gk.mir")
    assert isinstance(module, ModuleOp)
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp))
    lines = ["axis a 4: S0.0", "axis b 48: S0.1", "for a, b", "  run S0"]
    kernel.attributes["gk.schedule"] = ScheduleAttr.of_lines(lines)
    with pytest.raises(MscError, match=r"line 1: axis a: S0\.0 has extent 192"):
        ConvertGkToLoop().apply(new_context(), module)
