"""Loops that `winograd` decided to compare forms are those that scheduling would decide."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from msc.analysis.kernel_model import kernel_dependences, kernel_model
from msc.dialects.gk import KernelOp
from msc.driver.compile import compile_model, stage_text
from msc.driver.options import CompileOptions
from msc.schedule.known_loops import KnownLoops
from msc.schedule.strategy import decided_loops
from msc.support import forked
from msc.targets.catalogue import machine_named
from msc.targets.machine import Machine

MACHINE = machine_named("x86-64-v3")
SOURCE = """func.func @main(%x: tensor<4x64x16x16xf32>, %w: tensor<64x64x3x3xf32>, %v: tensor<64x64x3x3xf32>)
    -> tensor<4x64x16x16xf32> {
  %a = ms.conv2d %x, %w {pad_mode = "same"}
  %b = ms.relu %a
  %c = ms.conv2d %b, %v {pad_mode = "same"}
  func.return %c : tensor<4x64x16x16xf32>
}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two convolutions of weights that calls give, which kernels of their own transform."""
    path = tmp_path_factory.mktemp("known_loops") / "model.mir"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def compiled(path: Path, stage: str, threads: int = 1) -> ModuleOp:
    return compile_model(str(path), CompileOptions(march=MACHINE.name, threads=threads), stage).module


@pytest.mark.parametrize(("processors", "threads"), [(1, 2), (2, 1)])
def test_what_is_cached_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, model: Path, processors: int, threads: int
) -> None:
    def text() -> str:
        return stage_text(compile_model(str(model), CompileOptions(march=MACHINE.name, threads=threads), "loop"))

    def nothing(_: ModuleOp, machine: Machine, threads: int) -> KnownLoops:
        return KnownLoops(machine, threads)

    monkeypatch.setattr(forked, "_processors", lambda: processors)
    monkeypatch.setattr(forked, "_may_fork", lambda: True)
    with_cache = text()
    monkeypatch.setattr(KnownLoops, "taken", staticmethod(nothing))
    assert text() == with_cache


@pytest.fixture(scope="module")
def known(model: Path) -> tuple[KnownLoops, list[KernelOp]]:
    """What is left with a module, and its kernels of which the loops are known."""
    module = compiled(model, "gk")
    found = KnownLoops.taken(module, MACHINE, 1)
    again = KnownLoops(MACHINE, 1)
    assert len(found)
    assert not len(KnownLoops.taken(module, MACHINE, 1))
    again.read(found.written(0))
    assert again.written(0) == found.written(0)
    structures = {structure for (structure, *_) in found.written(0)[::3]}
    return again, [k for k in module.walk() if isinstance(k, KernelOp) and kernel_model(k).structure in structures]


def test_texts_tell_all_that_is_decided(known: tuple[KnownLoops, list[KernelOp]]) -> None:
    loops, kernels = known
    assert kernels
    for kernel in kernels:
        reasons, expected = list[str](), list[str]()
        deps = kernel_dependences(kernel)
        found = loops.loops(kernel_model(kernel), deps, MACHINE, 1, reasons)
        assert found == decided_loops(kernel_model(kernel), deps, MACHINE, 1, expected)
        assert reasons == expected


@pytest.mark.parametrize(
    ("machine", "threads", "blocks"), [("x86-64-v4", 1, True), (MACHINE.name, 2, True), (MACHINE.name, 1, False)]
)
def test_other_questions_have_other_answers(
    known: tuple[KnownLoops, list[KernelOp]], machine: str, threads: int, blocks: bool
) -> None:
    loops, (kernel, *_) = known
    asked = (kernel_model(kernel), kernel_dependences(kernel), machine_named(machine), threads)
    assert loops.loops(*asked, [], blocks=blocks) == decided_loops(*asked, [], blocks=blocks)
