"""Programs that import MindSpore: which of its names they use, and their imports with msc in its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from msc.mindspore import refusals
from msc.mindspore.refusals import REFUSED
from msc.support.diagnostics import MscError

FIRST = "mindspore"


@dataclass(frozen=True)
class NameUse:
    """A name of MindSpore's in a file, and what is wrong with it: nothing, `refused` or `missing`."""

    line: int
    name: str
    state: str
    advice: str


@cache
def state_of(name: str) -> tuple[str, str]:
    """Whether msc has a dotted name of MindSpore's: "", "refused" or "missing"; and what to do."""
    parts = name.split(".")[1:]
    value: Any = import_module("msc")
    path = "msc"
    for part in parts:
        path = f"{path}.{part}"
        try:
            value = getattr(value, part)
        except AttributeError as error:
            try:
                value = import_module(path)
            except ImportError:
                return "missing", _advice(error)
        if not isinstance(value, ModuleType):
            break
    last = path.rpartition(".")[2]
    if last in REFUSED and getattr(value, "__module__", "") == refusals.__name__:
        return "refused", REFUSED[last]
    return "", ""


def _advice(error: AttributeError) -> str:
    diagnostics = error.diagnostics if isinstance(error, MscError) else ()
    return next((d.help for d in diagnostics if d.help), "")


def uses(text: str) -> Iterator[NameUse]:
    """The names of MindSpore's in a program, at their lines, each of them once a line."""
    tree = ast.parse(text)
    known: dict[str, str] = {}
    found: set[tuple[int, str]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == FIRST:
                    known[alias.asname or FIRST] = alias.name if alias.asname else FIRST
                    found.add((node.lineno, alias.name))
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] == FIRST:
            for alias in node.names:
                name = f"{node.module}.{alias.name}" if alias.name != "*" else str(node.module)
                known[alias.asname or alias.name] = name
                found.add((node.lineno, name))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (dotted := _dotted(node)) is not None:
            root, _, rest = dotted.partition(".")
            if root in known:
                found.add((node.lineno, f"{known[root]}.{rest}"))
    for line, name in sorted(found):
        yield NameUse(line, name, *state_of(name))


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    inner = _dotted(node.value) if isinstance(node, ast.Attribute) else None
    return None if inner is None or not isinstance(node, ast.Attribute) else f"{inner}.{node.attr}"


def ported(text: str) -> str:
    """The program with msc in the place of MindSpore: import statements change, nothing else."""
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        place = node.lineno - 1 if isinstance(node, ast.Import | ast.ImportFrom) else -1
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] == FIRST:
            lines[place] = re.sub(rf"\bfrom(\s+){FIRST}\b", r"from\1msc", lines[place], count=1)
        elif isinstance(node, ast.Import) and any(a.name.partition(".")[0] == FIRST for a in node.names):
            made = [_import(alias) for alias in node.names]
            indent = " " * node.col_offset
            end = node.end_lineno or node.lineno
            if len({a for m in made for a in m}) and end == node.lineno and lines[place].strip().startswith("import"):
                ending = "\n" if lines[place].endswith("\n") else ""
                lines[place] = indent + f"\n{indent}".join(s for m in made for s in m) + ending
    return "".join(lines)


def _import(alias: ast.alias) -> list[str]:
    first, _, rest = alias.name.partition(".")
    if first != FIRST:
        return [f"import {alias.name} as {alias.asname}" if alias.asname else f"import {alias.name}"]
    here = f"msc.{rest}" if rest else "msc"
    if alias.asname:
        return [f"import {here} as {alias.asname}"]
    return [*([f"import {here}"] if rest else []), f"import msc as {FIRST}"]


def programs(path: Path) -> list[Path]:
    """A script, or all of a folder."""
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]
