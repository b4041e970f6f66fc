"""Texts that msc writes tell so in their first line, with a checksum: one that a person changed is known by it."""

from __future__ import annotations

import re
from pathlib import Path

from msc.support.hashing import digest
from msc.support.plain_files import content

_COMMENTS = {".c": ("/* ", " */"), ".h": ("/* ", " */"), ".S": ("/* ", " */"), ".svg": ("<!-- ", " -->")}
_DIGITS = 16
_MAXIMUM_BYTES = 1 << 28
_MARK = re.compile(
    r"(?:// |/\* |<!-- )Written by msc(?: for ([\w.?+-]+))?; checksum ([0-9a-f]{16})(?: \*/| -->)?", re.ASCII
)


def marked(text: str, suffix: str = ".mir", owner: str = "") -> str:
    """`text` below a line with its checksum, as a comment of the language that `suffix` says.

    A file that goes with another, as a header does, names that as its `owner`.
    """
    start, end = _COMMENTS.get(suffix, ("// ", ""))
    purpose = f" for {_plain(owner)}" if owner else ""
    return f"{start}Written by msc{purpose}; checksum {_checksum(text)}{end}\n{text}"


def is_marked(path: Path) -> bool:
    """Whether a file is as `marked` made it. Raises OSError."""
    mark, text = _read(path)
    return mark is not None and mark[2] == _checksum(text)


def goes_with_another(path: Path, owner: str, text: str) -> bool:
    """Whether a file that `marked` made names another owner and says something else than `text`. Raises OSError."""
    mark, old = _read(path)
    return mark is not None and mark[1] is not None and mark[1] != _plain(owner) and old != text


def _read(path: Path) -> tuple[re.Match[str] | None, str]:
    """The mark of a file, if there is one, and what follows the first line."""
    data = content(path, _MAXIMUM_BYTES)
    line, _, text = data.partition(b"\n")
    return _MARK.fullmatch(line.decode("ascii", "replace")), text.decode("utf-8", "replace")


def _plain(owner: str) -> str:
    return re.sub(r"[^\w.+-]", "?", owner, flags=re.ASCII)


def _checksum(text: str) -> str:
    return digest((text,))[:_DIGITS]
