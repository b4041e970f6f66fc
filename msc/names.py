"""`python -m msc.names`: the names of MindSpore that exist here, module by module."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from importlib import import_module

_WIDTH = 118


def surfaces() -> Iterator[tuple[str, list[str]]]:
    """What users import, with the names that are there."""
    ops = import_module("msc.ops")
    yield "msc.Tensor", sorted(name for name in dir(ops.Tensor) if not name.startswith("_"))
    yield "msc.nn", list(import_module("msc.nn").__all__)
    operators = [name for name in ops.__all__ if name[0].isupper()]
    yield "msc.ops, operators", operators
    yield "msc.ops, functions", [name for name in ops.__all__ if name not in operators]
    yield "msc.numpy", list(import_module("msc.numpy").__all__)
    for name in ("initializer", "dtype", "parameter", "tensor", "seed"):
        yield f"msc.common.{name}", list(import_module(f"msc.common.{name}").__all__)
    for name in ("dataset", "dataset.vision", "dataset.transforms", "dataset.text", "dataset.audio"):
        yield f"msc.{name}", list(import_module(f"msc.{name}").__all__)
    yield "msc.train", list(import_module("msc.train").__all__)


def text() -> str:
    """All surfaces, one a paragraph."""
    parts = [f"{title} ({len(names)})\n{_wrapped(names)}" for title, names in surfaces()]
    return "\n\n".join(parts)


def _wrapped(names: list[str]) -> str:
    lines = textwrap.wrap(" ".join(names), _WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    return textwrap.indent("\n".join(lines), "  ")


if __name__ == "__main__":
    print(text())
