"""C is printed from IR: no module of the generator reads what was emitted; those listed read other text."""

import ast
from pathlib import Path

from msc.codegen import c

FOLDER = Path(c.__file__).parent

READ_OTHER_TEXT = {
    "names.py": "names that users gave",
    "prelude.py": "the texts of functions that programs may contain",
    "text/__init__.py": "the same, in files",
}


def with_regular_expressions() -> set[str]:
    found = set[str]()
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if "re" in modules or (isinstance(node, ast.ImportFrom) and node.module == "re"):
                found.add(path.relative_to(FOLDER).as_posix())
    return found


def test_no_other_module_matches_regular_expressions() -> None:
    assert with_regular_expressions() == READ_OTHER_TEXT.keys()
