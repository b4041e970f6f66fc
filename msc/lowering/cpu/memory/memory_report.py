"""The memory plan in readable form: a table of the buffers, and a picture of the arena over time. Plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msc.lowering.cpu.memory.arena import ALIGNMENT, Interval, aligned

_PICTURE_ROWS = 16
_PICTURE_COLUMNS = 64
_SYMBOLS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True)
class PlannedBuffer:
    """A buffer and its place; `in_place_of` names the buffer whose place it took over."""

    name: str
    bytes: int
    offset: int
    live: Interval
    in_place_of: str | None = None


@dataclass(frozen=True)
class MemoryPlan:
    """What `plan-memory` decided for an entry function. `steps` says what touches buffers, in order."""

    function: str
    buffers: tuple[PlannedBuffer, ...]
    steps: tuple[str, ...]
    workspace_bytes: int
    lower_bound: int
    weights_bytes: int
    strategy: str
    alignment: int = ALIGNMENT

    @property
    def bytes_without_reuse(self) -> int:
        """What the buffers take side by side."""
        return sum(aligned(b.bytes, self.alignment) for b in self.buffers)

    def __str__(self) -> str:
        return "\n".join((*self._summary(), *_table(self._rows()), *self._picture(), *self._legend())) + "\n"

    def _summary(self) -> Iterator[str]:
        yield f"memory plan of @{self.function}"
        yield (
            f"  workspace {self.workspace_bytes} bytes by {self.strategy}; lower bound {self.lower_bound},"
            f" without reuse {self.bytes_without_reuse}"
        )
        yield f"  weights   {self.weights_bytes} bytes"

    def _rows(self) -> list[tuple[str, ...]]:
        header = ("", "buffer", "bytes", "offset", "live", "in place of")
        rows = [
            (_symbol(i), b.name, str(b.bytes), str(b.offset), str(b.live), b.in_place_of or "-")
            for i, b in enumerate(self.buffers)
        ]
        return [header, *rows] if rows else []

    def _picture(self) -> Iterator[str]:
        """One row for each stretch of the arena, its end addresses on the left; one column for each step."""
        if not self.workspace_bytes or len(self.steps) > _PICTURE_COLUMNS:
            return
        height = min(_PICTURE_ROWS, -(-self.workspace_bytes // 64))
        yield ""
        for row in reversed(range(height)):
            low, high = (self.workspace_bytes * r // height for r in (row, row + 1))
            cells = "".join(self._cell(low, high, step) for step in range(len(self.steps)))
            yield f"  {low:>12} |{cells}|"

    def _cell(self, low: int, high: int, step: int) -> str:
        """The buffer with the most bytes of a stretch at a step."""
        best, most = ".", 0
        for i, b in enumerate(self.buffers):
            covered = min(high, b.offset + b.bytes) - max(low, b.offset)
            if b.live.first <= step <= b.live.last and covered > most:
                best, most = _symbol(i), covered
        return best

    def _legend(self) -> Iterator[str]:
        yield ""
        yield from (f"  step {i}: {step}" for i, step in enumerate(self.steps))


def _symbol(index: int) -> str:
    return _SYMBOLS[index % len(_SYMBOLS)]


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    yield ""
    for row in rows:
        cells = (c.rjust(w) if i in (2, 3) else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        yield ("  " + "  ".join(cells)).rstrip()
