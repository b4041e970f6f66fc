"""From code to source."""

from __future__ import annotations

import linecache
from typing import Any

import pytest

from msc.frontend.reader.source import source_of

TEXT = "def double(x):\n    return x * 2\n"


@pytest.mark.parametrize("text", [TEXT, f"from __future__ import annotations\n{TEXT}"])
@pytest.mark.parametrize("inherits", [False, True])
def test_texts_that_programs_compile_are_found(text: str, inherits: bool) -> None:
    """Notebooks compile cells with the features that earlier cells imported; this file does so with `annotations`."""
    file, scope = f"<cell {inherits} {len(text)}>", dict[str, Any]()
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec", dont_inherit=not inherits), scope)
    found = source_of(scope["double"].__code__)
    assert found is not None
    assert found.node.lineno == text.count("\n") - 1
