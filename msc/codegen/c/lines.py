"""Indented C text."""

from __future__ import annotations

from collections.abc import Generator
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
