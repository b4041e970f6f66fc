"""Kernels of several members: one tree over all of them computes what they mean, a block at a time."""

from __future__ import annotations

import re
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from msc.analysis.kernel_model import kernel_model
from msc.dialects.gk import KernelOp
from msc.driver.compile import compile_model, generate_c
from msc.driver.options import CompileOptions
from msc.interp import evaluate
from msc.poly.dependences import dependences
from msc.runtime.artifact import load
from msc.runtime.build import BuildOptions, build
from msc.schedule.members.members import members_of
from msc.schedule.schedule_kernels import illegal
from msc.schedule.strategy import decide
from msc.schedule.threads import neighbours
from msc.schedule.tuning.neighbours import Neighbourhood
from msc.targets.catalogue import machine_named
from tests.unit.compiled.programs import QUICK, parsed

PRODUCT = """func.func @main(%x: tensor<{m}x{k}xf32>, %w: tensor<{k}x{n}xf32>) -> tensor<{n}x{m}xf32> {{
  %y = gk.kernel "product" (%a = %x : tensor<{m}x{k}xf32>, %b = %w : tensor<{k}x{n}xf32>) -> tensor<{n}x{m}xf32> {{
    %0 = ms.matmul %a, %b
    %1 = gk.materialize %0 along [1] : tensor<{m}x{n}xf32>
    %2 = ms.transpose %1 {{perm = [1, 0]}}
    %3 = gk.materialize %2 along [0] : tensor<{n}x{m}xf32>
    %4 = ms.tanh %3
    gk.yield %4 : tensor<{n}x{m}xf32>
  }}
  func.return %y : tensor<{n}x{m}xf32>
}}"""
"""Blocks of columns."""

HEADS = """func.func @main(%x: tensor<{b}x{m}x{k}xf32>, %w: tensor<{b}x{k}x{n}xf32>) -> tensor<{b}x{m}x{n}xf32> {{
  %y = gk.kernel "heads" (%a = %x : tensor<{b}x{m}x{k}xf32>, %c = %w : tensor<{b}x{k}x{n}xf32>)
      -> tensor<{b}x{m}x{n}xf32> {{
    %0 = ms.batch_matmul %a, %c
    %1 = gk.materialize %0 along [0] : tensor<{b}x{m}x{n}xf32>
    %2 = ms.reduce_max %1 {{axis = [2], keep_dims = true}}
    %3 = ms.sub %1, %2
    %4 = ms.exp %3
    gk.yield %4 : tensor<{b}x{m}x{n}xf32>
  }}
  func.return %y : tensor<{b}x{m}x{n}xf32>
}}"""
"""Blocks of a batch, which a reduction reads."""

WINDOWS = """func.func @main(%x: tensor<1x{c}x{h}x{h}xf32>, %w: tensor<1x{h}x{h}x{c}xf32>)
    -> tensor<1x{h}x{h}x{c}xf32> {{
  %y = gk.kernel "pad" (%a = %x : tensor<1x{c}x{h}x{h}xf32>, %b = %w : tensor<1x{h}x{h}x{c}xf32>)
      -> tensor<1x{h}x{h}x{c}xf32> {{
    %0 = ms.pad %a {{pad = [0, 0, 1, 0, 0, 0, 0, 1]}}
    %1 = ms.transpose %0 {{perm = [0, 2, 3, 1]}}
    %2 = gk.materialize %1 along [3] : tensor<1x{h1}x{h1}x{c}xf32>
    %3 = ms.slice %2 {{begin = [0, 0, 0, 0], end = [1, {h}, {h}, {c}]}}
    %4 = ms.slice %2 {{begin = [0, 1, 1, 0], end = [1, {h1}, {h1}, {c}]}}
    %5 = ms.add %3, %4
    %6 = ms.mul %5, %b
    gk.yield %6 : tensor<1x{h}x{h}x{c}xf32>
  }}
  func.return %y : tensor<1x{h}x{h}x{c}xf32>
}}"""
"""Blocks of channels of a padded image, whose neighbours are read: the border is filled for each block."""

