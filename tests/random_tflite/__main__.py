"""`python -m tests.random_tflite --count 100 --seed 0`: random operators of TensorFlow Lite, and TFLM."""

from __future__ import annotations

import sys

import click

from tests.name_lists import names_of
from tests.random_tflite.checking import problems
from tests.random_tflite.drawing import MAKERS


@click.command()
@click.option("--count", default=100, show_default=True, help="Cases of each maker.")
@click.option("--seed", default=0, show_default=True, help="Of the first case of each maker.")
@click.option("--makers", type=names_of(list(MAKERS)), default=",".join(MAKERS), help="What is made.")
@click.option("--c-every", default=10, show_default=True, help="How many cases there are for one that is compiled.")
def main(count: int, seed: int, makers: list[str], c_every: int) -> None:
    """Make cases of floats and of integers, and print what differs from TensorFlow Lite for Microcontrollers."""
    failed = 0
    for name in makers:
        for each in range(seed, seed + count):
            compiles = each % c_every == 0
            found = list(problems(name, each, is_quantised=each % 3 != 0, compiles=compiles))
            failed += bool(found)
            for text in found:
                click.echo(f"{name} {each}: {text}")
    click.echo(f"{count * len(makers)} cases, {failed} differ")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
