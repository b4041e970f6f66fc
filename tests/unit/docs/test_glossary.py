"""The glossary holds: words that it replaces stand nowhere in the compiler."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
ALLOWED = {
    ("set entry", "msc/ir/parsing.py"): "the error for models with the former name of the operation",
}
"""(word, file) -> why the word stands there."""


def replaced() -> Iterator[str]:
    table = GLOSSARY.partition("## Words that are no longer used")[2]
    for row in re.findall(r"^\| ([^|]+) \| [^|]+ \|$", table, re.MULTILINE):
        if row != "not":
            yield row


def as_written(word: str) -> re.Pattern[str]:
    """The word in prose, also over the end of a line, and in names: `kept arrays`, `kept_arrays`, `KeptArrays`."""
    parts = word.split()
    separated = r"(?:[-_]|\s+(?:#\s*)?)".join(parts)
    joined = "".join(part.capitalize() for part in parts)
    return re.compile(rf"(?<![a-zA-Z])(?i:{separated})(?![a-zA-Z])" + (rf"|{joined}" if len(parts) > 1 else ""))


def test_the_table_is_read() -> None:
    assert {"first cache", "staged", "overlaid"} <= set(replaced())


@pytest.mark.parametrize("word", sorted(replaced()))
def test_replaced_words_are_gone(word: str) -> None:
    pattern = as_written(word)
    for path in sorted((ROOT / "msc").rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        found = pattern.search(path.read_text("utf-8"))
        if (word, file) not in ALLOWED:
            assert found is None, f"{file}: '{found and found[0]}'"


def test_exceptions_are_needed() -> None:
    for word, file in ALLOWED:
        assert as_written(word).search((ROOT / file).read_text("utf-8")), (word, file)
