"""`python -m tests.random_quantised --count 100 --seed 0`: random quantised operators and networks, and ORT."""

from __future__ import annotations

import sys

import click

from tests.name_lists import names_of
from tests.random_quantised.checking import problems
from tests.random_quantised.networks import MAKERS, case


@click.command()
@click.option("--count", default=100, show_default=True, help="Cases of each maker.")
@click.option("--seed", default=0, show_default=True, help="Of the first case of each maker.")
@click.option("--makers", type=names_of(list(MAKERS)), default=",".join(MAKERS), help="What is made.")
def main(count: int, seed: int, makers: list[str]) -> None:
    """Make cases, run them by ONNX Runtime, the interpreter and as C, and print what differs."""
    failed = 0
    for name in makers:
        for each in range(seed, seed + count):
            found = list(problems(case(name, each)))
            failed += bool(found)
            for text in found:
                click.echo(f"{name} {each}: {text}")
    click.echo(f"{count * len(makers)} cases, {failed} differ")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
