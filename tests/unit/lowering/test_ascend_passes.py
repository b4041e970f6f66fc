"""Vector kernels pass over UB as seldom as their operators allow: what instructions take together, and what binds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msc.codegen.davinci.simulate import simulate_kernel
from msc.dialects.davinci import DavinciKernelOp, QueueOp
from msc.dialects.davinci.kernels import scalar_cycles
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from tests.unit.simulated import Compared, compared

MODEL = Path(__file__).with_name("ascend_passes.mir")
ROWS = 4096
_SOFTMAX = "%r = ms.softmax %x : (tensor<{t}>) -> tensor<{t}>"
_NORM = "%r = ms.layer_norm %x, %g, %b : (tensor<{t}>, tensor<{v}>, tensor<{v}>) -> tensor<{t}>"


@pytest.fixture(scope="module")
def both() -> Compared:
    return compared(MODEL, "ascend910b1", lambda rng, shape: rng.standard_normal(shape) + 1)


@pytest.mark.parametrize(
    ("k", "tolerance"), [*enumerate((2e-6, 2e-3, 1e-5, 2e-6, 2e-6, 2e-6))],
    ids=["sum of products", "softmax f16", "layer norm", "scaled rows", "scaled", "long rows"],
)  # fmt: skip
def test_results(k: int, tolerance: float, both: Compared) -> None:
    found, expected = (np.asarray(values[k], np.float64) for values in (both.found, both.expected))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("kernel", "instruction", "without"),
    [
        ("k0_mul_reduce_sum", "vmla", "vmul"),
        ("k2_layer_norm", "vmla", "vmuls"),
        ("k2_layer_norm", "vaxpy", "vmuls"),
        ("k4_mul_add", "vaxpy", "vmuls"),
    ],
)
def test_products_and_sums_are_one_instruction(kernel: str, instruction: str, without: str, both: Compared) -> None:
    names = _instructions(_kernel(both, kernel))
    assert instruction in names
    assert without not in names


def test_an_input_is_converted_once(both: Compared) -> None:
    kernel = _kernel(both, "k1_softmax")
    wide = [op for op in kernel.walk() if isinstance(op, QueueOp) and op.instruction.name == "vconv"]
    moved = [op for op in kernel.walk() if isinstance(op, QueueOp) and op.instruction.name == "copy_gm_to_ubuf_align"]
    arrived = {op.buffers[0] for op in moved}
    assert len([op for op in wide if op.buffers[1] in arrived]) == len(moved)
    assert {op.buffers[0] for op in wide} >= arrived, "results leave from where inputs came"


def test_rows_of_which_ub_holds_one_have_one_buffer(both: Compared) -> None:
    kernel = _kernel(both, "k5_softmax")
    moved = [op for op in kernel.walk() if isinstance(op, QueueOp) and op.instruction.name == "copy_gm_to_ubuf_align"]
    assert len({op.buffers[0] for op in moved}) == 1
    assert all(scalar_cycles(op) is None for op in both.module.body.block.ops if isinstance(op, DavinciKernelOp))


def _kernel(both: Compared, name: str) -> DavinciKernelOp:
    found = [op for op in both.module.body.block.ops if isinstance(op, DavinciKernelOp)]
    return next(op for op in found if op.sym_name.data == f"{name}_core")


def _instructions(kernel: DavinciKernelOp) -> list[str]:
    return [op.instruction.name for op in kernel.walk() if isinstance(op, QueueOp)]


@pytest.mark.parametrize(
    ("operator", "dtype", "passes"),
    [(_SOFTMAX, "f32", 6), (_SOFTMAX, "f16", 8), (_NORM, "f32", 9)],
    ids=["softmax f32", "softmax f16", "layer norm f32"],
)
def test_what_binds_is_used_by_four_fifths(operator: str, dtype: str, passes: int, tmp_path: Path) -> None:
    """`passes` are cycles of the vector unit for 64 elements; L2 binds where it takes longer: a f32 softmax."""
    matrix, vector = f"{ROWS}x{ROWS}x{dtype}", f"{ROWS}x{dtype}"
    head = f"func.func @main(%x : tensor<{matrix}>, %g : tensor<{vector}>, %b : tensor<{vector}>) -> tensor<{matrix}>"
    model = tmp_path / "model.mir"
    model.write_text(f"{head} {{\n  {operator.format(t=matrix, v=vector)}\n  func.return %r : tensor<{matrix}>\n}}\n")
    module = compile_model(str(model), CompileOptions(target="ascend910b1"), stop_after="davinci").module
    kernel = [op for op in module.body.block.ops if isinstance(op, DavinciKernelOp)][-1]
    result, machine = simulate_kernel(kernel), kernel.machine
    computing = passes * ROWS * ROWS / 64 / machine.cores.vector
    moving = 2 * ROWS * ROWS * np.dtype(dtype.replace("f", "float")).itemsize / machine.shared.l2_mixed
    mean = sum(core.end - core.start for core in result.cores) / len(result.cores)
    assert max(computing, moving) >= 0.8 * mean
