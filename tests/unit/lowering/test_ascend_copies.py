"""Kernels that only move data go through UB, on as many cores as pay, and give what the interpreter gives."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import msc
from msc.backends.simulation.models import simulate_module
from msc.codegen.davinci.simulate import check_kernel
from msc.dialects import gk
from msc.dialects.davinci import DavinciKernelOp
from msc.dialects.davinci.kernels import scalar_cycles
from msc.dialects.gk.attributes import GK_SCHEDULE, GK_SCHEDULE_REASONS
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.driver.tuner import simulated
from msc.lowering.ascend.kernels import write_kernel
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.text import to_lines
from msc.schedule.copies.strategy import Copies
from msc.schedule.schedule_kernels import check_given
from msc.schedule.tuning.tuned_schedules import TuningFile
from msc.support.diagnostics import MscError
from msc.targets.davinci import davinci_target
from tests.unit.simulated import Compared, compared

TARGET = "ascend910b1"
INPUTS = {"x": "300x517xf32", "t": "2x3x5x7xf16", "q": "3x40x33xi8", "b": "9x70xbf16", "m": "6x5x4xi1", "i": "65x3xi32"}
OPERATIONS = (
    ("transpose", "x", "{perm = [1, 0]}", "517x300xf32"),
    ("transpose", "t", "{perm = [0, 2, 3, 1]}", "2x5x7x3xf16"),
    ("transpose", "t", "{perm = [3, 1, 2, 0]}", "7x3x5x2xf16"),
    ("transpose", "q", "{perm = [1, 2, 0]}", "40x33x3xi8"),
    ("transpose", "q", "{perm = [1, 0, 2]}", "40x3x33xi8"),
    ("transpose", "b", "{perm = [1, 0]}", "70x9xbf16"),
    ("transpose", "m", "{perm = [2, 0, 1]}", "4x6x5xi1"),
    ("transpose", "i", "{perm = [1, 0]}", "3x65xi32"),
    ("pad", "x", "{pad = [1, 2, 0, 5]}", "301x524xf32"),
    ("pad", "q", "{pad = [0, 1, 2, 0, 1, 1], value = -3.0}", "3x42x36xi8"),
    ("pad", "b", '{pad = [1, 0, 0, 3], value = "-inf"}', "10x73xbf16"),
    ("slice", "x", "{begin = [3, 5], end = [290, 400], strides = [2, 1]}", "144x395xf32"),
    ("slice", "x", "{begin = [3, 5], end = [290, 400], strides = [2, 3]}", "144x132xf32"),
    ("slice", "x", "{begin = [0, 1], end = [300, 517], strides = [1, 50]}", "300x11xf32"),
    ("slice", "q", "{begin = [0, 1, 2], end = [3, 40, 33], strides = [1, 1, 2]}", "3x39x16xi8"),
    ("slice", "i", "{begin = [5, 2], end = [64, 3], strides = [4, 1]}", "15x1xi32"),
    ("concat", "t, %t", "{axis = 1}", "2x6x5x7xf16"),
    ("concat", "i, %i, %i", "{axis = 0}", "195x3xi32"),
)


def _text() -> str:
    arguments = ", ".join(f"%{name}: tensor<{shape}>" for name, shape in INPUTS.items())
    lines = list[str]()
    for k, (name, operands, attributes, result) in enumerate(OPERATIONS):
        types = ", ".join(f"tensor<{INPUTS[operand.strip(' %')]}>" for operand in operands.split(","))
        lines.append(f"  %{k} = ms.{name} %{operands} {attributes} : ({types}) -> tensor<{result}>")
    results = ", ".join(f"tensor<{result}>" for *_, result in OPERATIONS)
    names = ", ".join(f"%{k}" for k in range(len(OPERATIONS)))
    return (
        f"func.func @main({arguments}) -> ({results}) {{\n"
        + "\n".join(lines)
        + f"\n  func.return {names} : {results}\n}}"
    )


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    path: Path = tmp_path_factory.mktemp("copies") / "copies.mir"
    path.write_text(_text())
    return compared(path, TARGET, lambda rng, shape: rng.integers(-100, 100, shape))


@pytest.mark.parametrize("number", range(len(OPERATIONS)), ids=lambda k: f"{OPERATIONS[k][0]} {OPERATIONS[k][3]}")
def test_copies_agree(number: int, both: Compared) -> None:
    np.testing.assert_array_equal(both.found[number], both.expected[number])


def test_the_scalar_unit_copies_nothing(both: Compared) -> None:
    kernels = [op for op in both.module.body.block.ops if isinstance(op, DavinciKernelOp)]
    assert kernels
    assert not [op.sym_name.data for op in kernels if scalar_cycles(op) is not None]
    assert max(op.blocks.value.data for op in kernels) > 1


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> list[gk.KernelOp]:
    path = tmp_path_factory.mktemp("trees") / "copies.mir"
    path.write_text(_text())
    module = compile_model(str(path), CompileOptions(target=TARGET), stop_after="gk").module
    return [op for op in module.walk() if isinstance(op, gk.KernelOp)]


@pytest.mark.parametrize("target", [TARGET, "ascend310"])
@pytest.mark.parametrize("number", range(len(OPERATIONS)), ids=lambda k: f"{OPERATIONS[k][0]} {OPERATIONS[k][3]}")
def test_the_tree_of_a_copy_says_all_of_its_schedule(number: int, target: str, kernels: list[gk.KernelOp]) -> None:
    kernel = kernels[number].clone()
    own = write_kernel(kernel, davinci_target(target), "copy")
    schedule = kernel.attributes.pop(GK_SCHEDULE)
    assert "predicted cycles" in str(kernel.attributes[GK_SCHEDULE_REASONS])
    assert isinstance(schedule, gk.ScheduleAttr)
    kernel.attributes[GK_SCHEDULE] = gk.ScheduleAttr.of_lines(list(schedule.lines))
    assert str(write_kernel(kernel, davinci_target(target), "copy")) == str(own)


def test_isl_proves_the_trees_of_copies(kernels: list[gk.KernelOp]) -> None:
    for kernel in kernels[::4]:
        write_kernel(kernel, davinci_target(TARGET), "copy")
        kernel.attributes[GK_SCHEDULE] = kernel.attributes[GK_SCHEDULE]
        check_given(kernel)
        del kernel.attributes[GK_SCHEDULE]


TURNED = """
builtin.module attributes {ms.target = #ms.target<"ascend910b1", machine = "ascend910b1", threads = 1>} {
func.func @main(%x: tensor<100x70xf16>) -> tensor<70x100xf16> {
  %y = gk.kernel "turn" (%a = %x : tensor<100x70xf16>) -> tensor<70x100xf16> attributes {gk.schedule = #gk.schedule<[
    "axis c 70: S0.0", "axis r 100: S0.1",
    LINES]>} {
    %0 = ms.transpose %a {perm = [1, 0]} : (tensor<100x70xf16>) -> tensor<70x100xf16>
    gk.yield %0 : tensor<70x100xf16>
  }
  func.return %y : tensor<70x100xf16>
}
}
"""
TASK = """"  place in0, out0 in ub", "  for c, r vector", "    run S0\""""


