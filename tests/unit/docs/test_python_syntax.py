"""The table of supported syntax: every example runs, in both modes, and becomes what the table says."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, ops
from tests.unit.frontend.test_constructs import agree

DOCUMENT = Path(__file__).parents[3] / "docs" / "python-api.md"
ROW = re.compile(r"^\| (?P<name>[^|]+) \| (?P<example>`.*`) \| (?P<becomes>graph|known|split) \|$", re.MULTILINE)
ROWS = {m["name"]: (m["example"], m["becomes"]) for m in ROW.finditer(DOCUMENT.read_text("utf-8"))}


def function_of(name: str, example: str) -> Any:
    """The function around an example."""
    lines = [code.strip("`") for code in example.split("<br>")]
    source = "def example(x, n):\n" + "".join(f"    {line}\n" for line in lines) + "    return y\n"
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"np": np, "ops": ops, "Tensor": Tensor, "msc": msc}
    exec(compile(source, file, "exec"), scope)
    return scope["example"]


def test_the_table_is_found() -> None:
    assert len(ROWS) > 40


@pytest.mark.parametrize("name", ROWS)
def test_example(name: str) -> None:
    example, becomes = ROWS[name]
    function = function_of(name, example)
    compiled = msc.jit(function, backend="interpreter")
    for sign, n in ((1, 3), (-1, 0)):
        arguments = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3) * sign), Tensor(n)
        agree(function(*arguments), compiled(*arguments))
    assert ("split" in msc.jit.explain(compiled)) == (becomes == "split")
