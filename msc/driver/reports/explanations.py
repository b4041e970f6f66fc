"""Why a model became the kernels that it became: decisions of clustering and scheduling, kernel by kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.hints import isa

from msc.analysis.bytes import bytes_read, bytes_written, traffic
from msc.analysis.flops import flops
from msc.analysis.kernel_model import kernel_model
from msc.analysis.kernels import kernels_in
from msc.analysis.repetition import times_run
from msc.analysis.target import target_of
from msc.cost.prediction import KernelCost, Prediction
from msc.dialects.gk import KernelOp
from msc.dialects.gk.attributes import GK_FUNCTION, GK_PATTERN, GK_REASONS, GK_SCHEDULE_REASONS
from msc.dialects.loop.attributes import LOOP_ORIGIN, LOOP_REASONS
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.structure import ConstantOp
from msc.driver.compile import Step, compile_model
from msc.driver.options import CompileOptions
from msc.driver.reports.kernel_rates import KernelRate, KernelWork, MeasuredKernels
from msc.ir.locations import source_location
from msc.poly.dependences import dependences
from msc.poly.kernel_text import kernel_lines
from msc.poly.schedule_tree.nodes import Cut, Loop, Tree, all_blocks, loops, walk
from msc.poly.schedule_tree.text import to_lines
from msc.runtime.machine import Roofline
from msc.schedule.schedule_kernels import schedule_of
from msc.schedule.scheduled_model import scheduled_model
from msc.schedule.tuning.neighbours import Neighbourhood
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.escaping import shown
from msc.support.wording import counted
from msc.targets.machine import Machine

_ALTERNATIVES = 2
"""Schedules beside a kernel's own that are shown of each kind: tiles, vectors, orders, threads."""
_COLLECT_AFTER = "convert-gk-to-loop"
"""The pass after which kernels carry everything: what they were fused of, their schedule, their function."""


@dataclass(frozen=True)
class Alternative:
    """A schedule that takes one decision otherwise: which, and what the analytical model expects of it."""

    change: str
    predicted_cycles: int


@dataclass(frozen=True)
class KernelExplanation:
    """One kernel: what it is made of, why, how it is scheduled, what it costs."""

    function: str
    label: str
    pattern: str
    operations: tuple[str, ...]
    fusion: tuple[str, ...]
    statements: tuple[str, ...]
    """What the schedule's S0, S1 compute, over which dimensions S0.0, S0.1."""
    schedule: tuple[str, ...]
    """The lines of the tree that the kernel's code follows; empty where it follows none."""
    schedule_reasons: tuple[str, ...]
    flops: int
    bytes_read: int
    bytes_written: int
    predicted_cycles: int = 0
    predicted_instruction_cycles: int = 0
    predicted_memory_cycles: int = 0
    predicted_seconds: float | None = None
    measured_seconds: float | None = None
    rate: KernelRate | None = field(default=None)
    runs: int | None = 1
    """How often a call of the model runs it; None if that is computed."""
    predicted_share_of_peak: float = 0.0
    """Flops of the predicted cycles' multiply-adds: two vectors a cycle and thread, two flops a lane."""
    alternatives: tuple[Alternative, ...] = ()
    """Of a kernel that was asked for by name: other legal schedules, two of each kind, the fastest predicted first."""


def explain_model(
    model: str, options: CompileOptions, kernel: str | None = None, measured: MeasuredKernels | None = None
) -> tuple[KernelExplanation, ...]:
    """All kernels in the order of execution and then loops of kernels that became one function, or those whose
    function or label is `kernel`.

    Raises MSC0009 for a kernel that is not there, and MSC0008 for times of another model or number of threads.
    """
    found = list[KernelExplanation]()
    times = measured or MeasuredKernels({})

    def collect(step: Step, module: ModuleOp) -> None:
        if step.name == _COLLECT_AFTER:
            kernels = kernels_in(module)
            found.extend(_explain(op, times, kernel) for op in kernels)

    module = compile_model(model, options, after_step=collect).module
    times.check({k.function: (k.flops, k.bytes_read + k.bytes_written) for k in found}, target_of(module).threads)
    found += [_explain_loop(op) for op in module.ops if isinstance(op, FuncOp) and LOOP_REASONS in op.attributes]
    chosen = [k for k in found if kernel is None or kernel in (k.function, k.label)]
    if not chosen:
        names = {name for k in found for name in (k.function, k.label)}
        about = f"the model has no kernel '{kernel}'" if found else "the model is past the stage that tells of kernels"
        help_line = did_you_mean(kernel or "", names) or (f"its kernels: {', '.join(sorted(names))}" if names else None)
        raise MscError(Diagnostic("MSC0009", about, help=help_line))
    return tuple(chosen)


