"""Where an operation comes from: reading, making and merging xDSL's location attributes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from io import StringIO
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    StringAttr,
)
from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer
from xdsl.utils.hints import isa

from msc.support.diagnostics import Diagnostic, Location

_FUSED_LIMIT = 16
"""A kernel fused of hundreds of operations keeps its first origins: enough to read, bounded to print."""


class LineTable:
    """Offsets of a text to lines and columns, 1-based, by binary search."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column of an offset; the end of the text has a position too."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str | None:
        """The text of a 1-based line without its newline, or None when there is no such line."""
        if not 1 <= number <= len(self._starts):
            return None
        end = self._starts[number] - 1 if number < len(self._starts) else len(self._text)
        return self._text[self._starts[number - 1] : end]


class SourceText:
    """The text of a file, and diagnostics about stretches of it."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name

    @cached_property
    def lines(self) -> LineTable:
        """The lines of the text."""
        return LineTable(self.text)

    def location(self, offset: int) -> Location:
        """The place of an offset."""
        return Location(self.name, *self.lines.position(offset))

    def diagnostic(
        self, code: str, message: str, start: int, stop: int, *, notes: tuple[str, ...] = (), help: str | None = None
    ) -> Diagnostic:
        """A diagnostic about `text[start:stop]`; the carets stay on its first line."""
        location = self.location(start)
        line = self.lines.line(location.line) or ""
        length = max(1, min(stop - start, len(line) - location.column + 1))
        return Diagnostic(code, message, location, line, length, notes, help)


def file_location(file: str, line: int, column: int) -> FileLineColLoc:
    """The location attribute of a place in a file."""
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))


_WRITTEN: WeakKeyDictionary[Operation, Location] = WeakKeyDictionary()
"""Of operations whose text says where they come from, their own places."""


def note_written(op: Operation, place: Location) -> None:
    """Note where an operation stands whose text says that it comes from elsewhere."""
    _WRITTEN[op] = place


def source_location(op: Operation) -> Location | None:
    """The place in a file that an operation comes from: of a fused one, its first known origin.

    With it comes the place where the operation was read, if its text says that it comes from elsewhere.
    """
    origin, written = location_of(op.location), _WRITTEN.get(op)
    if origin is None or written is None:
        return origin or written
    return replace(origin, written=written)


def location_of(attribute: Attribute) -> Location | None:
    """The first place in a file that a location attribute names, or None."""
    match attribute:
        case FileLineColLoc():
            return Location(attribute.filename.data, attribute.line.data, attribute.column.data)
        case CallSiteLoc():
            return location_of(attribute.callee) or location_of(attribute.caller)
        case NameLoc():
            return location_of(attribute.location)
        case FusedLoc(locations=ArrayAttr() as origins):
            return next(filter(None, map(location_of, origins)), None)
        case _:
            return None


def fused_location(origins: Iterable[LocationAttr]) -> LocationAttr:
    """The location of what was made of several operations: their distinct origins, in order, without unknown ones."""
    distinct = list(dict.fromkeys(leaf for origin in origins for leaf in _leaves(origin)))[:_FUSED_LIMIT]
    match distinct:
        case []:
            return UNKNOWN_LOC
        case [single]:
            return single
        case _:
            return FusedLoc(ArrayAttr[Attribute](distinct), NoneAttr())


def set_location(op: Operation, location: LocationAttr) -> None:
    """Give `location` to an operation and all operations in its regions that have none."""
    if location == UNKNOWN_LOC:
        return
    for inner in op.walk():
        if inner.location == UNKNOWN_LOC:
            inner.location = location


def _leaves(location: LocationAttr) -> list[LocationAttr]:
    if isinstance(location, FusedLoc) and isa(location.locations, ArrayAttr[Attribute]):
        return [leaf for leaf in location.locations if isinstance(leaf, LocationAttr) and leaf != UNKNOWN_LOC]
    return [] if location == UNKNOWN_LOC else [location]


class SourcePrinter(Printer):
    """xDSL's printer, with one location an operation, at its end.

    xDSL puts one behind an operation's type, too: in front of the regions of a custom form as `scf.while` has, where
    no parser looks for it.
    """

    def print_operation_type(self, op: Operation) -> None:
        has_custom_form = not self.print_generic_format and type(op).print is not Operation.print
        shown, self.print_debuginfo = self.print_debuginfo, self.print_debuginfo and not has_custom_form
        super().print_operation_type(op)
        self.print_debuginfo = shown


def format_module(module: ModuleOp, *, generic: bool = False, debuginfo: bool = False) -> str:
    """The text of a module, with a newline at its end."""
    stream = StringIO()
    SourcePrinter(stream, print_generic_format=generic, print_debuginfo=debuginfo).print_op(module)
    return stream.getvalue() + "\n"
