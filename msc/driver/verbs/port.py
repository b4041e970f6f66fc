"""`msc port`: what of a program for MindSpore msc has, and the program with msc's imports."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from msc.driver.verbs.verb import Verb, say
from msc.support import plain_files
from msc.support.files import write_bytes


@click.command(name="port", cls=Verb)
@click.argument("program", type=click.Path(exists=True, path_type=Path))
@click.option("--write", is_flag=True, help="Replace the imports in the files.")
def command(program: Path, write: bool) -> int:
    """List the names of MindSpore that a script, or the scripts of a folder, use and msc lacks; 1 if there are any.

    Example: msc port train.py --write
    """
    from msc.mindspore import porting

    lacking: Counter[str] = Counter()
    users = complete = 0
    for path in porting.programs(program):
        try:
            text = plain_files.content(path).decode()
            found = list(porting.uses(text))
        except (OSError, SyntaxError, ValueError) as error:
            say(f"{path}: not read: {error}")
            continue
        users += bool(found)
        wrong = [use for use in found if use.state]
        complete += bool(found) and not any(use.state == "missing" for use in wrong)
        for use in wrong:
            lacking[use.name] += use.state == "missing"
            say(f"{path}:{use.line}: {use.name} is {use.state}{f': {use.advice}' if use.advice else ''}")
        if write and found:
            write_bytes(path, porting.ported(text).encode())
    say(f"{complete} of {users} files that import MindSpore use only names that msc has")
    return int(complete < users)