def _explain(kernel: KernelOp, measured: MeasuredKernels, asked: str | None) -> KernelExplanation:
    symbol, pattern = kernel.attributes.get(GK_FUNCTION), kernel.attributes.get(GK_PATTERN)
    function = symbol.string_value() if isinstance(symbol, SymbolRefAttr) else ""
    asked_for = target_of(kernel)
    target = asked_for.machine
    runs, total = times_run(kernel), measured.seconds.get(function)
    seconds = total / runs if total is not None and runs else None
    work = KernelWork(flops(kernel), traffic(kernel))
    explained = KernelExplanation(
        function=function,
        label=kernel.label.data,
        pattern=pattern.data if isinstance(pattern, StringAttr) else "",
        operations=tuple(_origin(op) for op in kernel.body.block.ops if _computes(op)),
        fusion=_strings(kernel, GK_REASONS),
        statements=tuple(kernel_lines(scheduled_model(kernel))),
        schedule=tuple(to_lines(schedule_of(kernel))),
        schedule_reasons=_strings(kernel, GK_SCHEDULE_REASONS),
        flops=work.flops,
        bytes_read=bytes_read(kernel),
        bytes_written=bytes_written(kernel),
        measured_seconds=seconds,
        rate=None if seconds is None else KernelRate.of(work, seconds, measured.machine),
        runs=runs,
    )
    if asked_for.accelerator:
        return explained
    cost, tree = KernelCost(kernel_model(kernel), target), schedule_of(kernel)
    prediction = cost.prediction(tree, asked_for.threads)
    return replace(
        explained,
        predicted_cycles=round(prediction.cycles),
        predicted_instruction_cycles=round(prediction.instruction_cycles),
        predicted_memory_cycles=round(prediction.memory_cycles),
        predicted_seconds=_predicted_seconds(prediction, target, measured.machine),
        predicted_share_of_peak=_share_of_peak(work.flops, prediction, target, asked_for.threads),
        alternatives=_alternatives(cost, tree, asked_for.threads) if asked in (function, kernel.label.data) else (),
    )


def _explain_loop(function: FuncOp) -> KernelExplanation:
    """A loop that threads could share: whether they do."""
    name, made_of = function.sym_name.data, _strings(function, LOOP_ORIGIN)
    label, reasons = name.partition("_")[2], _strings(function, LOOP_REASONS)
    return KernelExplanation(name, label, "loop", made_of, (), (), (), reasons, 0, 0, 0)


def _alternatives(cost: KernelCost, tree: Tree, threads: int) -> tuple[Alternative, ...]:
    """Where `msc tune` would look first."""
    others = Neighbourhood(cost.model, dependences(cost.model), cost.target, threads).of_each_kind(tree, _ALTERNATIVES)
    return tuple(
        Alternative(described_change(tree, other), round(cost.prediction(other, threads).cycles)) for other in others
    )


def _share_of_peak(flops: int, prediction: Prediction, target: Machine, threads: int) -> float:
    return flops / (prediction.cycles * (threads or target.cores) * target.flops)


def _predicted_seconds(prediction: Prediction, target: Machine, machine: Roofline | None) -> float | None:
    """Cycles at the clock at which the machine reached the peak of its vectors; a multiply-add is two operations."""
    if machine is None:
        return None
    clock = 2 * machine.multiply_adds_per_second / machine.threads / target.vector_flops
    return prediction.cycles / clock


def _computes(op: Operation) -> bool:
    return isinstance(op, MsOp) and not isinstance(op, ConstantOp)


def _origin(op: Operation) -> str:
    place = source_location(op)
    return f"{op.name} at {place}" if place is not None else op.name


def _strings(op: Operation, name: str) -> tuple[str, ...]:
    attribute = op.attributes.get(name)
    return tuple(item.data for item in attribute) if isa(attribute, ArrayAttr[StringAttr]) else ()


def explanation_text(kernels: tuple[KernelExplanation, ...]) -> str:
    """For people: a paragraph a kernel."""
    return "\n\n".join(map(_paragraph, kernels))


def _paragraph(kernel: KernelExplanation) -> str:
    lines = [f"{shown(kernel.function or kernel.label)} ({kernel.pattern}){_costs(kernel)}"]
    sections = (
        ("runs", _runs_line(kernel)),
        ("made of", kernel.operations),
        ("fusion", kernel.fusion),
        ("computes", kernel.statements),
        ("schedule", kernel.schedule),
        ("because", kernel.schedule_reasons),
        ("predicted", (_predicted_line(kernel),) if kernel.predicted_cycles else ()),
        ("instead", tuple(f"{a.predicted_cycles} cycles: {a.change}" for a in kernel.alternatives)),
        ("measured", _measured_lines(kernel)),
    )
    for title, items in sections:
        lines += [f"  {title if i == 0 else '':<9} {shown(item, 1000)}" for i, item in enumerate(items)]
    return "\n".join(lines)


