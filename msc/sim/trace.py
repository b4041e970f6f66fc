"""A run as msopprof writes one: trace.json for Chrome and Perfetto, CSVs of instructions and of pipes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msc.sim.result import PIPES, PIPES_OF, PREFIXES, CoreResult, Event, SimulationResult
from msc.support.escaping import csv_text
from msc.targets.davinci_isa import Pipe

_PROCESSES: Mapping[Pipe, tuple[int, str, str]] = {
    Pipe.S: (10, "SCALAR", "startup"),
    Pipe.V: (30, "VECTOR", "cq_build_failed"),
    Pipe.M: (40, "CUBE", "background_memory_dump"),
    Pipe.MTE1: (50, "MTE1", "thread_state_running"),
    Pipe.MTE2: (60, "MTE2", "thread_state_iowait"),
    Pipe.MTE3: (70, "MTE3", "rail_response"),
    Pipe.FIX: (80, "FIXP", "thread_state_unknown"),
}
_ORDER = (Pipe.S, Pipe.MTE1, Pipe.M, Pipe.FIX, Pipe.MTE2, Pipe.V, Pipe.MTE3)
_FLAG_NAMES = {"set_flag": "SET_FLAG", "wait_flag": "WAIT_FLAG", "pipe_barrier": "BAR"}


def trace_json(result: SimulationResult) -> dict[str, object]:
    """The trace: a process for each pipe, a thread for each core, arrows from a flag's setting to its waiting."""
    events: list[dict[str, object]] = list(_metadata(result))
    counts: dict[tuple[str, int, int, int, int], int] = {}
    flows: dict[tuple[int, int, int, int, int], int] = {}
    for event in sorted(result.events, key=lambda e: (e.start, e.core, e.pipe)):
        events.append(_slice(result, event))
        if event.name in ("set_flag", "wait_flag"):
            turn = counts[event.name, event.core, *event.flag] = (
                counts.get((event.name, event.core, *event.flag), 0) + 1
            )
            flow = flows.setdefault((event.core, *event.flag, turn), len(flows))
            events.append(_arrow(result, event, flow))
    return {"displayTimeUnit": "ns", "generator": "msc sim", "traceEvents": events}


def _metadata(result: SimulationResult) -> Iterator[dict[str, object]]:
    for position, pipe in enumerate(_ORDER):
        pid, name, _ = _PROCESSES[pipe]
        yield {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}
        yield {"name": "process_sort_index", "ph": "M", "pid": pid, "args": {"sort_index": position}}
    lanes = {(event.pipe, event.core) for event in result.events}
    for pipe, core in sorted(lanes):
        pid, name = _PROCESSES[Pipe(pipe)][0], result.cores[core].name
        yield {"name": "thread_name", "ph": "M", "pid": pid, "tid": core, "args": {"name": name}}


def _slice(result: SimulationResult, event: Event) -> dict[str, object]:
    pid, _, colour = _PROCESSES[Pipe(event.pipe)]
    start = result.target.microseconds(event.start)
    return {
        "name": _FLAG_NAMES.get(event.name, event.name),
        "cname": colour,
        "ph": "X",
        "ts": start,
        "dur": result.target.microseconds(event.end - event.start),
        "pid": pid,
        "tid": event.core,
        "args": {"code": f"kernel.c:{event.line}", "detail": _detail(event), "process_bytes": event.bytes},
    }


def _detail(event: Event) -> str:
    if event.name not in ("set_flag", "wait_flag"):
        return f"{event.end - event.start:g} cycles"
    source, target, number = event.flag
    return f"PIPE:{Pipe(source).name}, TRIGGER PIPE:{Pipe(target).name}, FLAG ID:{number}"


def _arrow(result: SimulationResult, event: Event, flow: int) -> dict[str, object]:
    """The start of a flow at a flag's setting, its end at the waiting: the n-th one to the n-th."""
    setting = event.name == "set_flag"
    pid = _PROCESSES[Pipe(event.pipe)][0]
    start = result.target.microseconds(event.start if setting else event.end)
    arrow: dict[str, object] = {
        "name": _detail(event), "cat": "flag", "ph": "s" if setting else "f", "id": flow, "ts": start, "pid": pid,
        "tid": event.core,
    }  # fmt: skip
    return arrow if setting else {**arrow, "bp": "e"}


def instruction_csv(result: SimulationResult) -> str:
    """instr, addr, pipe, call_count, cycles, running_time(us), detail: one row a line of the kernel's C and pipe."""
    rows: dict[tuple[str, int, int], list[Event]] = {}
    for event in result.events:
        rows.setdefault((event.name, event.line, event.pipe), []).append(event)
    table: list[list[object]] = [["instr", "addr", "pipe", "call_count", "cycles", "running_time(us)", "detail"]]
    for (name, line, pipe), events in sorted(rows.items(), key=lambda item: (item[0][1], item[0][2])):
        cycles = sum(event.end - event.start for event in events)
        running = result.target.microseconds(_merged(events))
        table.append([name, line, Pipe(pipe).name, len(events), f"{cycles:.1f}", f"{running:.4f}", _detail(events[0])])
    return csv_text(table)


def _merged(events: list[Event]) -> float:
    """Cycles in which at least one of the events of a core runs, over all cores."""
    total, until = 0.0, dict[int, float]()
    for event in sorted(events, key=lambda e: e.start):
        start = max(event.start, until.get(event.core, 0.0))
        total += max(0.0, event.end - start)
        until[event.core] = max(event.end, until.get(event.core, 0.0))
    return total


def pipe_csv(result: SimulationResult) -> str:
    """One row a core: its time, and time and share of each pipe, as a profiler's PipeUtilization.csv.

    Cube and vector cores have columns of their own; those of the other kind are empty.
    """
    columns = [(kind, pipe) for kind in result.kinds for pipe in PIPES_OF[kind]]
    head = [f"{PREFIXES[k]}{p}_{figure}" for k, p in columns for figure in ("time(us)", "ratio", "instructions")]
    table: list[list[object]] = [["block_id", "sub_block_id", "kind", "time(us)", *head]]
    for core in result.cores:
        span = max(core.end - core.start, 1.0)
        row = [text for kind, pipe in columns for text in _pipe_cells(result, core, kind, pipe, span)]
        time = f"{result.target.microseconds(span):.3f}"
        table.append([core.block, f"{core.kind}{core.sub_block}", core.kind, time, *row])
    return csv_text(table)


def _pipe_cells(result: SimulationResult, core: CoreResult, kind: str, pipe: str, span: float) -> tuple[str, str, str]:
    if core.kind != kind:
        return "", "", ""
    busy, count = core.busy[PIPES.index(pipe)], core.instructions[PIPES.index(pipe)]
    return f"{result.target.microseconds(busy):.3f}", f"{busy / span:.4f}", str(count)
