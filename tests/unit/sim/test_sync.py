"""Flags: none of a right kernel can be left out, and `insert-sync` puts all that are needed where there are none."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from msc.backends.simulation.case_files import library_schedule
from msc.backends.simulation.kernels import kernel_text, parse_kernels, read_kernels
from msc.codegen.davinci.simulate import SimulationOptions, check_kernel, simulate_kernel
from msc.dialects.davinci import DavinciKernelOp, FlagOp, PipeBarrierOp
from msc.dialects.loop import ForOp
from msc.ir.verification import verify_module
from msc.lowering.ascend.insert_sync import InsertSync
from msc.lowering.ascend.matmul import matmul_kernel
from msc.lowering.ascend.sync_plan import Dependence, PipeAccess, dependences, orders, protected, reduced
from msc.lowering.ascend.vector import vector_kernel, vector_schedule
from msc.schedule.cube.products import MatmulShape
from msc.support.diagnostics import MscError
from msc.targets.davinci import davinci_target
from msc.targets.davinci_isa import Pipe

SAMPLES = Path(__file__).parents[3] / "samples" / "davinci"
B1 = davinci_target("ascend910b1")


def without_order(kernel: DavinciKernelOp) -> DavinciKernelOp:
    for op in list(kernel.walk()):
        if isinstance(op, FlagOp | PipeBarrierOp):
            op.detach()
            op.erase()
    for op in list(kernel.walk()):
        if isinstance(op, ForOp) and not list(op.body.block.ops):
            op.detach()
            op.erase()
    return kernel


def ordered(kernel: DavinciKernelOp) -> DavinciKernelOp:
    without_order(kernel)
    parent = kernel.parent_op()
    module = parent if isinstance(parent, ModuleOp) else ModuleOp([kernel])
    with pytest.raises(MscError):
        check_kernel(kernel)
    InsertSync().apply(Context(), module)
    verify_module(module)
    check_kernel(kernel)
    return kernel


def product() -> MatmulShape:
    return MatmulShape(128, 128, 256, transpose_b=True)


def kernels() -> dict[str, DavinciKernelOp]:
    wishes = {
        "joint": dict[str, Any](cores=1, base=(64, 64, 64)),
        "plain": dict[str, Any](cores=1, base=(64, 64, 64), big_packets=False),
        "packets": dict[str, Any](cores=2, base=(64, 64, 32), depth_a1=8, depth_b1=4, unit_flag=True),
    }
    made = {name: matmul_kernel(product(), library_schedule(product(), B1, **w), B1) for name, w in wishes.items()}
    for operation, more in (("gelu", {}), ("add", {"double_buffer": False})):
        schedule = vector_schedule(operation, 4000, "f16", B1, {"cores": 2, "elements": 512, **more})
        made[operation] = vector_kernel(operation, 4000, "f16", schedule, B1)
    for sample in ("add", "matmul"):
        [made[f"{sample}.dv.mir"]] = read_kernels(str(SAMPLES / f"{sample}.dv.mir"))
    return made


NAMES = ("joint", "plain", "packets", "gelu", "add", "add.dv.mir", "matmul.dv.mir")


def test_the_sample_multiplies() -> None:
    [kernel] = read_kernels(str(SAMPLES / "matmul.dv.mir"))
    check_kernel(kernel)
    a, b = (np.random.default_rng(0).integers(-4, 5, (256, 256)).astype(np.float16) for _ in range(2))
    c = np.zeros((256, 256), np.float16)
    simulate_kernel(kernel, SimulationOptions(functional=True), [a, b, c], [2])
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16))


@pytest.mark.parametrize("name", NAMES)
def test_inserted_flags_are_enough(name: str) -> None:
    ordered(kernels()[name])


@pytest.mark.parametrize(
    ("name", "inserted"),
    [
        *((name, False) for name in ("packets", "gelu", "add.dv.mir", "matmul.dv.mir")),
        *((name, True) for name in ("joint", "add", "matmul.dv.mir")),
    ],
)
def test_every_flag_and_barrier_is_needed(name: str, inserted: bool) -> None:
    kernel = kernels()[name]
    text = kernel_text(ordered(kernel) if inserted else kernel)
    lines = text.splitlines()
    places = [k for k, line in enumerate(lines) if "_flag " in line or "pipe_barrier" in line]
    assert len(places) >= 12
    check_kernel(parse_kernels(text, "k.dv.mir")[0])
    for k in places:
        with pytest.raises(MscError, match=r"MSC101[567]"):
            check_kernel(parse_kernels("\n".join(lines[:k] + lines[k + 1 :]), "k.dv.mir")[0])


def test_values_after_insertion() -> None:
    kernel = ordered(kernels()["joint"])
    a, b = np.random.default_rng(0).integers(-4, 5, (2, 128, 256)).astype(np.float16)
    c: NDArray[np.float16] = np.zeros((128, 128), np.float16)
    simulate_kernel(kernel, SimulationOptions(functional=True), [a, b, c], [2])
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16))


def test_too_few_event_ids() -> None:
    moves = "".join(
        f"  %b{k} = davinci.alloc at {k * 64} : !davinci.buffer<ub, f16, 32>\n"
        f"  davinci.copy_gm_to_ubuf %b{k}[0], %x[0] {{bursts = 1, length = 2}}\n"
        f"  davinci.vadds %b{k}[0], %b{k}[0], 1.0 {{repeat = 1}}\n"
        for k in range(9)
    )
    text = "davinci.kernel @k vector 1 (%x: !davinci.buffer<gm, f16, 64>) {\n" + moves + "}\n"
    [kernel] = parse_kernels(text, "k.dv.mir")
    module = kernel.parent_op()
    assert isinstance(module, ModuleOp)
    with pytest.raises(MscError, match="MSC1023"):
        InsertSync().apply(Context(), module)


def test_a_chain_of_flags_replaces_a_flag() -> None:
    steps = [
        frozenset({PipeAccess(Pipe.MTE2, "x", True)}),
        frozenset({PipeAccess(Pipe.V, "x", True)}),
        frozenset({PipeAccess(Pipe.MTE3, "x", False)}),
    ]
    wanted = dependences(steps, loop=False)
    assert len(wanted) == 3
    kept = reduced(wanted)
    assert [(d.source, d.target) for d in sorted(kept)] == [(Pipe.V, Pipe.MTE3), (Pipe.MTE2, Pipe.V)]
    assert all(orders(kept, d) for d in wanted)


def test_a_flag_in_a_loop_is_answered() -> None:
    forward = Dependence(Pipe.MTE2, Pipe.V, 0, 1, False)
    assert protected([forward], loop=False) == [forward]
    assert protected([forward], loop=True) == [forward, Dependence(Pipe.V, Pipe.MTE2, 1, 0, True)]
