"""Text of others in the languages that msc writes: nothing gets out of it, and one module makes it harmless."""

import ast
import csv
import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

import msc
from msc.support import escaping

PACKAGE = Path(msc.__file__).parent
HOSTILE = (
    "", "*/", "/*", "*\\", "//", '"', "'", "\\", "\\\n", "??/", "???/", "\n", "\r\n", "\0", "\x1b[31m", "[/x]",
    "[bold]", ":smile:", "\u2028", "\u0085", "\u202e", "\u2066", "\ud800", "/../../x", "..", ".", "a/b", "-rf", "~",
    "$(x)", "`x`", "<script>", "]]>", "-->", "&amp;", "=1+1", "@x", "int", "main", "NUL", "con.txt", "%s%n", "{x}", "é",
    "a" * 10_000,
)  # fmt: skip
"""Names that a model may have."""

FIELDS = set(
    "name version target prototype_lines states workspace macro team flags assemble objects threads_flag threads "
    "open_sizes bytes".split()
)
"""What templates of C have in comments: names that `module_identifier` made, numbers, and what `escaping` made."""
SAFE = {"comment_text", "c_comment"}
PIECE = re.compile(r"/\*|\*/")


@pytest.mark.parametrize("length", range(1, 5))
def test_no_text_ends_a_comment(length: int) -> None:
    for letters in itertools.product("*/\\?\n ", repeat=length):
        comment = escaping.c_comment("".join(letters), "x")
        assert comment.count("*/") == comment.count("/*") == 1
        assert "??" not in comment
        assert "\\" not in comment
        assert comment.count("\n") == 1


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_stays_text(text: str) -> None:
    comment = escaping.c_comment(text)
    assert PIECE.findall(comment) == ["/*", "*/"]
    assert comment.isascii()
    assert comment.isprintable()
    literal = escaping.c_string(text)
    assert re.fullmatch(r'"(?:[^"\\?\n]|\\[0-7]{3}|\\["\\?])*"', literal)
    assert literal.isascii()
    assert literal.isprintable()
    name = escaping.file_name(text)
    assert re.fullmatch(r"[A-Za-z_][\w.]{0,96}", name, re.ASCII)
    assert Path(name).name == name
    assert escaping.file_name(text, {name.lower()}).lower() != name.lower()
    assert escaping.shown(text).isprintable()
    assert len(escaping.shown(text)) < 2000
    element = ElementTree.fromstring(f'<a b="{escaping.markup_text(text)}">{escaping.markup_text(text)}</a>')
    assert element.text in (None, element.get("b"), escaping.printable(text))
    assert not list(element)
    table = escaping.table_text(("head", text), [(text, "end")], 10_000)
    assert len(table.splitlines()) == 2
    assert table.rstrip().endswith("end")
    [[cell, end]] = csv.reader(io.StringIO(escaping.csv_text([(text, "end")])))
    assert end == "end"
    assert not cell.startswith(("=", "@", "\t"))


def test_trees_are_read_as_python_does() -> None:
    assert list(unsafe(ast.parse("f'/* {x} */'")))
    assert list(unsafe(ast.parse("'/* ' + x")))
    assert list(unsafe(ast.parse("'/* {x} */'.format(x=1)")))
    assert list(unsafe(ast.parse("f'''/* a\n{x}'''")))
    assert not list(unsafe(ast.parse("f'/* a */ {x} /* {comment_text(x)} */'")))


def test_nothing_else_writes_comments_around_text() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name not in ("escaping.py", "marks.py") and path.parent.name != "code_tables"
        for line in unsafe(ast.parse(path.read_text("utf-8")))
    ]
    assert not found, "use msc.support.escaping.c_comment"


def unsafe(tree: ast.AST) -> Iterator[int]:
    """Lines where text stands in a comment of C that `escaping` did not make."""
    inside = {id(piece) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for piece in node.values}
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            open_ = False
            for piece in node.values:
                if isinstance(piece, ast.Constant):
                    for mark in PIECE.findall(str(piece.value)):
                        open_ = mark == "/*"
                elif open_ and not _is_safe(piece):
                    yield piece.lineno
            if open_:
                yield node.lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside | documents:
            marks = PIECE.findall(node.value)
            comments = re.findall(r"/\*.*?\*/", node.value, re.S)
            fields = {field for comment in comments for field in re.findall(r"(?<!{){(\w+)}(?!})", comment)}
            if (marks.count("/*") != marks.count("*/") and "/*" in marks) or fields - FIELDS:
                yield node.lineno


def _is_safe(piece: ast.expr) -> bool:
    value = piece.value if isinstance(piece, ast.FormattedValue) else piece
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in SAFE


def test_nothing_else_writes_markup_and_tables() -> None:
    makers = re.compile(r"^\s*(?:from|import) (?:html|csv|rich)\b", re.M)
    wrong = [path for path in PACKAGE.rglob("*.py") if makers.search(path.read_text("utf-8"))]
    assert [path.name for path in wrong if path.parent.name != "dataset"] == ["escaping.py"]