BY_HAND = (
    ("for c tile 32 parallel, c tile 16 pipeline 2", 3),
    ("for c tile 32 parallel, c tile 16", 3),
    ("for c tile 9 parallel", 8),
    ("for r tile 48 parallel, r tile 24 pipeline 2", 3),
    ("for c tile 16, r tile 24 pipeline 2", 1),
    ("for r tile 100", 1),
)


def _six_turned() -> str:
    """A model that turns six matrices, each by another schedule."""
    count = range(len(BY_HAND))
    lines = [TURNED.replace("LINES", f'"{loops}",\n{TASK}').split("\n") for loops, _ in BY_HAND]
    bodies = [re.sub(r"%([axy0])\b", rf"%\g<1>_{k}", "\n".join(each[3:10])) for k, each in enumerate(lines)]
    arguments = ", ".join(f"%x_{k}: tensor<100x70xf16>" for k in count)
    names, types = ", ".join(f"%y_{k}" for k in count), ", ".join(["tensor<70x100xf16>"] * len(BY_HAND))
    body = "\n".join([*bodies, f"  func.return {names} : {types}"]).replace("%0_", "%v")
    return f"{lines[0][1]}\nfunc.func @main({arguments}) -> ({types}) {{\n{body}\n}}\n}}"


def test_schedules_of_copies_written_by_hand_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "turns.gk.mir"
    path.write_text(_six_turned(), "utf-8")
    module = compile_model(str(path), CompileOptions(target=TARGET)).module
    kernels = [op for op in module.ops if isinstance(op, DavinciKernelOp)]
    assert [kernel.blocks.value.data for kernel in kernels] == [cores for _, cores in BY_HAND]
    for kernel in kernels:
        check_kernel(kernel)
    inputs = [(np.arange(7000) % 2000 + k).reshape(100, 70).astype(np.float16) for k in range(len(BY_HAND))]
    for x, result in zip(inputs, msc.compile(str(path), target=TARGET)(*inputs), strict=True):
        np.testing.assert_array_equal(result, x.T)


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        (['"for c tile 16 pipeline 2",', TASK.replace("r vector", "r")], "line 5: moves of tiles are no such loops"),
        (['"for r tile 24, c tile 16 pipeline 2",', TASK], "line 3: moves of tiles are no such loops"),
        (['"for c tile 16 parallel, r tile 48 parallel, r tile 24 pipeline 2",', TASK], "line 3: moves"),
        (['"for c",', '"  for r vector", "    run S0"'], "line 3: moves of tiles are no such loops"),
    ],
)
def test_a_schedule_that_moves_cannot_follow_is_refused(lines: list[str], wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "turn.gk.mir"
    path.write_text(TURNED.replace("LINES", "\n".join(lines)), "utf-8")
    with pytest.raises(MscError, match=rf"MSC0408(.|\n)*cannot run on the vector unit: {wrong}"):
        compile_model(str(path), CompileOptions(target=TARGET))


def test_a_tile_of_a_copy_without_room_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "turn.gk.mir"
    text = TURNED.replace("LINES", f'"for c tile 35 pipeline 2",\n{TASK}').replace("100", "1000")
    path.write_text(text, "utf-8")
    with pytest.raises(MscError, match=r"MSC0408(.|\n)*line \d+: .* takes \d+ bytes"):
        compile_model(str(path), CompileOptions(target=TARGET))


def test_tuning_a_copy_finds_a_schedule_that_compiling_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, tuned = tmp_path / "model.mir", tmp_path / "tuned.json"
    path.write_text(
        "func.func @main(%x: tensor<300x517xf32>) -> tensor<517x300xf32> {\n"
        "  %y = ms.transpose %x {perm = [1, 0]} : (tensor<300x517xf32>) -> tensor<517x300xf32>\n"
        "  func.return %y : tensor<517x300xf32>\n}",
        "utf-8",
    )

    def few(form: Copies) -> list[Tree]:
        return [t for t in form.trees() if "i0 tile 64 parallel, i1 tile 64" in "\n".join(to_lines(t))]

    monkeypatch.setattr(Copies, "neighbours", few)
    options = CompileOptions(target=TARGET)
    (entry,) = simulated.tune_simulated(str(path), options, 300.0, lambda _: None).entries
    assert entry.after_us < entry.before_us
    tuned.write_text(TuningFile((entry,)).to_json(), encoding="utf-8")
    retuned = compile_model(str(path), replace(options, tuned=tuned), stop_after="davinci").module
    (after,) = simulate_module(retuned, check=False)
    assert round(after.microseconds, 3) == entry.after_us
