"""Tables that commands write into pages of the documentation."""

from __future__ import annotations

from pathlib import Path


def write_marked(page: Path, mark: str, table: str) -> None:
    """Put a table into a page, between `<!-- mark: begin -->` and `<!-- mark: end -->`."""
    begin, end = (f"<!-- {mark}: {place} -->" for place in ("begin", "end"))
    before, _, rest = page.read_text("utf-8").partition(begin)
    page.write_text(f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}", "utf-8")
