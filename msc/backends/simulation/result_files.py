"""The files of `msc sim`: figures, traces, tables and pictures. They replace no file of a user's."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from msc.sim.result import CoreResult, Event, SimulationResult
from msc.sim.trace import instruction_csv, pipe_csv, trace_json
from msc.support.escaping import file_name, markup_text
from msc.support.files import file_to_write
from msc.support.folder_outputs import FolderOutput, filled_folder
from msc.support.marks import is_marked, marked
from msc.support.outputs import OutputGuard, OutputSet
from msc.support.plain_files import content
from msc.targets.davinci_isa import Pipe

_MAXIMUM_BYTES = 1 << 28
_KEYS = ({"kernel", "target", "cycles", "task_us"}, {"kernels"}, {"cases", "same_order"})
"""What the JSON of one kernel, of several and of cases holds."""


@dataclass(frozen=True)
class Outputs:
    """Where results go: paths, or None; JSON to `-` is printed."""

    json: str | None = None
    trace: str | None = None
    csv: str | None = None
    svg: str | None = None
    window: tuple[float, float] | None = None
    force: bool = False

    @property
    def traced(self) -> bool:
        """Whether instructions have to be recorded."""
        return any(path is not None for path in (self.trace, self.csv, self.svg))


def write_results(results: dict[str, SimulationResult], outputs: Outputs, inputs: tuple[Path, ...]) -> None:
    """Write what `outputs` names, of kernels by names made of theirs, but the figures.

    The trace and the picture of several kernels are files for each: `t.json` becomes `t_add.json`. Raises MSC0004, and
    MSC0010 and MSC0011 (`Guard.check`).
    """
    guard = OutputGuard(inputs, outputs.force)
    with ExitStack() as stack:
        files = stack.enter_context(OutputSet(guard))
        tables: FolderOutput | None = None
        if outputs.csv is not None:
            tables = stack.enter_context(filled_folder(Path(outputs.csv), guard, is_shared=True))
        taken = set[str]()
        for kernel, result in results.items():
            name = file_name(kernel, taken)
            taken.add(name.lower())
            suffix = f"_{name}" if len(results) > 1 else ""
            if outputs.trace is not None:
                files.write(_with_suffix(outputs.trace, suffix), json.dumps(trace_json(result)), is_trace)
            if outputs.svg is not None:
                picture = marked(timeline_svg(result, outputs.window), ".svg")
                files.write(_with_suffix(outputs.svg, suffix), picture, is_marked)
            if tables is not None:
                tables.write(f"{name}_instructions.csv", instruction_csv(result))
                tables.write(f"{name}_pipes.csv", pipe_csv(result))
        if tables is not None:
            tables.finish()


def figures_text(table: object, out: str, guard: OutputGuard) -> str:
    """Figures as JSON: the text to print where `out` is `-`, else nothing, and a file. Raises as `write_results`."""
    text = json.dumps(table, indent=2) + "\n"
    if out == "-":
        return text
    with OutputSet(guard) as files:
        files.write(file_to_write(out), text, are_figures)
    return ""


def is_trace(path: Path) -> bool:
    """Whether a file is a trace of `msc sim`. Raises OSError."""
    return _object(path).get("generator") == "msc sim"


def are_figures(path: Path) -> bool:
    """Whether a file holds figures of `msc sim`. Raises OSError."""
    found = _object(path).keys()
    return any(keys <= found for keys in _KEYS)


def _with_suffix(path: str, suffix: str) -> Path:
    place = file_to_write(path)
    return place.with_name(f"{place.stem}{suffix}{place.suffix}") if suffix else place


def _object(path: Path) -> dict[str, object]:
    """The JSON object in a file; without entries where there is something else. Raises OSError."""
    try:
        data: object = json.loads(content(path, _MAXIMUM_BYTES))
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, object]", data) if isinstance(data, dict) else {}


# The pipelines of one block's cores as a picture: a lane a pipe, time to the right.
_LANES = (Pipe.S, Pipe.MTE2, Pipe.MTE1, Pipe.M, Pipe.V, Pipe.FIX, Pipe.MTE3)
_COLOURS = {
    Pipe.S: "#8d8d8d",
    Pipe.MTE2: "#4f81bd",
    Pipe.MTE1: "#7fb069",
    Pipe.M: "#c0504d",
    Pipe.V: "#f0a830",
    Pipe.FIX: "#8064a2",
    Pipe.MTE3: "#3f9c9c",
}
_WIDTH, _LEFT, _HEIGHT, _GAP = 1200, 90, 26, 8


def timeline_svg(result: SimulationResult, window: tuple[float, float] | None) -> str:
    """An SVG of what the pipes of the first block's cores do between two cycles; by default of the whole run.

    A kernel of cube and vector cores has lanes for each core of the block.
    """
    start, end = window or (0.0, result.cycles)
    scale = (_WIDTH - _LEFT) / max(end - start, 1.0)
    block = [number for number, core in enumerate(result.cores) if core.block == result.cores[0].block]
    busy = {(event.core, event.pipe) for event in result.events}
    lanes = [(core, pipe) for core in block for pipe in _LANES if (core, pipe) in busy]
    height = len(lanes) * (_HEIGHT + _GAP) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="12">'
    ]
    for position, (core, pipe) in enumerate(lanes):
        top = position * (_HEIGHT + _GAP) + 10
        parts.append(f'<text x="4" y="{top + 17}">{_label(result.cores[core], pipe, len(block) > 1)}</text>')
        for event in result.events:
            if event.core == core and event.pipe == pipe and event.end > start and event.start < end:
                parts.append(_box(event, start, end, scale, top))
    parts.append(f'<text x="{_LEFT}" y="{height - 8}">{start:.0f}</text>')
    parts.append(f'<text x="{_WIDTH}" y="{height - 8}" text-anchor="end">{end:.0f} cycles</text></svg>')
    return "\n".join(parts) + "\n"


def _label(core: CoreResult, pipe: Pipe, several: bool) -> str:
    if not several:
        return pipe.name
    return f"AIC {pipe.name}" if core.kind == "cube" else f"AIV{core.sub_block} {pipe.name}"


def _box(event: Event, start: float, end: float, scale: float, top: int) -> str:
    left = _LEFT + (max(event.start, start) - start) * scale
    width = max((min(event.end, end) - max(event.start, start)) * scale, 0.5)
    waiting = event.name in ("wait_flag", "set_flag", "pipe_barrier")
    colour = "#dddddd" if waiting else _COLOURS[Pipe(event.pipe)]
    title = f"{event.name}: {event.start:.1f} to {event.end:.1f}, line {event.line}"
    return (
        f'<rect x="{left:.2f}" y="{top}" width="{width:.2f}" height="{_HEIGHT}" fill="{colour}">'
        f"<title>{markup_text(title)}</title></rect>"
    )
