"""`msc inspect`: what a file holds."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from msc.driver.options import CompileOptions
from msc.driver.verbs.completion import files
from msc.driver.verbs.model_options import with_compile_options
from msc.driver.verbs.verb import Verb, say
from msc.runtime.program import MemoryStep
from msc.support.escaping import markup_text, shown
from msc.support.outputs import OutputGuard, OutputSet
from msc.support.plain_files import content


@click.command(name="inspect", cls=Verb)
@click.argument("file", shell_complete=files)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.option("--memory", is_flag=True, help="Print which tensors of the workspace are live at each kernel.")
@click.option("--memory-picture", metavar="FILE.svg", help="Draw that.")
@with_compile_options
def command(file: str, as_json: bool, memory: bool, memory_picture: str | None, options: CompileOptions) -> None:
    """Show inputs, outputs, operations, parameters, work and memory of FILE: a model, a .so or a .safetensors.

    Example: msc inspect lenet5.mir
    """
    from msc.driver.reports.inspection import inspect_file, report_text

    report = inspect_file(file, options)
    say(json.dumps(report.to_json()) if as_json else report_text(report))
    if memory or memory_picture is not None:
        if memory and not as_json:
            say(memory_text(report.memory))
        if memory_picture is not None:
            write_picture(Path(memory_picture), memory_picture_text(report.memory))


# RAM over time: what of the workspace is live at each kernel, as a table and as a picture.
_COLUMN, _HEIGHT, _LEFT, _TOP, _NAMES = 26, 240, 70, 30, 190
"""Pixels: the width of a kernel, the height of the most bytes, and the room around."""


def memory_text(steps: Sequence[MemoryStep]) -> str:
    """A row for each kernel, in order; `*` where most bytes are live."""
    most = max((step.bytes for step in steps), default=0)
    return "\n".join(_rows(steps, most)) or "no kernel uses the workspace"


def _rows(steps: Sequence[MemoryStep], most: int) -> Iterator[str]:
    for step in steps:
        tensors = ", ".join(f"{shown(name)} {size}" for name, size in step.live)
        yield f"{'*' if step.bytes == most else ' '}{step.bytes:>10}  {shown(step.kernel)}: {tensors or '-'}"


def memory_picture_text(steps: Sequence[MemoryStep]) -> str:
    """SVG: a column for each kernel, with a box for each tensor of the workspace that is live at it."""
    most = max((step.bytes for step in steps), default=0)
    width, height = _LEFT + _COLUMN * max(len(steps), 1) + 20, _TOP + _HEIGHT + _NAMES
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif"'
        f' font-size="11">\n<rect width="{width}" height="{height}" fill="white"/>\n'
        f'<text x="{_LEFT}" y="18">bytes of the workspace that are live at each kernel; at most {most}</text>\n'
        f'<text x="{_LEFT - 6}" y="{_TOP + 8}" text-anchor="end">{most}</text>\n'
        f'<text x="{_LEFT - 6}" y="{_TOP + _HEIGHT}" text-anchor="end">0</text>\n'
        f"{''.join(_column(number, step, max(most, 1)) for number, step in enumerate(steps))}</svg>\n"
    )


def _column(number: int, step: MemoryStep, most: int) -> str:
    x, top, boxes = _LEFT + _COLUMN * number, float(_TOP + _HEIGHT), list[str]()
    for name, size in step.live:
        high = _HEIGHT * size / most
        top -= high
        told = markup_text(f"{name}: {size} bytes")
        boxes.append(
            f'<rect x="{x}" y="{top:.1f}" width="{_COLUMN - 2}" height="{high:.1f}" stroke="white"'
            f' fill="hsl({zlib.crc32(name.encode()) % 360},55%,60%)"><title>{told}</title></rect>\n'
        )
    at = f'x="{x + _COLUMN / 2:.0f}" y="{_TOP + _HEIGHT + 12}"'
    turned = f'transform="rotate(60 {x + _COLUMN / 2:.0f} {_TOP + _HEIGHT + 12})"'
    return f"{''.join(boxes)}<text {at} {turned}>{markup_text(step.kernel[:32])}</text>\n"


def write_picture(path: Path, text: str) -> None:
    """Write it. Raises MSC0004, MSC0010, and MSC0011 for a file that msc did not write."""
    with OutputSet(OutputGuard()) as files:
        files.write(path, text, is_picture)


def is_picture(path: Path) -> bool:
    """Whether a file is such a picture. Raises OSError."""
    return b"bytes of the workspace that are live at each kernel" in content(path, 1 << 26)
