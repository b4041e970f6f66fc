"""`python -m tests.random_tflite --count 100 --seed 0`: random operators of TensorFlow Lite, and TFLM."""

from __future__ import annotations

import sys
from itertools import product

import click

from tests.name_lists import names_of
from tests.random_tflite import boards
from tests.random_tflite.checking import problems
from tests.random_tflite.drawing import MAKERS


@click.command()
@click.option("--count", default=100, show_default=True, help="Cases of each maker.")
@click.option("--seed", default=0, show_default=True, help="Of the first case of each maker.")
@click.option("--makers", type=names_of(list(MAKERS)), default=",".join(MAKERS), help="What is made.")
@click.option("--c-every", default=10, show_default=True, help="How many cases there are for one that is compiled.")
@click.option("--on", type=names_of([*boards.BOARDS, "hosts"]), help="Run each case there instead, as a bundle.")
def main(count: int, seed: int, makers: list[str], c_every: int, on: list[str] | None) -> None:
    """Make cases of floats and of integers, and print what differs from TensorFlow Lite for Microcontrollers."""
    failed = 0
    for name, each in product(makers if on else (), range(seed, seed + count)):
        marches = [march for march in on or () if march != "hosts"]
        is_quantised = each % 3 != 0
        found = list(boards.differences(name, each, marches, is_quantised=is_quantised))
        found += boards.hosts(name, each) if "hosts" in (on or ()) and is_quantised else ()
        failed += bool(found)
        click.echo("\n".join([f"{name} {each}: {'integers' if is_quantised else 'floats'}", *found]))
    if on:
        click.echo(f"{count * len(makers)} cases, {failed} differ")
        sys.exit(1 if failed else 0)
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
