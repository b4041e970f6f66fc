"""What others wrote (names, labels, paths), made harmless for each language that msc writes: the one place that does.

A name may hold anything: `*/`, quotes, line breaks, `/../`, escape characters, ten thousand letters. What leaves msc
goes through a function of this module, so that it stays text: it ends no comment and no literal, names no folder, and
gives no command to a terminal. Identifiers are made by `msc.support.naming`, and those of C by `msc.codegen.c.names`.
"""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Container, Iterable, Sequence

from msc.support.naming import NAME_LENGTH, identifier, unique

_MAXIMUM_COMMENT = 400
_MAXIMUM_SHOWN = 200
_OF_COMMENTS = re.compile(r"\*(?=/)|/(?=\*)|\?(?=\?)")
"""The first halves of what begins or ends a comment, or a trigraph."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that spreadsheets compute."""
_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}
"""Names that some systems give to devices, whatever the folder and the extension."""


def comment_text(text: str, limit: int = _MAXIMUM_COMMENT) -> str:
    """`text` for the inside of a comment of C: printable ASCII, one line, capped, never `*/` or `/*` or `??/`."""
    plain = "".join(c if " " <= c <= "~" else "?" for c in text[: limit + 1]).replace("\\", "/")
    plain = _OF_COMMENTS.sub(r"\g<0> ", plain)
    return plain if len(plain) <= limit else plain[: limit - 3] + "..."


def c_comment(*lines: str, limit: int = _MAXIMUM_COMMENT) -> str:
    """A comment of C of some lines, each of at most `limit` characters; without a line break at its end."""
    return "/* " + "\n   ".join(comment_text(line, limit) for line in lines) + " */"


def c_string(text: str) -> str:
    """A C string literal of `text` in UTF-8; every byte that is not plain is an octal escape."""
    return '"' + "".join(map(_c_character, text.encode("utf-8", "replace"))) + '"'


def _c_character(byte: int) -> str:
    character = chr(byte)
    if character in '"\\?':
        return f"\\{character}"
    return character if " " <= character <= "~" else f"\\{byte:03o}"


def file_name(text: str, taken: Container[str] = ()) -> str:
    """A name in one folder, made of `text`: letters, digits, `_` and `.`, at most 96 of them and more for a number.

    It is none of those `taken`, which are in small letters: some file systems tell no capitals apart.
    """
    name = identifier(text, "unnamed")
    if name.partition(".")[0].lower() in _DEVICES:
        name = f"_{name}"
    return unique(name[:NAME_LENGTH], _Folded(taken))


class _Folded:
    """Names whatever their capitals."""

    def __init__(self, names: Container[str]) -> None:
        self._names = names

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._names


def printable(text: str) -> str:
    """Lines for a terminal: control and direction-changing characters are escaped, so that a name cannot drive it."""
    return "".join(c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown(name: str, limit: int = _MAXIMUM_SHOWN) -> str:
    """A name in a sentence or a table: printable, on one line, and not long."""
    cut = name if len(name) <= limit else f"{name[:limit]}..."
    return printable(cut).replace("\n", "\\n")


def table_text(heads: Sequence[str], rows: Iterable[Sequence[str]], width: int = 150) -> str:
    """A table for people, without a line break at its end; markup in its cells is text."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None)
    for head in heads:
        table.add_column(Text(shown(head)))
    for row in rows:
        table.add_row(*(Text(shown(cell)) for cell in row))
    out = io.StringIO()
    Console(file=out, width=width, markup=False, emoji=False, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def markup_text(text: str) -> str:
    """`text` for an element or an attribute of HTML, XML and SVG; what XML cannot hold is escaped as on a terminal."""
    return html.escape(printable(text), quote=True)


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV. Text that a spreadsheet would take for a formula gets a `'` in front."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return out.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
