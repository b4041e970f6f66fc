"""C text that generated programs contain, in files of C: functions over types with `{marks}` (`codegen.c.template`).

A file has sections, each behind a line `/*** name ***/`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_HEAD = re.compile(r"^/\*\*\* (\w+) \*\*\*/\n", re.MULTILINE)


@cache
def sections(file: str) -> Mapping[str, str]:
    """The sections of a file, by name, each without empty lines around it."""
    return sections_of(files(__name__).joinpath(file))


def sections_of(source: str | Traversable) -> Mapping[str, str]:
    """The sections of a text, or of a file of msc's or a plugin's own."""
    _, *parts = _HEAD.split(source if isinstance(source, str) else source.read_text("utf-8"))
    return {name: text.strip("\n") + "\n" for name, text in zip(parts[::2], parts[1::2], strict=True)}
