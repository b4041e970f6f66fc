"""Where control goes after a statement: on, out of a loop, out of the function; or where a tensor decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msc.frontend.reader.numbers import RuntimeNumber

NORMAL, BREAK, CONTINUE, RETURN = range(4)


class Missing:
    """The value of what does not exist on a path; whatever stands for it is never used."""

    def __repr__(self) -> str:
        return "<missing>"


MISSING = Missing()


@dataclass(frozen=True)
class Outcome:
    """`code` is one of the constants above, or a runtime number among `codes`; `value` is what is returned, if so."""

    code: int | RuntimeNumber
    codes: frozenset[int]
    value: Any = MISSING

    @staticmethod
    def of(code: int, value: Any = MISSING) -> Outcome:
        return Outcome(code, frozenset((code,)), value)

    @property
    def is_known(self) -> bool:
        return not isinstance(self.code, RuntimeNumber)

    def is_code(self, code: int) -> bool:
        return self.codes == frozenset((code,))


def codes_of(outcome: Outcome | None) -> frozenset[int]:
    """Where control may go."""
    return frozenset((NORMAL,)) if outcome is None else outcome.codes
