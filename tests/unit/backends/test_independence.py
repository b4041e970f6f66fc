"""No package but its own and the registry imports a concrete back end or its code generator."""

import re
from pathlib import Path

import msc

PACKAGE = Path(msc.__file__).parent
CONCRETE = re.compile(r"msc\.(backends\.cpu|codegen\.c)\b")
OWN = {"backends", "codegen"}


def test_no_concrete_back_end_is_imported() -> None:
    found = list[str]()
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] not in OWN:
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                if re.match(r"\s*(from|import)\s", line) and CONCRETE.search(line):
                    found.append(f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}")
    assert not found
