"""``python -m tests.models``: all networks, both exporters, compared with PyTorch."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks.torch_models.catalogue import FULL, TINY
from benchmarks.torch_models.export import EXPORTERS, VARIANTS, Exporter
from msc.support.diagnostics import MscError
from tests.models.comparison import SENSITIVITY, TOLERANCE, compare, sensitivity


def _row(name: str, exporter: Exporter, folder: Path, threads: int) -> tuple[list[str], bool]:
    """The cells of one network, and whether it is right."""
    try:
        found = compare(VARIANTS[name], exporter, folder, threads)
    except MscError as error:
        return [name, exporter, error.diagnostics[0].message, "", ""], False
    right = found.error <= TOLERANCE
    cells = [f"{found.error:.1e}", f"{found.compile_seconds:.1f}", f"{found.call_seconds * 1e3:.2f}"]
    return [name, exporter, *cells], right


@click.command(epilog="Example: python -m tests.models resnet50 bert --exporter script")
@click.argument("names", nargs=-1, type=click.Choice(list(VARIANTS)))
@click.option("--exporter", "exporters", multiple=True, type=click.Choice(EXPORTERS), help="[default: both]")
@click.option("--tiny", is_flag=True, help="The tiny variants instead of those of full size.")
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1))
def main(names: tuple[str, ...], exporters: tuple[Exporter, ...], tiny: bool, threads: int) -> None:
    """Export, compile and compare NAMES (all of full size by default); fails if one is wrong."""
    table = Table("network", "exporter", "error", "compile s", "call ms")
    wrong: list[str] = []
    for name in names or (TINY if tiny else FULL):
        if (changed := sensitivity(VARIANTS[name])) < SENSITIVITY:
            wrong.append(f"{name}: its result changes by {changed:.1e} with the input, which tests nothing")
        for exporter in exporters or EXPORTERS:
            with tempfile.TemporaryDirectory() as folder:
                cells, right = _row(name, exporter, Path(folder), threads)
            table.add_row(*cells)
            click.echo("  ".join(cells))
            wrong += [] if right else [f"{name} ({exporter}): {cells[2]}"]
    Console().print(table)
    if wrong:
        raise click.ClickException("\n".join(wrong))


if __name__ == "__main__":
    main(prog_name="python -m tests.models")
