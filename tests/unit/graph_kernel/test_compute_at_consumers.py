"""Pass `compute-at-consumers`: what is taken is predicted to be faster, adds alike, and is scheduled once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.utils.hints import isa

from msc.analysis.kernel_model import kernel_model
from msc.analysis.target import target_of
from msc.cost.prediction import KernelCost
from msc.dialects.gk import KernelOp
from msc.dialects.gk.attributes import GK_REASONS
from msc.driver.compile import compile_model, generate_c
from msc.driver.options import CompileOptions
from msc.graph_kernel import compute_at_consumers
from msc.graph_kernel.chain_cycles import ChainCost
from msc.graph_kernel.chains import Chain, chains_from
from msc.graph_kernel.compute_at_consumers import GAIN, ComputeAtConsumers
from msc.ir.locations import format_module
from msc.runtime.artifact import load
from msc.runtime.build import BuildOptions, build
from msc.schedule.kernel_cycles import KernelCycles
from msc.schedule.known_loops import KnownLoops
from msc.schedule.schedule_kernels import ScheduleKernels, schedule_of
from msc.support import forked
from msc.targets.catalogue import machine_named
from tests.unit.compiled.programs import QUICK, parsed
from tests.unit.graph_kernel.graphs import Array, for_machine

MACHINE = "x86-64-v4"


def chain(depth: int = 16, size: int = 512) -> ModuleOp:
    """A product, its transpose, and a kernel that reads that."""
    y = f"tensor<{size}x{size}xf32>"
    return for_machine(
        parsed(f"""func.func @main(%x: tensor<{size}x{depth}xf32>, %w: tensor<{depth}x{size}xf32>) -> {y} {{
  %0 = gk.kernel "product" (%a = %x : tensor<{size}x{depth}xf32>, %b = %w : tensor<{depth}x{size}xf32>) -> {y} {{
    %p = ms.matmul %a, %b
    gk.yield %p : {y}
  }}
  %1 = gk.kernel "turn" (%a = %0 : {y}) -> {y} {{
    %t = ms.transpose %a {{perm = [1, 0]}}
    gk.yield %t : {y}
  }}
  %2 = gk.kernel "abs" (%a = %1 : {y}) -> {y} {{
    %e = ms.abs %a
    gk.yield %e : {y}
  }}
  func.return %2 : {y}
}}"""),
        MACHINE,
    )


def kernels(module: ModuleOp) -> list[KernelOp]:
    return [op for op in module.walk() if isinstance(op, KernelOp)]


def costs(module: ModuleOp) -> list[ChainCost]:
    """Of all chains that begin with the first kernel."""
    target = target_of(module)
    cycles = KernelCycles(target, KnownLoops(target.machine, target.threads))
    return [ChainCost(each, cycles, 0) for each in chains_from(kernels(module)[0])]


def lengths(chains: Iterator[Chain]) -> list[tuple[int, tuple[int, ...]]]:
    return [(len(each.kernels), each.axes) for each in chains]


def test_chains_run_along_each_axis_as_far_as_one_loop_does() -> None:
    product, turn, last = kernels(chain())
    assert lengths(chains_from(product)) == [(2, (0,)), (2, (1,)), (3, (1, 0))]
    assert lengths(chains_from(turn)) == [(2, (0,))]
    assert lengths(chains_from(last)) == []


def test_long_sums_begin_no_chain() -> None:
    assert lengths(chains_from(kernels(chain(depth=1024))[0]))
    assert not lengths(chains_from(kernels(chain(depth=1025))[0]))


def test_what_another_process_predicted_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for the kernels apart, with what they hand on and without, nor for one of all."""
    asked = costs(chain())
    found = [(cost.apart, cost.least, cost.merged) for cost in asked]
    others = costs(chain())
    for before, after in zip(asked, others, strict=True):
        after.cycles.read(before.cycles.written(0))
        assert after.cycles.written(0) == before.cycles.written(0)
    monkeypatch.setattr(KernelCost, "__init__", None)
    assert [(cost.apart, cost.least, cost.merged) for cost in others] == found


@pytest.mark.parametrize("depth", [4, 16, 128, 1024])
def test_what_is_taken_saves_most(depth: int) -> None:
    module = chain(depth)
    fast = [cost for cost in costs(module) if cost.merged < GAIN * cost.apart]
    best = max(fast, key=lambda cost: cost.apart - cost.merged, default=None)
    taken = () if best is None else best.chain.kernels
    labels = [kernel.label.data for kernel in taken]
    ComputeAtConsumers().apply(Context(), module)
    (reason,) = [r for k in kernels(module) for r in reasons(k) if "'product'" in r or k.label.data == "product"]
    assert reason.startswith("computes" if best else "not computed")
    assert all(f"'{label}'" in reason for label in labels[:-1])
    if best is not None:
        assert f"{best.merged:.0f} cycles predicted, {best.apart:.0f} one after the other" in reason


def reasons(kernel: KernelOp) -> list[str]:
    found = kernel.attributes.get(GK_REASONS)
    return [each.data for each in found] if isa(found, ArrayAttr[StringAttr]) else []


@pytest.mark.parametrize("depth", [4, 64, 1024])
def test_kernels_whose_steps_cost_nothing_are_a_bound(depth: int) -> None:
    """What is not scheduled for it could not be taken."""
    for cost in costs(chain(depth)):
        assert cost.least <= cost.apart
        assert cost.may_gain(GAIN) or cost.merged >= GAIN * cost.apart


def test_members_work_one_after_the_other() -> None:
    module = chain()
    ComputeAtConsumers().apply(Context(), module)
    ScheduleKernels().apply(Context(), module)
    (kernel,) = kernels(module)
    found = KernelCost(kernel_model(kernel), machine_named(MACHINE)).prediction(schedule_of(kernel), 1)
    assert len(found.members) == 3
    assert found.cycles == sum(member.cycles for member in found.members)
    assert found.instruction_cycles == pytest.approx(sum(member.instruction_cycles for member in found.members))
    for (_, whole), *parts in zip(found.levels, *(member.levels for member in found.members), strict=True):
        assert whole == pytest.approx(sum(cycles for _, cycles in parts))


def test_what_was_predicted_is_scheduled_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """`schedule-kernels` asks for no loops that the pass has decided."""
    monkeypatch.setattr(forked, "_processors", lambda: 1)
    module = chain()
    ComputeAtConsumers().apply(Context(), module)
    known = KnownLoops.taken(module, machine_named(MACHINE), 1)
    found = {structure for (structure, *_) in known.written(0)[::3]}
    assert {kernel_model(kernel).structure for kernel in kernels(module)} <= found


@pytest.mark.parametrize("depth", [16, 300])
def test_results_keep_their_bits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, depth: int) -> None:
    """As do those of kernels apart, computed by C."""
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape).astype(np.float32) for shape in ((256, depth), (depth, 256))]
    found = list[Array]()
    for gain in (0.0, 4.0):
        monkeypatch.setattr(compute_at_consumers, "GAIN", gain)
        module = chain(depth, 256)
        ComputeAtConsumers().apply(Context(), module)
        assert any(kernel.materialized for kernel in kernels(module)) == bool(gain)
        path = tmp_path / f"{gain:.0f}.gk.mir"
        path.write_text(format_module(module), encoding="utf-8")
        compilation = compile_model(str(path), CompileOptions(march="native"))
        out = path.with_suffix(".so")
        program = build(generate_c(compilation), compilation.parameters(), "so", out, BuildOptions(QUICK))
        found += load(program).results(*given)
    assert np.array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], np.abs(given[0] @ given[1]).T, rtol=1e-4, atol=1e-4)
