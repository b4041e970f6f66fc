"""Indented C text."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Lines:
    """Lines of C under construction."""

    depth: int = 0
    lines: list[str] = field(default_factory=list[str])

    def add(self, text: str) -> None:
        """A line, or several, at the current depth."""
        for line in text.split("\n"):
            self.lines.append("    " * self.depth + line if line else "")

    @property
    def last(self) -> str:
        """The last line without its indentation; empty at the start."""
        return self.lines[-1].strip() if self.lines else ""

    def remove_last(self) -> None:
        """Take the last line back."""
        self.lines.pop()

    @contextmanager
    def braces(self, head: str) -> Generator[None]:
        """`head {`, a deeper block, `}`."""
        self.add(f"{head} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.add("}")

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)


def wrap_prototype(head: str, items: Sequence[str], tail: str = ")") -> str:
    """A prototype or call on one line if it fits, else its items on lines under the parenthesis."""
    line = f"{head}{', '.join(items) or 'void'}{tail}"
    if len(line) <= 110:
        return line
    indent = " " * len(head) if len(head) < 40 else "        "
    return head + f",\n{indent}".join(items) + tail
