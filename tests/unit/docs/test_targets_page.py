"""docs/targets.md: its tables are those of `msc.targets.machine`, its example loads."""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from msc.targets.catalogue import machine_named, machine_names
from msc.targets.machine import FIGURES, Machine

PAGE = Path(__file__).parents[3] / "docs" / "targets.md"


def tables() -> str:
    """The figures of a file, table by table, as the page has them."""
    parts = [("", Machine), *((f"[{name}]", class_) for name, class_ in FIGURES.items())]
    return "".join(_table(title, class_) for title, class_ in parts)


def _table(title: str, class_: type) -> str:
    named = any(f.name == "name" for f in fields(class_)) and title
    head = f"`{title[:-1]}.NAME]`" if named else f"`{title}`" if title else "outside tables"
    lines = (f"| `{f.name}` | {f.metadata['text']} | {_default(f)} |" for f in fields(class_) if "text" in f.metadata)
    return "\n".join(["", f"| {head} | | where not given |", "|---|---|---|", *lines, ""])


def _default(figure: Field[Any]) -> str:
    if figure.default is MISSING:
        return ""
    return "none" if not figure.default else f"`{figure.default}`"


def test_the_tables_are_those_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = page[page.index("<!-- figures -->\n") + len("<!-- figures -->\n") : page.index("<!-- end -->")]
    assert shown == tables()


def test_every_machine_is_named() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in machine_names())


def test_the_example_is_a_machine(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "cube.toml").write_text(text, encoding="utf-8")
    machine = machine_named(str(tmp_path / "cube.toml"))
    assert machine.matrix[0].shape == (16, 16, 16)
    assert machine.scopes == ("PAD", "SUMS")
