"""What `msc parallel plan` prints and writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from msc.dialects.ms.attributes import MS_MESH, MS_SHARD
from msc.driver.models.entry import entry_function
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions, Dim
from msc.graph.expand.expand_composites import ExpandComposites
from msc.graph.inline_calls import InlineCalls
from msc.ir.locations import format_module
from msc.ir.typed import is_tensor
from msc.parallel.marks import mark_text
from msc.planner import strategies
from msc.planner.cases import cases_text, memory_errors, predict, read_cases
from msc.planner.model_plan import OperatorPlan, ranks_text
from msc.planner.operators import OperatorGraph, graph_of, operations
from msc.planner.pipeline import picture
from msc.planner.stages import StagedPlan
from msc.support.diagnostics import raise_any
from msc.support.files import read_source
from msc.support.outputs import OutputGuard, OutputSet
from msc.support.plain_files import opened
from msc.support.wording import memory_text, seconds_text

_GENERATOR = "msc parallel plan"
_MARK = f'{{\n  "generator": "{_GENERATOR}"'.encode()
_TRACE_MARK = b'{"generator": "msc parallel plan", "traceEvents": ['
MARKED = "// Written by msc parallel plan: layouts of operands, for propagate-layouts and partition.\n"
_SHOWN = 40
"""Operators and moves of a text; JSON has all."""
_LANES = 64
"""Ranks of a trace at most: others do the same as one of these."""


def report_cases(path: Path, json_out: str | None, force: bool, tell: Callable[[str], object]) -> None:
    """Predict a file of cases: a table, or JSON if `json_out` is `-`; a file of that name gets it too.

    Raises MSC1120 to MSC1124, at the end MSC1122 for cases that were not published and need more memory than there is,
    and MSC0004, MSC0010 and MSC0011 for a file that cannot be written.
    """
    outcomes = [predict(case, path.parent) for case in read_cases(path)]
    figures: dict[str, object] = {"generator": _GENERATOR, "cases": [each.to_json() for each in outcomes]}
    written = _written(figures, json_out, OutputGuard((path,), force))
    tell(cases_text(outcomes) if written is None else written)
    raise_any(memory_errors(outcomes))


def read_module(model: str, dims: Mapping[str, Dim], expanded: bool = False) -> ModuleOp:
    """A model's module with calls inlined and, if wanted, composite operations expanded. Raises as reading it."""
    module = read_model(model, CompileOptions(dims=dims)).module
    InlineCalls().apply(Context(), module)
    if expanded:
        ExpandComposites().apply(Context(), module)
    return module


def mark(module: ModuleOp, plan: StagedPlan) -> None:
    """Have each operation say how its operands lie, and the module its mesh, for propagate-layouts and partition."""
    module.attributes[MS_MESH] = StringAttr(str(plan.mesh))
    planned = [op for stage in plan.stages for op in stage.operators]
    for op, found in zip(operations(entry_function(module)), planned, strict=True):
        layouts = iter(found.layouts)
        op.attributes[MS_SHARD] = mark_text([next(layouts) if is_tensor(v.type) else None for v in op.operands])


def marked_text(module: ModuleOp) -> str:
    """The file of a module with marks."""
    return MARKED + format_module(module)


def read_graph(module: ModuleOp, strategy: str | None = None) -> OperatorGraph:
    """The operators of a module's entry function, cut as a file of strategies says, if one is given.

    Raises MSC1125 for a file that does not fit.
    """
    graph = graph_of(entry_function(module))
    if strategy is None:
        return graph
    found = strategies.read_strategies(read_source(Path(strategy)), strategy)
    return strategies.with_strategies(graph, found, strategy)


def report_plan(
    plan: StagedPlan, name: str, json_out: str | None, trace: str | None, strategy: str | None, guard: OutputGuard
) -> str:
    """The text of a model's plan, or its JSON if `json_out` is `-`; files for the others that are named."""
    if trace is not None or strategy is not None:
        with OutputSet(guard) as files:
            if trace is not None:
                files.write(Path(trace), trace_text(plan), is_plan_trace)
            if strategy is not None:
                cuts = ((op.name, op.operands) for stage in plan.stages for op in stage.operators)
                files.write(Path(strategy), strategies.strategies_text(cuts), is_strategy)
    written = _written({"generator": _GENERATOR, **plan_json(plan, name)}, json_out, guard)
    return plan_text(plan, name) if written is None else written


def _written(figures: dict[str, object], out: str | None, guard: OutputGuard) -> str | None:
    """The JSON to print instead of text, if it is wanted there."""
    if out is None:
        return None
    text = json.dumps(figures, indent=2) + "\n"
    if out == "-":
        return text
    with OutputSet(guard) as files:
        files.write(Path(out), text, is_plan)
    return None


def is_plan(path: Path) -> bool:
    """Whether a file has figures of a plan. Raises OSError."""
    return _begins(path, _MARK)


def is_marked(path: Path) -> bool:
    """Whether a file is a model with the marks of a plan. Raises OSError."""
    return _begins(path, MARKED.encode())


def is_plan_trace(path: Path) -> bool:
    """Whether a file is the trace of a plan. Raises OSError."""
    return _begins(path, _TRACE_MARK)


def is_strategy(path: Path) -> bool:
    """Whether a file has strategies. Raises OSError."""
    return _begins(path, strategies.MARK.encode())


def _begins(path: Path, mark: bytes) -> bool:
    with opened(path) as file:
        return file.read(len(mark)) == mark


