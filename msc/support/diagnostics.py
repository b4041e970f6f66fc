"""What a user is told when something is wrong: a code, a sentence, a place in the source, and advice.

The form is rustc's: `error[MSC0201]: message`, ` --> file:line:column`, the source line with a caret, notes and help.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from msc.support.escaping import printable, shown

_EXCERPT_WIDTH = 160
"""A longer source line is cut to a window around the caret: a one-line file of a megabyte stays readable."""

_SAME_BEGINNING = 0.2
"""What the letters count, besides, with which two names begin."""
_TELLING = 3
"""The letters of a beginning that says what is meant."""
_FEW = 5

_SHOWN_LINES = 5
"""Lines that a note names of those with the same mistake."""


@dataclass(frozen=True)
class Location:
    """A place in a text file; `line` and `column` are 1-based and count code points.

    Of an operation in a stage file it is where the model has what it was made of; `written` is its place in that file.
    """

    file: str
    line: int
    column: int
    written: Location | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{shown(self.file, 1000)}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Diagnostic:
    """One message to the user. `code` has an entry in `msc.support.codes`; `length` is the number of carets."""

    code: str
    message: str
    location: Location | None = None
    source_line: str | None = None
    length: int = 1
    notes: tuple[str, ...] = ()
    help: str | None = None

    @property
    def place(self) -> Location | None:
        """The place that is shown, which `source_line` is of: that in the text that was read."""
        return None if self.location is None else self.location.written or self.location

    @property
    def origin(self) -> Location | None:
        """Where the model has what stands at `place`, if that is another place."""
        return self.location if self.location != self.place else None


class MscError(Exception):
    """A mistake of the user's, or a limit they met: the only exception that msc raises for either."""

    diagnostics: tuple[Diagnostic, ...]

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(*diagnostics)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        return render_all(self.diagnostics)


def raise_any(found: Iterable[Diagnostic]) -> None:
    """Raise all of them as one error, if there are any."""
    diagnostics = tuple(found)
    if diagnostics:
        raise MscError(*diagnostics)


def first_of_each(found: Iterable[Diagnostic], kind: Callable[[Diagnostic], object]) -> tuple[Diagnostic, ...]:
    """The first diagnostic of each kind, with a note of how many more there are: one mistake can concern any number of
    operations.
    """
    groups: dict[object, list[Diagnostic]] = {}
    for diagnostic in found:
        groups.setdefault(kind(diagnostic), []).append(diagnostic)
    return tuple(_with_count(first, others) for first, *others in groups.values())


def _with_count(first: Diagnostic, others: Sequence[Diagnostic]) -> Diagnostic:
    if not others:
        return first
    lines = sorted({diagnostic.place.line for diagnostic in others if diagnostic.place is not None})
    shown = ", ".join(map(str, lines[:_SHOWN_LINES])) + (", ..." if len(lines) > _SHOWN_LINES else "")
    where = f", in line{'s' if len(lines) > 1 else ''} {shown}" if lines else ""
    return replace(first, notes=(*first.notes, f"{len(others)} more like this{where}"))


class DecidedByCall(MscError):
    """What a call decides has to be known first: sizes, or the values of `inputs`."""

    def __init__(self, diagnostic: Diagnostic, inputs: Iterable[str] = ()) -> None:
        super().__init__(diagnostic)
        self.inputs = frozenset(inputs)


def render_all(diagnostics: Iterable[Diagnostic]) -> str:
    """All diagnostics as text, a blank line between two of them, no newline at the end."""
    return "\n\n".join(render(diagnostic) for diagnostic in diagnostics)


def render(diagnostic: Diagnostic, kind: str = "error") -> str:
    """One diagnostic as text, without a newline at the end; `kind` is "error" or "warning"."""
    lines = [f"{kind}[{diagnostic.code}]: {_below(diagnostic.message)}"]
    if diagnostic.place is not None:
        lines.append(f" --> {diagnostic.place}")
        if diagnostic.source_line is not None:
            lines += _excerpt(diagnostic.place, diagnostic.source_line, diagnostic.length)
    if diagnostic.origin is not None:
        lines.append(f"note: this was made of {diagnostic.origin}")
    lines += [f"note: {_below(note)}" for note in diagnostic.notes]
    if diagnostic.help is not None:
        lines.append(f"help: {_below(diagnostic.help)}")
    return "\n".join(lines)


def _below(text: str) -> str:
    """Text whose further lines stand below its first: a line break in a name begins no message of its own."""
    return printable(text).replace("\n", "\n  ")


def near_match(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like `name`, or None when none is close: what "did you mean" proposes.

    Of candidates as much alike, the one that begins in the same way: people know how a word begins.
    """
    from difflib import SequenceMatcher, get_close_matches

    by_lower = {candidate.lower(): candidate for candidate in sorted(candidates)}
    wanted = name.lower()
    found = get_close_matches(wanted, by_lower, n=5, cutoff=0.6)

    def likeness(candidate: str) -> float:
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(wanted, candidate, strict=False)))
        return SequenceMatcher(None, candidate, wanted).ratio() + _SAME_BEGINNING * common / len(wanted)

    return by_lower[max(found, key=likeness)] if found else None


def of_name(name: str, candidates: Iterable[str]) -> list[str]:
    """The candidates that are `name` with something behind it, as conv1d and conv2d for conv, if these are few."""
    longer = sorted(each for each in candidates if each.lower().startswith(name.lower()))
    longer = [each for each in longer if len(each) == min(map(len, longer))]
    return longer if len(name) >= _TELLING and 1 < len(longer) <= _FEW else []


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """The help line that proposes the nearest candidate, or None: ready for `Diagnostic.help`."""
    names = list(candidates)
    several = of_name(name, names)
    if several:
        return f"did you mean {', '.join(several[:-1])} or {several[-1]}?"
    match = near_match(name, names)
    return f"did you mean '{match}'?" if match is not None else None


def _excerpt(location: Location, source_line: str, length: int) -> list[str]:
    """The source line and the caret line below it, under a gutter that holds the line number."""
    start = max(0, min(location.column - 1, len(source_line)))
    window = _window(source_line, start)
    text, before = source_line[window], source_line[window.start : start]
    marked = source_line[start : min(start + max(1, length), window.stop)]
    gutter = " " * len(str(location.line))
    carets = "^" * max(1, _display_width(_one_line(marked)))
    padding = " " * _display_width(_one_line(before))
    return [f"{gutter} |", f"{location.line} | {_one_line(text)}".rstrip(), f"{gutter} | {padding}{carets}"]


def _window(source_line: str, start: int) -> slice:
    if len(source_line) <= _EXCERPT_WIDTH:
        return slice(0, len(source_line))
    first = max(0, start - _EXCERPT_WIDTH // 2)
    return slice(first, min(len(source_line), first + _EXCERPT_WIDTH))


def _one_line(text: str) -> str:
    return printable(text.replace("\t", "    ").rstrip("\r\n")).replace("\n", "\\n")


def _display_width(text: str) -> int:
    """Columns of a terminal that `text` takes: wide characters take two, combining ones none."""
    return sum(_character_width(c) for c in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
