"""What all verbs share beyond their options: how they print, and that options stand once and numbers are in range."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isfinite
from typing import Any

import click

from msc.support.diagnostics import near_match
from msc.support.escaping import printable


def say(text: str, *, err: bool = False, end: str = "\n") -> None:
    """Print lines for people, or JSON: what names in them hold gives no command to the terminal."""
    click.echo(printable(text) + end, err=err, nl=False)


class Verb(click.Command):
    """A command whose options stand once, but for those that may stand several times: which one counts is clear."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Raises UsageError for an option that stands twice."""
        if not ctx.resilient_parsing and not {"--help", "-h"} & set(args):
            try:
                _, _, order = self.make_parser(ctx).parse_args(list(args))
            except click.NoSuchOption as error:
                raise click.UsageError(self._unknown(error.option_name, args, ctx), ctx) from None
            for parameter, times in Counter(order).items():
                if isinstance(parameter, click.Option) and times > 1 and not (parameter.multiple or parameter.is_flag):
                    ctx.fail(f"{parameter.opts[0]} stands {times} times")
        return super().parse_args(ctx, args)

    def _unknown(self, name: str, args: Sequence[str], ctx: click.Context) -> str:
        """What to say of an option that there is not: those that mean the same, else those that are written alike."""
        named = (option for found in self.get_params(ctx) for option in (*found.opts, *found.secondary_opts))
        options = [option for option in named if option.startswith("-")]
        written = next((each for each in args if each.split("=")[0] == name), None)
        written = written or next((each for each in args if each.startswith(name)), name)
        wanted = name.lstrip("-").lower()
        meant = [option for words, option in _MEANT.items() if wanted in words.split() and option.split()[0] in options]
        near = meant or [option for option in [near_match(name, options)] if option is not None]
        advice = f"did you mean {' or '.join(near)}?" if near else f"its options: {', '.join(dict.fromkeys(options))}"
        if wanted in _ALWAYS.split():
            advice = "msc always optimises; --without NAME,... turns optimisations off"
        return f"there is no option '{written.partition('=')[0]}'; {advice}"


_MEANT = {
    "iterations iters n repeat repeats runs loops number count warmup": "--seconds S",
    "verbose v debug d trace": "--timing",
    "verbose-ir mlir-print-ir-after-all print-after-all": "--print-ir-after all",
    "output-file out output-dir o": "--output",
    "cpu mcpu target-cpu arch mtune": "--march",
    "jobs j num-threads nthreads t": "--threads",
    "shape input-shape batch batch-size bs dynamic-axes": "--dim NAME=SIZE",
    "seed": "--random SEED",
    "inputs i data": "--input NAME=VALUE",
    "profile per-kernel layers": "--kernels",
    "format filetype f type": "--emit FORM",
    "stage s": "--stop-after STAGE",
    "pipeline pass p": "--passes PIPELINE",
    "overwrite y yes": "--force",
    "disable no": "--without NAME,...",
    "tolerance tol eps": "--atol",
    "memory mem max-mem": "--max-memory",
}
"""Names of options elsewhere -> the option here."""
_ALWAYS = "o o0 o1 o2 o3 os oz ofast opt-level optimize optimise optimization-level"


class _Real(click.FloatRange):
    """A number that is at least 0 and finite."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value} is no finite number", param, ctx)
        return number


NUMBER = _Real(0)
COUNT = click.IntRange(0, (1 << 63) - 1)
