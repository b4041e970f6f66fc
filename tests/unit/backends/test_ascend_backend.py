"""Models on simulated Ascend machines compute what the interpreter does."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from xdsl.dialects.builtin import ModuleOp

from msc.analysis.kernel_model import kernel_model
from msc.analysis.target import target_of
from msc.codegen.davinci.simulate import simulate_kernel
from msc.dialects import gk
from msc.dialects.davinci import DavinciKernelOp
from msc.dialects.davinci.kernels import scalar_cycles
from msc.dialects.gk.attributes import GK_SCHEDULE
from msc.driver.compile import Step, compile_model
from msc.driver.options import CompileOptions
from msc.driver.reports.benchmark import Workload, benchmark
from msc.driver.verification.differential import Settings, verify_model
from msc.lowering.ascend.kernels import write_kernel
from msc.poly.dependences import dependences
from msc.schedule.schedule_kernels import illegal
from msc.support.diagnostics import MscError
from msc.targets.davinci import davinci_target
from tests.random_kernels_ascend.kernels import check, kernels
from tests.unit.simulated import Compared, compared

ROOT = Path(__file__).parents[3]
OPERATORS = ROOT / "tests" / "unit" / "backends" / "ascend_operators.mir"
NAMES = (
    *("add", "rows", "columns", "gelu", "tanh", "softmax", "mean", "max", "sum", "less", "select", "integers"),
    *("bytes", "bf16", "relu", "f16 sum", "transpose", "argmax", "cast", "and"),
)
TARGET = "ascend910b1"
BY_HAND = """
builtin.module attributes {ms.target = #ms.target<"ascend910b1", machine = "ascend910b1", threads = 1>} {
func.func @main(%x: tensor<64x96xf32>) -> tensor<64x96xf32> {
  %y = gk.kernel "exp" (%a = %x : tensor<64x96xf32>) -> tensor<64x96xf32> attributes {gk.schedule = #gk.schedule<[
    "axis i0_i1 6144: S0.0",
    "for i0_i1 tile 1536 parallel", "  for i0_i1 tile 384 pipeline 2", "    place in0, out0 in ub",
    "    for i0_i1 vector", "      run S0"]>} {
    %0 = ms.exp %a : (tensor<64x96xf32>) -> tensor<64x96xf32>
    gk.yield %0 : tensor<64x96xf32>
  }
  func.return %y : tensor<64x96xf32>
}
}
"""
EXP = """
func.func @main(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %y = ms.exp %x : (tensor<512x512xf32>) -> tensor<512x512xf32>
  func.return %y : tensor<512x512xf32>
}
"""
NORM = """
func.func @main(%x: tensor<480x256xf32>, %g: tensor<256xf32>, %b: tensor<256xf32>) -> tensor<480x256xf32> {
  %r = ms.layer_norm %x, %g, %b {begin_norm_axis = -1, epsilon = 1.0e-05} :
    (tensor<480x256xf32>, tensor<256xf32>, tensor<256xf32>) -> tensor<480x256xf32>
  func.return %r : tensor<480x256xf32>
}
"""
ON_THE_SCALAR_UNIT = [NAMES.index("argmax") + 1]
"""Kernels by number: the vector unit finds the places of an argmax in f32, and a cast behind it makes them i64."""


@pytest.fixture(scope="module")
def both() -> Compared:
    return compared(OPERATORS, TARGET, lambda rng, shape: rng.standard_normal(shape) * 3)


@pytest.mark.parametrize("name", NAMES)
def test_operators(name: str, both: Compared) -> None:
    found, expected = (side[NAMES.index(name)] for side in (both.found, both.expected))
    bound = 1e-2 if expected.dtype.itemsize == 2 else 1e-5
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=bound, atol=bound)


def test_the_vector_unit_takes_what_it_can(both: Compared) -> None:
    kernels = [op for op in both.module.body.block.ops if isinstance(op, DavinciKernelOp)]
    slow = [k for k, op in enumerate(kernels) if scalar_cycles(op) is not None]
    assert slow == ON_THE_SCALAR_UNIT
    assert [kernels[k].sym_name.data for k in slow] == ["k18_cast_core"]


def test_schedules_are_trees_that_isl_proves() -> None:
    seen = list[str]()

    def prove(step: Step, module: ModuleOp) -> None:
        for kernel in module.walk():
            if step.name == "convert-gk-to-davinci" and isinstance(kernel, gk.KernelOp):
                tree = kernel.attributes.get(GK_SCHEDULE)
                if isinstance(tree, gk.ScheduleAttr):
                    model = kernel_model(kernel)
                    assert illegal(model, dependences(model), tree.data, target_of(kernel).cores.abilities) is None
                    seen.append(kernel.label.data)

    compile_model(
        str(ROOT / "samples" / "attention" / "attention.mir"), CompileOptions(target=TARGET), after_step=prove
    )
    assert seen


def test_a_schedule_by_hand_decides_tiles_and_cores(tmp_path: Path) -> None:
    path = tmp_path / "rows.gk.mir"
    path.write_text(BY_HAND, "utf-8")
    [kernel] = [
        op
        for op in compile_model(str(path), CompileOptions(target=TARGET)).module.ops
        if isinstance(op, DavinciKernelOp)
    ]
    assert kernel.blocks.value.data == 4
    path.write_text(BY_HAND.replace("for i0_i1 vector", "for i0_i1"), "utf-8")
    with pytest.raises(MscError, match=r"MSC0408(.|\n)*its schedule cannot run on the vector unit"):
        compile_model(str(path), CompileOptions(target=TARGET))


def test_cores_that_start_earlier_take_more_tasks(tmp_path: Path) -> None:
    path = tmp_path / "exp.mir"
    path.write_text(EXP.replace("512x512", "4096x1000"), "utf-8")
    kernel = next(
        op
        for op in compile_model(str(path), CompileOptions(target=TARGET), stop_after="gk").module.walk()
        if isinstance(op, gk.KernelOp)
    )
    machine = davinci_target(TARGET)
    own = simulate_kernel(write_kernel(kernel, machine, "own"))
    schedule = kernel.attributes[GK_SCHEDULE]
    assert isinstance(schedule, gk.ScheduleAttr)
    tile, cores = int(re.findall(r"tile (\d+) parallel", schedule.lines[1])[0]), len(own.cores)
    share = -(-4096000 // (tile * cores)) * tile
    lines = [line.replace(f"tile {tile} parallel", f"tile {share} parallel") for line in schedule.lines]
    kernel.attributes[GK_SCHEDULE] = gk.ScheduleAttr.of_lines(lines)
    equal = simulate_kernel(write_kernel(kernel, machine, "equal"))
    assert own.path_bytes() == equal.path_bytes()
    assert own.cycles < 0.9 * equal.cycles


def test_a_scale_and_a_shift_are_one_instruction(tmp_path: Path) -> None:
    path = tmp_path / "norm.mir"
    path.write_text(NORM, "utf-8")
    both = compared(path, TARGET, lambda rng, shape: rng.standard_normal(shape) * 3)
    assert "davinci.vmadd" in str(both.module)
    np.testing.assert_allclose(both.found[0], both.expected[0], rtol=1e-5, atol=1e-5)


def test_bench_tells_the_time_of_the_machine(tmp_path: Path) -> None:
    path = tmp_path / "exp.mir"
    path.write_text(EXP, "utf-8")
    measured = benchmark(str(path), CompileOptions(target=TARGET), Workload({}))
    again = benchmark(str(path), CompileOptions(target=TARGET), Workload({}))
    assert measured.to_json() | {"measured_at": ""} == again.to_json() | {"measured_at": ""}
    assert measured.simulated == TARGET
    assert [kernel.name for kernel in measured.kernels] == ["k0_exp"]
    assert 2e-6 < measured.timing.median < 10e-6  # few cores end before the last of 48 would start, after 19.6 us


@settings(max_examples=3, deadline=None, derandomize=True, database=None, phases=(Phase.generate,))
@given(kernels())
def test_random_kernels(kernel: tuple[str, str]) -> None:
    """`python -m tests.random_kernels_ascend` tries many more."""
    check(*kernel)


def test_every_step_of_a_model_agrees_with_the_interpreter() -> None:
    path = str(ROOT / "samples" / "lenet5" / "lenet5.mir")
    checks = verify_model(path, CompileOptions(target=TARGET), Settings())
    assert not any(check.diverges for check in checks)
    assert checks[-1].stage == "c"
