"""Limits that text must keep before it is parsed: a recursive-descent parser must not be led to exhaust the machine."""

from __future__ import annotations

import re

from msc.ir.locations import SourceText
from msc.support.diagnostics import MscError

MAXIMUM_NESTING = 64
"""Brackets and regions; xDSL's parser and printer recurse about five frames for each."""

MAXIMUM_DIGITS = 64
"""Of an integer, and of the integral part of a floating-point number."""

MAXIMUM_FRACTION_DIGITS = 1024
"""The exact decimal expansion of any f64 fits."""

MAXIMUM_WRITTEN_ELEMENTS = 1 << 16
"""Of one dense literal, written out; each costs microseconds to parse."""

MAXIMUM_ELEMENTS = 1 << 20
"""Of one dense literal given as one repeated value or in hexadecimal."""

_SCANNER = re.compile(
    r"""
      "(?:[^"\\\n]++|\\.)*+"?      # a string: its content is free
    | //[^\n]*+                     # a comment
    | ->                            # not a bracket
    | (?P<open>[(\[{]|(?<=\w)<)     # `<` opens after a word only: elsewhere it compares
    | (?P<close>[)\]}>])
    | (?P<fraction>\.[0-9]++)
    | (?P<digits>[0-9]++)
    """,
    re.VERBOSE,
)


def check_limits(source: SourceText) -> None:
    """Raise MSC0106 (nesting) or MSC0107 (digits) where the text exceeds a limit. Linear time."""
    depth = 0
    for match in _SCANNER.finditer(source.text):
        match match.lastgroup:
            case "open":
                depth += 1
                if depth > MAXIMUM_NESTING:
                    message = f"brackets are nested more than {MAXIMUM_NESTING} deep"
                    raise MscError(source.diagnostic("MSC0106", message, match.start(), match.end()))
            case "close":
                depth = max(0, depth - 1)
            case "digits" | "fraction":
                _check_digits(match, source)
            case _:
                pass


def _check_digits(match: re.Match[str], source: SourceText) -> None:
    limit = MAXIMUM_FRACTION_DIGITS if match.lastgroup == "fraction" else MAXIMUM_DIGITS
    length = match.end() - match.start()
    if length > limit:
        message = f"a number of {length} digits; at most {limit} are allowed"
        raise MscError(source.diagnostic("MSC0107", message, match.start(), match.end()))


def open_brackets(text: str) -> list[int]:
    """The offsets of the brackets that are not closed, outermost first."""
    found: list[int] = []
    for match in _SCANNER.finditer(text):
        if match.lastgroup == "open":
            found.append(match.start())
        elif match.lastgroup == "close" and found:
            found.pop()
    return found
