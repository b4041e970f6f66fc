"""Documentation shows what its commands print; its Python runs, its models are read, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from msc.driver.passes.opt import OptOptions, run_opt
from tools.document_examples import DOCUMENTS, ROOT, blocks, refreshed

LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


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
def test_links_lead_somewhere(path: Path) -> None:
    targets = LINK.findall(path.read_text("utf-8"))
    assert not [target for target in targets if not (path.parent / target).exists()]
