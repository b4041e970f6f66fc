"""mkdocs makes a site of the pages (the extra `docs`), without warnings; what it shows is what was written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CODE = re.compile(r"<pre.*?</pre>", re.DOTALL)
AS_WRITTEN = re.compile(r"^(?:\||[*-] |#+ |```).*$", re.MULTILINE)
"""Lines of tables, lists, headings and fences in the text of a site: they were not read as such."""
FETCHED = re.compile(r"<(?:script|img|link)[^>]*(?:src|href)=\"?https?://[^>]*>")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_tables_and_lists_are_read(site: Path) -> None:
    left = {page: AS_WRITTEN.findall(CODE.sub("", page.read_text("utf-8"))) for page in site.rglob("*.html")}
    assert len(left) > 20
    assert not {page.name: lines for page, lines in left.items() if lines}


def test_a_page_fetches_nothing_from_elsewhere(site: Path) -> None:
    assert not [found for page in site.rglob("*.html") for found in FETCHED.findall(page.read_text("utf-8"))]
