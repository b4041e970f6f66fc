"""C text that generated programs contain, in files of C: functions over types with `{marks}` (`codegen.c.template`).

A file has sections, each behind a line `/*** name ***/`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_HEAD = re.compile(r"^/\*\*\* (\w+) \*\*\*/\n", re.MULTILINE)


@cache
def sections(file: str) -> Mapping[str, str]:
    """The sections of a file, by name, each without empty lines around it."""
    return sections_of(files(__name__).joinpath(file).read_text("utf-8"))


def sections_of(text: str) -> Mapping[str, str]:
    """The sections of a text."""
    _, *parts = _HEAD.split(text)
    return {name: text.strip("\n") + "\n" for name, text in zip(parts[::2], parts[1::2], strict=True)}
