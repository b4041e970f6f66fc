"""docs/targets.md: its tables are those of `msc.targets.machine`, its example loads."""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, fields
from pathlib import Path
from textwrap import indent
from typing import Any

from click.testing import CliRunner

from msc.driver.cli import command
from msc.targets.abilities import Shape, UnitOperand
from msc.targets.catalogue import machine_named, machine_names
from msc.targets.machine import FIGURES, Machine

PAGE = Path(__file__).parents[3] / "docs" / "targets.md"


def tables() -> str:
    """The figures of a file, table by table, as the page has them."""
    parts = [("", Machine), *((f"[{name}]", class_) for name, class_ in FIGURES.items())]
    parts += [("[unit.NAME] shape, step", Shape), ("[unit.NAME] a, b, c", UnitOperand)]
    return "".join(_table(title, class_) for title, class_ in parts)


def _table(title: str, class_: type) -> str:
    named = title in [f"[{name}]" for name, each in FIGURES.items() if any(f.name == "name" for f in fields(each))]
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


def examples(language: str) -> list[str]:
    """The texts of one language that the page shows."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_schedule_for_the_matrix_unit_is_the_one_shown(tmp_path: Path) -> None:
    (tmp_path / "cube.toml").write_text(examples("toml")[0], encoding="utf-8")
    (tmp_path / "product.py").write_text(examples("python")[0], encoding="utf-8")
    (shown,) = (text for text in examples("text") if text.startswith("for m tile "))
    inputs = ["--input", "a=200x300xf16", "--input", "b=300x480xf16", "--input", "c=480xf16"]
    words = ["explain", f"{tmp_path / 'product.py'}:Product", *inputs, "--march", str(tmp_path / "cube.toml")]
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 0, result.output
    assert indent(shown, " " * 12) in result.output


def test_the_examples_are_machines(tmp_path: Path) -> None:
    machines = list[Machine]()
    for number, text in enumerate(examples("toml")):
        path = tmp_path / f"{number}.toml"
        path.write_text(text, encoding="utf-8")
        machines.append(machine_named(str(path)))
    cube, levels = machines
    assert Shape(16, 16, 16) in [unit.shape for unit in cube.units]
    assert cube.scopes == ("PAD", "SUMS")
    assert [level.name for level in levels.levels] == ["L1", "L2", "HBM_CACHE", "HBM"]
