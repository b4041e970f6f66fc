"""`msc cache`: how much the cache of compiled models holds, and how to empty it."""

from __future__ import annotations

import json

import click

from msc.driver.verbs.verb import Verb, say
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.wording import counted


@click.command(name="cache", cls=Verb)
@click.option("--clear", is_flag=True, help="Remove everything in it. Programs that use a model go on using it.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def command(clear: bool, as_json: bool) -> None:
    """Show where compiled models are kept, how many and how large they are; with --clear, remove them.

    Example: msc cache --clear
    """
    from msc.runtime.cache import MAXIMUM_BYTES, cache_folder, open_cache

    cache = open_cache()
    if cache is None:
        message = f"the cache folder {cache_folder()} cannot be used"
        raise MscError(Diagnostic("MSC0013", message, help="msc doctor says why; msc works without a cache"))
    sizes = cache.sizes()
    if clear:
        cache.clear()
    if as_json:
        found = {"folder": str(cache.folder), "models": len(sizes), "bytes": sum(sizes), "maximum_bytes": MAXIMUM_BYTES}
        say(json.dumps({**found, "cleared": clear}))
    else:
        held = (
            f"{counted(len(sizes), 'compiled model')}, {sum(sizes) / 1e6:.1f} MB of at most {MAXIMUM_BYTES / 1e6:.0f}"
        )
        say(f"{'removed from ' if clear else ''}{cache.folder}: {held}")
