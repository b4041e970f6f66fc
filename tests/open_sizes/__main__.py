"""Try random models for some time: `python -m tests.open_sizes --seconds 600 --first 1000`."""

from __future__ import annotations

import sys
import time
from collections import Counter

import click

from msc import MscError
from tests.open_sizes.cells import try_cell
from tests.open_sizes.operators import LAYERS, OPERATORS
from tests.open_sizes.trying import Outcome, try_seed


@click.command()
@click.option("--seconds", default=60.0, show_default=True, help="How long.")
@click.option("--first", default=0, show_default=True, help="The first seed.")
@click.option("--nodes", default=4, show_default=True, help="Nodes of a model, at least.")
@click.option("--layers", is_flag=True, help="Chains of convolutions and poolings, and recurrent layers alone.")
@click.option("--cells", is_flag=True, help="Cells in graph mode, called with one shape after another.")
def main(seconds: float, first: int, nodes: int, layers: bool, cells: bool) -> None:
    """Print what is not right, and the figures; exit 1 where a model was wrong or failed inside."""
    end, seed, outcomes = time.monotonic() + seconds, first, list[Outcome]()
    if cells:
        sys.exit(_cells(end, first))
    while time.monotonic() < end:
        outcomes.append(try_seed(seed, nodes, LAYERS if layers else OPERATORS))
        if outcomes[-1].verdict not in ("right", "not a model"):
            click.echo(f"{seed} {outcomes[-1].verdict}: {outcomes[-1].text}", nl=True)
        seed += 1
    counts = Counter(o.verdict for o in outcomes)
    click.echo(", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()))
    sys.exit(int(counts["wrong"] + counts["internal"] > 0))


def _cells(end: float, seed: int) -> int:
    """Draw Cells until the time is over; 1 if one differed from PyNative mode."""
    counts = Counter[str]()
    while time.monotonic() < end:
        try:
            calls = try_cell(seed)
        except (AssertionError, MscError) as error:
            counts["wrong"] += 1
            click.echo(f"{seed} wrong: {error}")
        else:
            counts["shared" if calls.served else "not shared"] += 1
            if not calls.served:
                click.echo(f"{seed} not shared: {calls.story}")
        seed += 1
    click.echo(", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()))
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    main()
