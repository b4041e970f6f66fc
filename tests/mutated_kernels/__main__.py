"""`python -m tests.mutated_kernels [--part K/N]`: prints each mutant that is accepted and should not be."""

from __future__ import annotations

import sys
from collections import Counter

import click

from tests.mutated_kernels.judging import Original, texts
from tests.mutated_kernels.mutations import mutants


@click.command()
@click.option("--part", default="0/1", show_default=True, help="Every N-th mutant, from the K-th on.")
def main(part: str) -> None:
    """Change kernels in all ways and look whether each harmful change is refused; exit 1 if one is not."""
    first, every = map(int, part.split("/"))
    wrong, done = Counter[str](), 0
    for name, text in texts().items():
        original = Original(text)
        for mutant in list(mutants(text))[first::every]:
            done += 1
            fault = original.fault(mutant)
            if fault is not None:
                wrong[fault] += 1
                click.echo(f"{name}: {mutant.what}: {fault}")
    click.echo(f"{done} mutants, {sum(wrong.values())} wrongly accepted")
    sys.exit(bool(wrong))


main()