def _costs(kernel: KernelExplanation) -> str:
    """Of a kernel; what loops of them cost stands with these."""
    if kernel.pattern == "loop":
        return ""
    intensity = kernel.flops / max(1, kernel.bytes_read + kernel.bytes_written)
    moved = f"{kernel.bytes_read} bytes in, {kernel.bytes_written} bytes out"
    return f": {kernel.flops} flops, {moved}, {intensity:.2f} flops a byte"


def _runs_line(kernel: KernelExplanation) -> tuple[str, ...]:
    """How often a loop runs the kernel; costs are those of one run."""
    if kernel.runs == 1:
        return ()
    return (
        "in a loop, a computed number of times"
        if kernel.runs is None
        else f"{counted(kernel.runs, 'time')} a call, in a loop",
    )


def _predicted_line(kernel: KernelExplanation) -> str:
    parts = f"{kernel.predicted_instruction_cycles} of instructions, {kernel.predicted_memory_cycles} of memory"
    time = "" if kernel.predicted_seconds is None else f"; {kernel.predicted_seconds * 1e6:.2f} us"
    return f"{kernel.predicted_cycles} cycles: {parts}{time}; {kernel.predicted_share_of_peak:.1%} of peak"


def _measured_lines(kernel: KernelExplanation) -> tuple[str, ...]:
    seconds, rate = kernel.measured_seconds, kernel.rate
    if seconds is None or rate is None:
        return ()
    line = f"{seconds * 1e6:.2f} us, {rate.gflops_per_second:.2f} GFLOP/s, {rate.gbytes_per_second:.2f} GB/s"
    if rate.share_of_peak is None or rate.share_of_bandwidth is None:
        return (line,)
    return (line, f"{rate.share_of_peak:.1%} of peak, {rate.share_of_bandwidth:.1%} of the memory's bandwidth")


# The differences between two schedules, in words.
_MARKS = (
    ("unroll", "unrolled", "nothing unrolled"),
    ("parallel", "threads along", "one thread"),
    ("vector", "vectors along", "no vectors"),
)


def described_change(before: Tree, after: Tree) -> str:
    """The decisions of `after` that `before` takes otherwise: `oc tile 8, ow tile 3` or `order: kw, kh`."""
    return ", ".join(_changes(before, after)) or "the same"


def _changes(before: Tree, after: Tree) -> Iterator[str]:
    for axis in after.axes:
        old, new = _tiles(before, axis.name), _tiles(after, axis.name)
        if old != new:
            yield f"{axis.name} tile {' tile '.join(map(str, new))}" if new else f"{axis.name} not tiled"
    cuts = _cuts(before), _cuts(after)
    if cuts[0] != cuts[1]:
        yield from (
            (f"tail of {name} from {at} along {along}" for name, at, along in cuts[1]) if cuts[1] else ("no tail",)
        )
    kept = set(_order(before)) & set(_order(after))
    old, new = ([name for name in _order(tree) if name in kept] for tree in (before, after))
    if old != new:
        yield f"order: {', '.join(new)}"
    for mark, some, none in _MARKS:
        old, new = _marked(before, mark), _marked(after, mark)
        if old != new:
            yield f"{some} {' and '.join(new)}" if new else none
    old, new = _prefetched(before), _prefetched(after)
    if old != new:
        yield f"prefetch {' and '.join(new)}" if new else "nothing prefetched"


def _prefetched(tree: Tree) -> tuple[str, ...]:
    found = (each for block in all_blocks(tree.body) for each in block.prefetches)
    return tuple(dict.fromkeys(f"{each.array} ahead {each.ahead} of {each.axis}" for each in found))


def _tiles(tree: Tree, axis: str) -> tuple[int, ...]:
    """The tiles of an axis, the largest first."""
    sizes = {loop.tile for loop in loops(tree) if loop.axis == axis and loop.tile is not None}
    return tuple(sorted(sizes, reverse=True))


def _cuts(tree: Tree) -> tuple[tuple[str, int, str], ...]:
    found = [node for node in walk(tree.body) if isinstance(node, Cut)]
    return tuple(dict.fromkeys((cut.axis, cut.at, _carrier(cut)) for cut in found))


def _carrier(cut: Cut) -> str:
    inside = (node for node in walk(cut.tail) if isinstance(node, Loop) and node.mark == "vector")
    return next((loop.axis for loop in inside), "no vector")


def _order(tree: Tree) -> tuple[str, ...]:
    """The axes of loops that are not in a register tile, in the order of the text."""
    outside = (loop.axis for loop in loops(tree) if loop.mark not in ("vector", "unroll"))
    return tuple(dict.fromkeys(outside))


def _marked(tree: Tree, mark: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(loop.axis for loop in loops(tree) if loop.mark == mark))
