"""What notebooks show of objects: tables in HTML, in the notebook's own style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msc.support.escaping import markup_text


def html_table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; text stands left and numbers right."""
    head = "".join(f"<th>{markup_text(each)}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    top = f"<thead><tr>{head}</tr></thead>" if heads else ""
    return f"<table><caption>{markup_text(caption)}</caption>{top}<tbody>{body}</tbody></table>"


def html_text(caption: str, text: str) -> str:
    """Text in lines below a caption."""
    return f"<div>{markup_text(caption)}<pre>{markup_text(text)}</pre></div>"


def _cell(value: object) -> str:
    side = "right" if isinstance(value, int | float) else "left"
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return f'<td style="text-align: {side}">{markup_text(text)}</td>'
