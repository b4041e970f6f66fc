"""The pipelines of one block's cores as a picture: a lane a pipe, time to the right."""

from __future__ import annotations

from msc.sim.result import CoreResult, Event, SimulationResult
from msc.support.escaping import markup_text
from msc.targets.davinci_isa import Pipe

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
