"""Gathers move rows that the scalar unit finds by their indices, and give what the interpreter gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import msc
from msc.backends.simulation.kernels import parse_kernels
from msc.codegen.davinci.simulate import check_kernel
from msc.dialects import gk
from msc.dialects.arrays import Array
from msc.dialects.davinci import DavinciKernelOp, FlagOp, LoadIndexOp
from msc.dialects.davinci.kernels import scalar_cycles
from msc.dialects.gk.attributes import GK_SCHEDULE, GK_SCHEDULE_REASONS
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.lowering.ascend.kernels import write_kernel
from msc.schedule.schedule_kernels import check_given
from msc.support.diagnostics import MscError
from msc.targets.davinci import davinci_target
from tests.unit.simulated import Compared, compared

TARGET = "ascend910b1"
INPUTS = {
    "table": "301x96xf32", "odd": "40x33xf16", "bytes": "9x70xi8", "truth": "12x5xi1", "brain": "17x64xbf16",
    "cube": "5x12x7xf32", "wide": "6x60000xf32", "numbers": "64xi32",
    "i": "3x50xi64", "j": "21xi32", "k": "9xi8", "one": "i64", "e": "5x12x7xi64", "s": "4x6x7xi16",
}  # fmt: skip
OPERATIONS = (
    ("gather", "table, %i", "{axis = 0}", "3x50x96xf32"),
    ("gather", "odd, %j", "{axis = 0}", "21x33xf16"),
    ("gather", "odd, %k", "{axis = 1}", "40x9xf16"),
    ("gather", "bytes, %k", "{axis = 0}", "9x70xi8"),
    ("gather", "truth, %i", "{axis = 0}", "3x50x5xi1"),
    ("gather", "brain, %j", "{axis = 0}", "21x64xbf16"),
    ("gather", "cube, %j", "{axis = 1}", "5x21x7xf32"),
    ("gather", "cube, %k", "{axis = 2}", "5x12x9xf32"),
    ("gather", "wide, %j", "{axis = 0}", "21x60000xf32"),
    ("gather", "numbers, %i", "{axis = 0}", "3x50xi32"),
    ("gather", "table, %one", "{axis = 0}", "96xf32"),
    ("gather_elements", "cube, %e", "{axis = 1}", "5x12x7xf32"),
    ("gather_elements", "cube, %s", "{axis = 1}", "4x6x7xf32"),
)


def _text() -> str:
    arguments = ", ".join(f"%{name}: tensor<{shape}>" for name, shape in INPUTS.items())
    lines = list[str]()
    for k, (name, operands, attributes, result) in enumerate(OPERATIONS):
        types = ", ".join(f"tensor<{INPUTS[operand.strip(' %')]}>" for operand in operands.split(","))
        lines.append(f"  %{k} = ms.{name} %{operands} {attributes} : ({types}) -> tensor<{result}>")
    results = ", ".join(f"tensor<{operation[3]}>" for operation in OPERATIONS)
    names = ", ".join(f"%{k}" for k in range(len(OPERATIONS)))
    return (
        f"func.func @main({arguments}) -> ({results}) {{\n"
        + "\n".join(lines)
        + f"\n  func.return {names} : {results}\n}}"
    )


def _draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers that are valid indices of all axes, negative ones among them."""
    return rng.integers(-5, 5, shape)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    path: Path = tmp_path_factory.mktemp("gathers") / "gathers.mir"
    path.write_text(_text())
    return compared(path, TARGET, _draw)


@pytest.mark.parametrize(
    "number", range(len(OPERATIONS)), ids=[f"{name} {operands}" for name, operands, *_ in OPERATIONS]
)
def test_gathers_agree(number: int, both: Compared) -> None:
    np.testing.assert_array_equal(both.found[number], both.expected[number])


def test_the_scalar_unit_only_finds_rows(both: Compared) -> None:
    kernels = [op for op in both.module.body.block.ops if isinstance(op, DavinciKernelOp)]
    assert kernels
    assert not [op.sym_name.data for op in kernels if scalar_cycles(op) is not None]
    assert max(op.blocks.value.data for op in kernels) > 1


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> list[gk.KernelOp]:
    path = tmp_path_factory.mktemp("trees") / "gathers.mir"
    path.write_text(_text())
    module = compile_model(str(path), CompileOptions(target=TARGET), stop_after="gk").module
    return [op for op in module.walk() if isinstance(op, gk.KernelOp)]


@pytest.mark.parametrize("target", [TARGET, "ascend310"])
def test_the_trees_of_gathers_say_all_of_their_schedules(target: str, kernels: list[gk.KernelOp]) -> None:
    for kernel in (kernel.clone() for kernel in kernels):
        own = write_kernel(kernel, davinci_target(target), "rows")
        schedule = kernel.attributes.pop(GK_SCHEDULE)
        assert "gathered" in str(kernel.attributes[GK_SCHEDULE_REASONS])
        assert isinstance(schedule, gk.ScheduleAttr)
        kernel.attributes[GK_SCHEDULE] = gk.ScheduleAttr.of_lines(list(schedule.lines))
        assert str(write_kernel(kernel, davinci_target(target), "rows")) == str(own)


