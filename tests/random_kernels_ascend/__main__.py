"""`python -m tests.random_kernels_ascend [--count 200] [--seed 0]`: prints each kernel that is wrong."""

from __future__ import annotations

import sys

import click
from hypothesis import HealthCheck, Phase, given, seed, settings

from msc.support.diagnostics import MscError
from tests.random_kernels_ascend.kernels import check, kernels

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)


@click.command()
@click.option("--count", default=200, show_default=True, help="How many kernels.")
@click.option("--seed", "start", default=0, show_default=True, help="Where the random numbers start.")
def main(count: int, start: int) -> None:
    """Compile random kernels for simulated Ascend machines; exit 1 if one computes something wrong."""
    wrong, done = list[str](), 0

    @seed(start)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=SLOW,
    )
    @given(kernels())
    def run(kernel: tuple[str, str]) -> None:
        nonlocal done
        done += 1
        try:
            check(*kernel)
        except (AssertionError, MscError) as error:
            wrong.append(kernel[1])
            click.echo(f"{kernel[0]}:\n{kernel[1]}{str(error)[:600]}\n")

    run()
    click.echo(f"{done - len(wrong)} of {done} kernels agree with the interpreter")
    sys.exit(bool(wrong))


main()
