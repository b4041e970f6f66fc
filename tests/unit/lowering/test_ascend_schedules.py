"""A schedule on any kernel of an Ascend machine is followed, or refused with the reason of the unit that runs it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from msc.analysis.kernel_model import kernel_dependences, kernel_model
from msc.analysis.kernels import kernels_in
from msc.analysis.target import target_of
from msc.dialects import gk
from msc.dialects.davinci import DavinciKernelOp
from msc.dialects.davinci.kernels import scalar_cycles
from msc.dialects.gk.attributes import GK_SCHEDULE
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.driver.reports.explanations import explain_model
from msc.lowering.ascend.kernels import write_kernel
from msc.poly.dependences import dependences
from msc.poly.schedule_tree.text import to_lines
from msc.schedule.schedule_kernels import illegal
from msc.schedule.scheduled_model import scheduled_model
from msc.schedule.strategy import plain
from msc.support.diagnostics import MscError
from msc.targets.davinci import davinci_target

UNIT = Path(__file__).parents[1]
MODELS = [
    UNIT / "lowering" / "ascend_kinds.mir",
    UNIT / "lowering" / "ascend_chunks.mir",
    UNIT / "lowering" / "ascend_passes.mir",
    UNIT / "backends" / "ascend_operators.mir",
]
TARGET = "ascend910b1"


@cache
def _kernels(path: Path) -> list[gk.KernelOp]:
    return kernels_in(compile_model(str(path), CompileOptions(target=TARGET), stop_after="gk").module)


def _write(kernel: gk.KernelOp, lines: tuple[str, ...] | None) -> tuple[DavinciKernelOp, tuple[str, ...]]:
    """A kernel with a schedule, or by rule, and the lines of the tree that it follows."""
    if lines is not None:
        kernel.attributes[GK_SCHEDULE] = gk.ScheduleAttr.of_lines(lines)
    try:
        made = write_kernel(kernel, davinci_target(TARGET), "kernel")
        followed = kernel.attributes.get(GK_SCHEDULE)
    finally:
        kernel.attributes.pop(GK_SCHEDULE, None)
    assert isinstance(followed, gk.ScheduleAttr), f"{kernel.label.data} follows no tree"
    return made, tuple(followed.lines)


def _unit(kernel: DavinciKernelOp) -> str:
    unit = kernel.kind.data if scalar_cycles(kernel) is None else "scalar"
    return "cube" if unit == "mix" else unit


def _others(kernel: gk.KernelOp, lines: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Schedules that no rule chose: plain loops, and its own with each tile of another size, or without a mark."""
    deps, machine = kernel_dependences(kernel), target_of(kernel).machine
    found = [tuple(to_lines(plain(kernel_model(kernel), deps, machine)))]
    for number, line in enumerate(lines):
        twice = re.sub(r"tile (\d+)", lambda found: f"tile {int(found[1]) * 2}", line)
        changes = [twice, re.sub(r" parallel( \d+)?", "", line), re.sub(r" pipeline \d+", "", line)]
        found += [(*lines[:number], other, *lines[number + 1 :]) for other in changes if other != line]
    return found


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_schedule_is_followed_or_refused(path: Path) -> None:
    for kernel in _kernels(path):
        made, own = _write(kernel, None)
        model, tree = scheduled_model(kernel), gk.ScheduleAttr.of_lines(own).data
        assert illegal(model, dependences(model), tree, target_of(kernel).cores.abilities) is None
        again, followed = _write(kernel, own)
        assert followed == own
        assert again.is_structurally_equivalent(made), kernel.label.data
        for lines in _others(kernel, own):
            try:
                _, followed = _write(kernel, lines)
            except MscError as problem:
                [diagnostic] = problem.diagnostics
                assert diagnostic.code == "MSC0408"
                unit = {"cube": "cube", "vector": "vector unit", "scalar": "scalar unit"}[_unit(made)]
                assert f"the {unit}" in diagnostic.message, (kernel.label.data, lines)
            else:
                assert followed == lines, kernel.label.data


def test_explain_prints_the_tree_that_runs() -> None:
    kernels = explain_model(str(MODELS[0]), CompileOptions(target=TARGET))
    trees = [own for kernel in _kernels(MODELS[0]) for _, own in [_write(kernel, None)]]
    assert [kernel.schedule for kernel in kernels] == trees
