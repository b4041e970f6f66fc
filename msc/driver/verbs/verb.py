"""What all verbs share beyond their options: an option that is given twice is refused, numbers are in range."""

from __future__ import annotations

from collections import Counter
from math import isfinite
from typing import Any

import click


class Verb(click.Command):
    """A command whose options stand once, but for those that may stand several times: which one counts is clear."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Raises UsageError for an option that stands twice."""
        if not ctx.resilient_parsing and not {"--help", "-h"} & set(args):
            _, _, order = self.make_parser(ctx).parse_args(list(args))
            for parameter, times in Counter(order).items():
                if isinstance(parameter, click.Option) and times > 1 and not (parameter.multiple or parameter.is_flag):
                    ctx.fail(f"{parameter.opts[0]} stands {times} times")
        return super().parse_args(ctx, args)


class _Real(click.FloatRange):
    """A number that is at least 0 and finite."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value} is no finite number", param, ctx)
        return number


NUMBER = _Real(0)
COUNT = click.IntRange(0, (1 << 63) - 1)
