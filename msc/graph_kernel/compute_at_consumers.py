"""Pass `compute-at-consumers`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp
from xdsl.passes import ModulePass

from msc.analysis.bytes import constant_bytes
from msc.analysis.kernel_model import kernel_model
from msc.analysis.kernels import kernels_in
from msc.analysis.properties import KERNELS, UNSCHEDULED
from msc.analysis.target import target_of
from msc.dialects.gk import COMPUTE_AT, KernelOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph_kernel.chain_cycles import ChainCost
from msc.graph_kernel.chains import chains_from, reader_of
from msc.graph_kernel.kernel_results import add_reason
from msc.graph_kernel.merged_kernels import merge
from msc.ir.contracts import Contract
from msc.schedule.kernel_cycles import KernelCycles
from msc.support.forked import Lines, results

GAIN = 0.9
"""The part of the time of kernels apart that one kernel must come to by the model: the model errs."""


@dataclass(frozen=True)
class ComputeAtConsumers(ModulePass):
    """Compute a producer at a loop of its consumer, a block at a time, where that takes fewer predicted cycles.

    Takes: kernels. Gives: the same kernels; of a chain of them, each the only reader of the one before, one kernel.
    What its members give each other is materialized (`gk.materialize`), a block at a time along one axis: one loop of
    all of them runs over it, outermost. The first kernel may sum; those behind it do not. Of all chains
    that begin with a kernel, along all axes, that is taken which saves most by the cost model, with the schedules that
    the kernels and the merged one would get (`chain_cycles`). Their reasons say what was predicted, taken or refused.
    A kernel that says at which loops of its reader it is to be computed (`gk.compute_at`, as those of `winograd` do)
    is merged with that in any case. Left alone: all others where calls decide sizes, or with several threads: each
    thread goes on with the rows that it wrote, and would fetch blocks along other axes from the others. So are kernels
    whose sums would round otherwise in blocks.
    Keeps: the meaning, bit by bit.
    """

    name = "compute-at-consumers"
    contract = Contract(
        requires=(KERNELS, UNSCHEDULED),
        runs_after={
            "winograd": "it marks producers that are computed at rows of tiles",
            "assign-layouts": "a block is a part of a stored tensor",
            "pack-operands": "a block is read in its stored layout",
        },
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        merge_asked(op)
        if has_open_sizes(op) or target_of(op).threads != 1:
            return
        cycles = KernelCycles.on_one_thread(op)
        between = constant_bytes(value for kernel in kernels_in(op) for value in kernel.inputs)
        _expect(op, cycles, between)
        merge_faster(op, cycles, between)
        cycles.loops.attach(op)


def merge_asked(module: ModuleOp) -> None:
    """Merge each kernel that says at which loops of its reader it is to be computed with that."""
    for kernel in kernels_in(module):
        if kernel.parent is not None and COMPUTE_AT in kernel.attributes:
            chain = list(_asked(kernel))
            merge(chain, [_axes(each) for each in chain[:-1]])


def merge_faster(module: ModuleOp, cycles: KernelCycles, constants: int) -> None:
    """Merge the chains of kernels that the model predicts to be faster as one, where constants have so many bytes."""
    for kernel in kernels_in(module):
        costs = _costs(kernel, cycles, constants)
        best = _best(costs)
        if best is not None:
            made = merge(best.chain.kernels, [[axis] for axis in best.chain.axes])
            add_reason(made, _taken(best))
        elif costs:
            add_reason(kernel, _refused(costs))


def _expect(module: ModuleOp, cycles: KernelCycles, constants: int) -> None:
    """Decide the loops that comparing chains takes, and predict what they cost, on several processors."""
    kernels, first = kernels_in(module), dict[object, int]()

    def decided(kernel: KernelOp) -> Lines:
        asked, known = len(cycles), len(cycles.loops)
        _best(_costs(kernel, cycles, constants))
        return [cycles.written(asked), *cycles.loops.written(known)]

    def key(kernel: KernelOp) -> object:
        return tuple(kernel_model(each).structure for chain in chains_from(kernel) for each in chain.kernels)

    distinct = (k for k, kernel in enumerate(kernels) if (of := key(kernel)) and first.setdefault(of, k) == k)
    for predicted, *loops in results(decided, kernels, distinct).values():
        cycles.read(predicted)
        cycles.loops.read(loops)


def _costs(kernel: KernelOp, cycles: KernelCycles, constants: int) -> list[ChainCost]:
    """Of all chains that begin with a kernel."""
    return [ChainCost(chain, cycles, constants) for chain in chains_from(kernel)]


def _axes(kernel: KernelOp) -> tuple[int, ...]:
    """The axes of its result, loops over which a kernel says it is to be computed at."""
    axes = kernel.attributes.get(COMPUTE_AT)
    return tuple(map(int, axes.get_values())) if isinstance(axes, DenseArrayBase) else ()


def _asked(kernel: KernelOp) -> Iterator[KernelOp]:
    """A kernel and those behind it, as far as each says at which loops of the next one it is to be computed."""
    yield kernel
    reader = reader_of(kernel) if _axes(kernel) else None
    if reader is not None:
        yield from _asked(reader)


def _best(costs: Sequence[ChainCost]) -> ChainCost | None:
    """The chain that saves most of those that save enough, can run in turn, and add as the kernels apart do."""
    fast = [cost for cost in costs if cost.may_gain(GAIN) and cost.merged < GAIN * cost.apart]
    best_first = sorted(fast, key=lambda cost: cost.merged - cost.apart)
    return next((cost for cost in best_first if cost.is_legal and cost.adds_alike), None)


def _taken(cost: ChainCost) -> str:
    names = ", ".join(f"'{kernel.label.data}'" for kernel in cost.chain.kernels[:-1])
    return (
        f"computes {names} a block at a time: {cost.merged:.0f} cycles predicted, {cost.apart:.0f} one after the other"
    )


def _refused(costs: Sequence[ChainCost]) -> str:
    """Why none of the chains that begin with a kernel is taken: the figures of the one that comes nearest."""
    predicted = [cost for cost in costs if cost.may_gain(GAIN)]
    best = min(predicted or costs, key=lambda cost: (cost.merged if predicted else cost.least) / cost.apart)
    name, apart = best.chain.kernels[-1].label.data, f"{best.apart:.0f} cycles predicted one after the other"
    if not predicted:
        return f"not computed at a loop of '{name}': {apart}, {best.least:.0f} if moving its result cost nothing"
    if best.merged < GAIN * best.apart:
        why = "its sums would round otherwise" if best.is_legal else "its blocks need later ones"
        return f"not computed at a loop of '{name}': {why}"
    return f"not computed at a loop of '{name}': {apart}, {best.merged:.0f} a block at a time"