def plan_json(plan: StagedPlan, name: str) -> dict[str, object]:
    """A model's plan as JSON."""
    return {
        "model": name,
        "cluster": plan.stages[0].cluster.name,
        "devices": plan.devices,
        "mesh": dict(plan.mesh.axes),
        "micro_batches": plan.micro_batches,
        "schedule": plan.schedule,
        "step_s": plan.step,
        "bubble": plan.bubble,
        "seconds": plan.seconds,
        "bytes_per_device": plan.sent,
        "memory_per_device": round(plan.fullest.peak),
        "memory": {cause: round(bytes_) for cause, bytes_ in plan.fullest.memory.items()},
        "stages": [
            {
                "operators": [_operator_json(op) for op in stage.operators],
                "redistributions": [{**vars(move), "bytes": move.bytes} for move in stage.moves],
                "gradient_tail_s": stage.tails,
                "bucket_bytes": stage.bucket,
                "lost": [{"plan": what, "step_s": seconds, "why": why} for what, seconds, why in stage.lost],
            }
            for stage in plan.stages
        ],
    }


def _operator_json(op: OperatorPlan) -> dict[str, object]:
    calls = [{"kind": call.kind, "bytes": round(call.bytes), "why": call.why} for call in op.calls]
    return {
        "name": op.name,
        "kind": op.kind,
        "strategy": op.operands,
        "result": op.result,
        "seconds": op.seconds,
        "collectives": calls,
    }


def plan_text(plan: StagedPlan, name: str) -> str:
    """A model's plan for people."""
    first, fullest = plan.stages[0], plan.fullest
    kind = "a training step" if first.wish.train else "a call"
    lines = [
        f"{name} on {plan.devices} devices of {first.cluster.name} ({first.cluster.title}): {kind} takes "
        f"{seconds_text(plan.step)}",
        "",
        f"mesh {plan.mesh}",
        ranks_text(plan.mesh),
        "",
        *_table("time", {cause: seconds_text(seconds) for cause, seconds in plan.seconds.items()}),
        "",
        *_table("memory of a rank", {cause: memory_text(bytes_) for cause, bytes_ in fullest.memory.items()}),
        f"  {'together':30} {memory_text(fullest.peak):>10} of {memory_text(first.cluster.free_memory)}",
        f"  {'passed to collectives':30} {memory_text(plan.sent):>10}",
    ]
    if len(plan.stages) > 1:
        lines += [
            "",
            f"pipeline: {plan.micro_batches} micro-batches, {plan.schedule}, bubble {100 * plan.bubble:.1f} %",
        ]
        lines.append(picture(plan.events))
    for number, stage in enumerate(plan.stages):
        title = f"stage {number}: " if len(plan.stages) > 1 else ""
        lines += ["", f"{title}operators, and into how many parts each dimension of operands and result is cut"]
        lines += _shortened([_operator_text(op) for op in stage.operators])
        if stage.moves:
            lines += ["", f"{title}redistributions"]
            lines += _shortened(
                [
                    f"  {move.tensor:20} {_parts(move.source)} -> {_parts(move.target)} for {move.consumer}: "
                    f"{', '.join(kind for kind, _ in move.steps) or 'cut'}, {memory_text(move.bytes)}, "
                    f"{seconds_text(move.seconds)}"
                    for move in stage.moves
                ]
            )
        if any(stage.tails.values()):
            told = {how: seconds_text(seconds) for how, seconds in stage.tails.items()}
            told["buckets"] += f", {memory_text(stage.bucket)} each"
            lines += ["", *_table(f"{title}gradients after the backward pass, if reduced in", told)]
        if stage.lost:
            lines += ["", f"{title}plans that lost"]
            lines += [f"  {what}: {seconds_text(seconds)}; {why}" for what, seconds, why in stage.lost]
    return "\n".join(lines) + "\n"


def _table(title: str, rows: dict[str, str]) -> Iterator[str]:
    yield title
    yield from (f"  {name:30} {value:>10}" for name, value in rows.items())


def _shortened(lines: Sequence[str]) -> Iterable[str]:
    more = [f"  ... {len(lines) - _SHOWN} more; --json has all"] if len(lines) > _SHOWN else []
    return [*lines[:_SHOWN], *more]


def _operator_text(op: OperatorPlan) -> str:
    calls = "".join(f"; {call.kind} of {call.why}, {memory_text(call.bytes)}" for call in op.calls)
    operands = ", ".join(map(_parts, op.operands))
    return f"  {op.name:24} {operands} -> {_parts(op.result)}  {seconds_text(op.seconds)}{calls}"


def _parts(parts: Sequence[int]) -> str:
    return "[" + ",".join(map(str, parts)) + "]"


def trace_text(plan: StagedPlan) -> str:
    """The plan's step as a trace for Perfetto and chrome://tracing: a lane for each rank."""
    events: list[dict[str, object]] = []
    each = plan.stages[0].mesh.size
    for rank in range(min(plan.devices, _LANES)):
        stage = rank // each
        events.append({"name": "thread_name", "ph": "M", "pid": 1, "tid": rank, "args": {"name": f"rank {rank}"}})
        last = 0.0
        for event in plan.events:
            if event.stage == stage and event.end > event.start:
                name = f"{'backward' if event.backward else 'forward'} {event.micro_batch}"
                events.append(_slice(name, rank, event.start, event.end - event.start))
                last = max(last, event.end)
        for cause in ("gradients, exposed", "optimizer"):
            seconds = plan.stages[stage].seconds.get(cause, 0.0)
            if seconds:
                events.append(_slice(cause, rank, last, seconds))
                last += seconds
    return json.dumps({"generator": _GENERATOR, "traceEvents": events, "displayTimeUnit": "ms"}) + "\n"


def _slice(name: str, rank: int, start: float, seconds: float) -> dict[str, object]:
    place = {"ph": "X", "pid": 1, "tid": rank, "ts": start * 1e6, "dur": seconds * 1e6}
    return {"name": name, "cat": "plan", **place}