CASES = [
    PRODUCT.format(m=13, n=64, k=9),
    PRODUCT.format(m=24, n=40, k=16),
    PRODUCT.format(m=5, n=17, k=3),
    HEADS.format(b=5, m=7, n=40, k=9),
    HEADS.format(b=3, m=160, n=96, k=8),
    HEADS.format(b=2, m=3, n=2, k=4),
    WINDOWS.format(c=64, h=6, h1=7),
    WINDOWS.format(c=24, h=5, h1=6),
    WINDOWS.format(c=7, h=3, h1=4),
]


def module(text: str, threads: int = 1) -> str:
    """A stage file of a function."""
    target = f'#ms.target<"cpu", machine = "x86-64-v3", threads = {threads}>'
    return f"builtin.module @members attributes {{ms.target = {target}}} {{\n{text}\n}}"


def inputs(text: str) -> list[np.ndarray]:
    shapes = re.findall(r"tensor<([\dx]+)xf32>", text.partition("->")[0])
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, tuple(map(int, s.split("x")))).astype(np.float32) for s in shapes]


def kernel_of(compiled: ModuleOp) -> KernelOp:
    return next(op for op in compiled.walk() if isinstance(op, KernelOp))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("text", CASES)
def test_as_the_interpreter(text: str, threads: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Shared by threads whatever that costs."""
    monkeypatch.setattr("msc.schedule.threads.Surroundings.cost", Mock(return_value=float("-inf")))
    path = tmp_path / "members.gk.mir"
    path.write_text(module(text, threads))
    compilation = compile_model(str(path), CompileOptions())
    program = build(generate_c(compilation), compilation.parameters(), "so", tmp_path / "m.so", BuildOptions(QUICK))
    given = inputs(text)
    (expected,) = evaluate(parsed(module(text)), given, {})
    (actual,) = load(program).results(*given)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("text", [CASES[0], CASES[4], CASES[6]])
def test_schedules_next_to_it_are_legal(text: str) -> None:
    model, machine = kernel_model(kernel_of(parsed(module(text)))), machine_named("x86-64-v3")
    deps = dependences(model)
    tree = decide(model, deps, machine, 1).tree
    near = list(Neighbourhood(model, deps, machine, 1).of_each_kind(tree, 2))
    assert near
    assert all(illegal(model, deps, each) is None for each in (tree, *near))


def test_members_alone_have_inputs_and_outputs_of_their_own() -> None:
    model = kernel_model(kernel_of(parsed(module(CASES[0]))))
    product, turn, last = members_of(model)
    assert [a.kind for a in product.model.arrays] == ["input", "input", "output", "internal"]
    assert [a.kind for a in turn.model.arrays] == [a.kind for a in last.model.arrays] == ["input", "output"]
    assert [list(m.statements) for m in (product, turn, last)] == [[0, 1, 2], [3], [4]]
    assert not product.first


def test_an_axis_that_blocks_are_cut_along_stays_apart() -> None:
    text = """func.func @main(%x: tensor<4x6x8xf32>) -> tensor<4x6x8xf32> {
      %y = gk.kernel "k" (%a = %x : tensor<4x6x8xf32>) -> tensor<4x6x8xf32> {
        %0 = ms.exp %a
        %1 = gk.materialize %0 along [AXES] : tensor<4x6x8xf32>
        %2 = ms.neg %1
        gk.yield %2 : tensor<4x6x8xf32>
      }
      func.return %y : tensor<4x6x8xf32>
    }"""
    found = {
        axes: kernel_model(kernel_of(parsed(module(text.replace("AXES", axes))))) for axes in ("0", "2", "0, 1", "1")
    }
    assert {axes: (m.arrays[0].shape, m.materialized[0].axes) for axes, m in found.items()} == {
        "0": ((4, 48), (0,)),
        "2": ((24, 8), (1,)),
        "0, 1": ((24, 8), (0,)),
        "1": ((4, 6, 8), (1,)),
    }


@pytest.mark.parametrize(
    ("trips", "team", "each"),
    [(14, 2, 7), (17, 2, 8), (14, 8, 2), (19, 4, 1), (3, 2, 1), (2, 2, 1), (1, 2, 1), (64, 4, 16)],
)
def test_threads_take_neighbouring_blocks(trips: int, team: int, each: int) -> None:
    assert neighbours(trips, team) == each
