import re
from pathlib import Path

import msc
from msc.support.code_tables import (
    calls,
    data,
    davinci,
    files,
    importing,
    internal,
    parallel,
    passes,
    python_api,
    quantisation,
    syntax,
    targets,
    verification,
    weights,
)
from msc.support.codes import CODES

USED = re.compile(r'"(MSC\d{4})"')
TABLES = (
    files,
    syntax,
    verification,
    weights,
    passes,
    targets,
    calls,
    importing,
    python_api,
    internal,
    davinci,
    parallel,
    quantisation,
    data,
)
FAMILIES = ("00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13")


def codes_in_use() -> set[str]:
    paths = [path for path in Path(msc.__file__).parent.rglob("*.py") if "code_tables" not in path.parts]
    return {code for path in paths for code in USED.findall(path.read_text("utf-8"))}


def codes_in_tests() -> set[str]:
    tests = Path(__file__).parents[2]
    paths = [*tests.rglob("*.py"), *tests.rglob("*.mir")]
    return {code for path in paths for code in re.findall(r"MSC\d{4}", path.read_text("utf-8"))}


def test_every_code_that_is_used_is_explained() -> None:
    assert codes_in_use() <= CODES.keys()


def test_every_explained_code_is_used() -> None:
    assert CODES.keys() <= codes_in_use()


def test_every_code_has_a_test() -> None:
    assert not sorted(codes_in_use() - codes_in_tests())


def test_codes_are_unique_and_in_their_family() -> None:
    assert len(CODES) == sum(len(table.CODES) for table in TABLES)
    for family, table in zip(FAMILIES, TABLES, strict=True):
        assert all(entry.code.startswith(f"MSC{family}") for entry in table.CODES)


def test_entries_are_sentences() -> None:
    for entry in CODES.values():
        assert entry.title
        assert entry.explanation.endswith(".")
