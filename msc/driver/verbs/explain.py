"""`msc explain`: what a diagnostic code means."""

from __future__ import annotations

import click

from msc.support.codes import CODES
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean


@click.command(name="explain")
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Explain CODE, or list all codes.

    Example: msc explain MSC0201
    """
    if code is None:
        click.echo("\n".join(f"{entry.code}  {entry.title}" for entry in CODES.values()))
        return
    click.echo(explain_code(code))


def explain_code(code: str) -> str:
    """Title and explanation of a code, in any case, with or without `MSC`. Raises MSC0005 when there is none."""
    name = code.upper() if code.upper().startswith("MSC") else f"MSC{code.zfill(4)}"
    if name not in CODES:
        raise MscError(Diagnostic("MSC0005", f"there is no code '{code}'", help=did_you_mean(name, CODES)))
    entry = CODES[name]
    return f"{entry.code}: {entry.title}\n\n{click.wrap_text(entry.explanation, 88)}"
