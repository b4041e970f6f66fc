"""``python -m benchmarks.cost_model``: see ``--help``."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.models import MODELS


@click.command(epilog="Example: python -m benchmarks.cost_model --collect -o cascadelake.jsonl lenet5 mlp")
@click.argument("models", nargs=-1, type=click.Choice(list(MODELS)))
@click.option("--collect", is_flag=True, help="Measure the kernels of MODELS (of all) and their neighbours.")
@click.option("-o", "path", type=click.Path(path_type=Path), help="The corpus to add to.")
@click.option("--cpu", default=0, show_default=True, help="The processor that measures.")
@click.option("--seconds", default=3600.0, show_default=True, help="Time to spend.")
def main(models: tuple[str, ...], collect: bool, path: Path | None, cpu: int, seconds: float) -> None:
    """The cost model beside measured times."""
    if collect:
        from benchmarks.cost_model.collect import collect as run

        if path is None:
            raise click.UsageError("--collect needs -o FILE")
        run([MODELS[name] for name in models or MODELS], path, cpu, seconds, click.echo)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.cost_model")
