"""Documentation shows what its commands print; its Python runs, its models are read, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from msc.driver.passes.opt import OptOptions, run_opt
from tools.document_examples import DOCUMENTS, ROOT, blocks, refreshed

LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)")
TITLED = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
HEREDOC = re.compile(r"^\$ cat > (\S+) <<'END'\n((?:>.*\n)*?)> END$", re.MULTILINE)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


DOCS = ROOT / "docs"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_examples_print_what_is_shown(path: Path) -> None:
    document = path.read_text("utf-8")
    assert refreshed(document) == document, f"python tools/document_examples.py {path.relative_to(ROOT)}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_modules_are_read(path: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.mir"
    for block in blocks(path.read_text("utf-8")):
        if block.language == "mlir" and block.text.startswith(("builtin.module", "func.func")):
            model.write_text(block.text, "utf-8")
            assert run_opt(str(model), OptOptions(""))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_files_of_examples_are_those_shown(path: Path) -> None:
    """A block with a title is that file; the folder of a page has the files that the page writes, and shows or runs."""
    page = path.read_text("utf-8")
    for file, text in TITLED.findall(page):
        assert (ROOT / file).read_text("utf-8") == text, file
    written = {Path(name).name: re.sub(r"^> ?", "", text, flags=re.MULTILINE) for name, text in HEREDOC.findall(page)}
    for file in (ROOT / "examples" / path.stem.replace("-", "_")).rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            assert file.name not in written or file.read_text("utf-8") == written[file.name], file
            assert file.name in page, file


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for file, anchor in LINK.findall(path.read_text("utf-8")):
        target = path.parent / file if file else path
        assert target.exists(), file
        assert not anchor or anchor in anchors(target), f"{file}#{anchor}"


def anchors(path: Path) -> set[str]:
    """What a link may name in a page: its headings in small letters, with `-` for spaces and no other signs."""
    titles = HEADING.findall(path.read_text("utf-8"))
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_no_page_has_marks_of_a_merge(path: Path) -> None:
    assert not re.findall(r"^(?:<{7}|={7}|>{7})(?: .*)?$", path.read_text("utf-8"), re.MULTILINE)


def test_every_page_is_in_the_index() -> None:
    index = DOCS / "index.md"
    linked = {(DOCS / file).resolve() for file, _ in LINK.findall(index.read_text("utf-8"))}
    assert set(DOCS.rglob("*.md")) - linked == {index}


def test_every_example_has_a_page() -> None:
    listed = (ROOT / "examples" / "README.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| \[[^]]+\]\(\.\./docs/([\w-]+\.md)\) \|$", listed, re.MULTILINE))
    assert rows.keys() == {path.name for path in (ROOT / "examples").iterdir() if path.is_dir()}
    for folder, page in rows.items():
        assert f"examples/{folder}" in (DOCS / page).read_text("utf-8"), page


def test_the_route_names_functions_that_exist() -> None:
    """In a row of architecture.md, `folder/file.py:name`, a file or a folder, of msc."""
    rows = re.findall(r"^\| `([\w/.]+?)(?::([\w.]+))?`", (DOCS / "architecture.md").read_text("utf-8"), re.MULTILINE)
    assert len(rows) > 30
    for place, name in rows:
        path = ROOT / "msc" / place
        assert path.exists(), place
        for part in filter(None, str(name).split(".")):
            assert re.search(rf"^ *(def|class) {part}\b", path.read_text("utf-8"), re.MULTILINE), f"{place}:{name}"


def test_files_that_pages_name_exist() -> None:
    """In a page, `folder/file.py` is one of the project's, from any folder on, or of the files that the page writes."""
    folders = (ROOT / name for name in ("msc", "tests", "benchmarks", "examples", "samples", "tools"))
    there = [path.as_posix() for folder in folders for path in folder.rglob("*.py")]
    for path in DOCUMENTS:
        page = path.read_text("utf-8")
        for file in re.findall(r"`((?:[a-z_]\w*/)+\w+\.py)\b", page):
            assert any(f"/{name}".endswith(f"/{file}") for name in there) or f"> {file}" in page, f"{path.name}: {file}"


def test_pages_that_messages_name_exist() -> None:
    sources = (path.read_text("utf-8") for path in (ROOT / "msc").rglob("*.py"))
    named = {page for text in sources for page in re.findall(r"\bdocs/[\w/-]+\.md\b", text)}
    assert "docs/adding-an-operator.md" in named
    assert not [page for page in named if not (ROOT / page).is_file()]
