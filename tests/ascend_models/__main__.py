"""`python -m tests.ascend_models [NETWORK ...]`: compile, prove, run and compare every kernel."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from msc.support.diagnostics import MscError
from tests.ascend_models.checking import CheckedKernel, check_model
from tests.ascend_models.networks import DTYPES, FULL_SIZE, NETWORKS, written


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(NETWORKS)))
@click.option("--target", "targets", multiple=True, default=("ascend910b1",), show_default=True)
@click.option("--dtype", "dtypes", multiple=True, type=click.Choice(DTYPES), help="[default: both]")
@click.option("--slow", default=0.0, help="Also name the kernels whose simulation takes more seconds.")
def main(names: tuple[str, ...], targets: tuple[str, ...], dtypes: tuple[str, ...], slow: float) -> None:
    """Check NAMES (all of full size by default) kernel by kernel; fails if a kernel is wrong or does not compile."""
    table = Table("network", "target", "kernels", "cube", "vector", "scalar", "proved", "error", "wrong", "s", box=None)
    wrong = 0
    for name in names or FULL_SIZE:
        for dtype in dtypes or DTYPES:
            for target in targets:
                cells, bad = _row(name, dtype, target, slow)
                click.echo(f"{name} {dtype} {target}: {cells[2:]}")
                table.add_row(*cells)
                wrong += bad
    Console(width=120).print(table)
    sys.exit(wrong > 0)


def _row(name: str, dtype: str, target: str, slow: float) -> tuple[list[str], int]:
    """The cells of one network, and how much is wrong; what is wrong is printed at once."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            path, inputs = written(name, dtype, Path(folder))
            kernels = check_model(path, target, inputs)
        except MscError as error:
            click.echo(f"{name} {dtype} {target}: {error}")
            return [f"{name} {dtype}", target, "refused", *[""] * 7], 1
    bad = [kernel for kernel in kernels if kernel.problem]
    for kernel in bad:
        click.echo(f"{name} {dtype} {target}: {kernel.name} ({kernel.unit}): {kernel.problem}")
    for kernel in kernels:
        if slow and kernel.seconds > slow:
            click.echo(f"{name} {dtype} {target}: {kernel.name} ({kernel.unit}): {kernel.seconds:.1f} s")
    return [f"{name} {dtype}", target, *_figures(kernels), str(len(bad)), f"{time.perf_counter() - start:.0f}"], len(
        bad
    )


def _figures(kernels: list[CheckedKernel]) -> list[str]:
    units = Counter(kernel.unit for kernel in kernels)
    proved = sum(kernel.is_proved for kernel in kernels)
    error = max((kernel.error for kernel in kernels), default=0.0)
    cube = units["cube"] + units["mix"]
    return [str(len(kernels)), *map(str, (cube, units["vector"], units["scalar"], proved)), f"{error:.2f}"]


if __name__ == "__main__":
    main(prog_name="python -m tests.ascend_models")
