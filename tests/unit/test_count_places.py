"""What an addition to msc touches stays few files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import count_places
from tools.count_places import Addition, additions, places


@pytest.mark.parametrize("addition", additions(), ids=lambda addition: addition.example)
def test_an_addition_touches_few_files(addition: Addition) -> None:
    found = places(addition)
    assert 0 < len(found) <= addition.most, "\n".join(map(str, found))


def test_a_file_that_lists_a_thing_is_counted_and_one_that_uses_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_places, "ROOT", tmp_path)
    texts = {
        "table.py": 'TABLE = {"swirl": 1}',
        "defined.py": "def swirl(): ...",
        "imported.py": "from ops import turn as swirl",
        "text.h": "float swirl_{f}(float x);",
        "a.toml": 'name = "swirl"',
        "b.toml": 'name = "swirl"',
        "use.py": 'x = apply("swirl", y) + TABLE["swirl"]',
        "docs.py": '"""About swirl."""',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    found = places(Addition("", "swirl", frozenset({"swirl"}), (".",)))
    assert {str(file) for file in found} == {"table.py", "defined.py", "imported.py", "text.h", "a.toml"}