def test_isl_proves_the_trees_of_gathers(kernels: list[gk.KernelOp]) -> None:
    for kernel in kernels[::4]:
        write_kernel(kernel, davinci_target(TARGET), "rows")
        kernel.attributes[GK_SCHEDULE] = kernel.attributes[GK_SCHEDULE]
        check_given(kernel)
        del kernel.attributes[GK_SCHEDULE]


def test_rows_come_while_others_leave(kernels: list[gk.KernelOp]) -> None:
    text = str(write_kernel(kernels[0].clone(), davinci_target(TARGET), "rows"))
    assert "set_flag MTE2 -> MTE3, %tile mod 2" in text
    assert "wait_flag MTE3 -> MTE2, %tile mod 2" in text


def test_a_gather_without_one_of_its_flags_is_refused(kernels: list[gk.KernelOp]) -> None:
    own = write_kernel(kernels[0].clone(), davinci_target(TARGET), "rows")
    check_kernel(own)
    flags = [op for op in own.walk() if isinstance(op, FlagOp)]
    assert len(flags) == 8
    for number in range(len(flags)):
        less = own.clone()
        [op for op in less.walk() if isinstance(op, FlagOp)][number].detach()
        with pytest.raises(MscError, match=r"MSC101[567]"):
            check_kernel(less)


def test_an_index_outside_becomes_the_nearest_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.mir"
    path.write_text(
        "func.func @main(%x: tensor<10x8xf32>, %i: tensor<6xi64>) -> tensor<6x8xf32> {\n"
        "  %y = ms.gather %x, %i {axis = 0} : (tensor<10x8xf32>, tensor<6xi64>) -> tensor<6x8xf32>\n"
        "  func.return %y : tensor<6x8xf32>\n}",
        "utf-8",
    )
    x = np.arange(80, dtype=np.float32).reshape(10, 8)
    far = np.array([-10, -11, 10, 1 << 32, -(1 << 40), 9], np.int64)
    found = msc.compile(str(path), target=TARGET)(x, far)
    np.testing.assert_array_equal(found, x[[0, 0, 9, 9, 0, 9]])
    np.testing.assert_array_equal(found, msc.compile(str(path))(x, far))


ROWS = """davinci.kernel @rows vector 1 (%x: !davinci.buffer<gm, f32, 640>, %i: !davinci.buffer<gm, i32, 8>) {
  %a = davinci.alloc at 0 : !davinci.buffer<ub, f32, 64>
  %r = davinci.load_index %i[PLACE] below COUNT
  davinci.copy_gm_to_ubuf %a[0], %x[%r * 64] {bursts = 1, length = 8}
}
"""


@pytest.mark.parametrize(
    ("place", "count", "told"),
    [
        ("0", 11, "copy_gm_to_ubuf: operand 1 reads bytes 2560 to 2816 of GM, which has 2560"),
        ("8", 10, "load_index: operand 0 reads bytes 32 to 36 of GM, which has 32"),
    ],
)
def test_bounds_hold_of_every_index(place: str, count: int, told: str) -> None:
    [kernel] = parse_kernels(ROWS.replace("PLACE", place).replace("COUNT", str(count)), "k.dv.mir")
    with pytest.raises(MscError, match=rf"MSC1011(.|\n)*{told}"):
        check_kernel(kernel)


def test_bounds_that_hold_are_proved() -> None:
    [kernel] = parse_kernels(ROWS.replace("PLACE", "0").replace("COUNT", "10"), "k.dv.mir")
    check_kernel(kernel)
    assert any(isinstance(op, LoadIndexOp) for op in kernel.walk())


def test_embeddings_are_gathered_beside_what_adds_them(tmp_path: Path) -> None:
    path = tmp_path / "embedding.mir"
    path.write_text(
        "func.func @main(%w: tensor<100x64xf32>, %p: tensor<1x16x64xf32>, %i: tensor<1x16xi64>)"
        " -> tensor<1x16x64xf32> {\n"
        "  %g = ms.gather %w, %i {axis = 0} : (tensor<100x64xf32>, tensor<1x16xi64>) -> tensor<1x16x64xf32>\n"
        "  %s = ms.add %g, %p : (tensor<1x16x64xf32>, tensor<1x16x64xf32>) -> tensor<1x16x64xf32>\n"
        "  func.return %s : tensor<1x16x64xf32>\n}",
        "utf-8",
    )
    module = compile_model(str(path), CompileOptions(target=TARGET)).module
    kernels = [op for op in module.body.block.ops if isinstance(op, DavinciKernelOp)]
    assert len(kernels) == 2
    assert not [op.sym_name.data for op in kernels if scalar_cycles(op) is not None]
