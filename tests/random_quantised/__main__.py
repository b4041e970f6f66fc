"""`python -m tests.random_quantised --count 100 --seed 0`: random quantised operators and networks, and ORT."""

from __future__ import annotations

import sys

import click

from tests.name_lists import names_of
from tests.random_quantised.checking import problems
from tests.random_quantised.machines import HOSTS, differences
from tests.random_quantised.networks import MAKERS, case


@click.command()
@click.option("--count", default=100, show_default=True, help="Cases of each maker.")
@click.option("--seed", default=0, show_default=True, help="Of the first case of each maker.")
@click.option("--machines", is_flag=True, help="Networks in integers on other machines instead: equal bytes.")
@click.option("--makers", type=names_of(list(MAKERS)), default=",".join(MAKERS), help="What is made.")
def main(count: int, seed: int, machines: bool, makers: list[str]) -> None:
    """Make cases, run them by ONNX Runtime, the interpreter and as C, and print what differs."""
    failed, makers = 0, ["network", "wide"] if machines else makers
    for name in makers:
        for each in range(seed, seed + count):
            made = case(name, each)
            found = list(differences(made, list(HOSTS)) if machines else problems(made))
            failed += bool(found)
            for text in found:
                click.echo(f"{name} {each}: {text}")
    click.echo(f"{count * len(makers)} cases, {failed} differ")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
