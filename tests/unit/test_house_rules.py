"""Rules about the files themselves: length, names, unfinished work; and what importing msc costs."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("msc", "tests", "samples", "benchmarks")
MAXIMUM_LINES = 600
FORBIDDEN_NAMES = {"util", "utils", "helper", "helpers", "misc", "common"}
MINDSPORE_COMMON = ROOT / "msc" / "common"
"""The one exception: MindSpore's users import `common.initializer`, `common.dtype` and the like by these names."""
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME)\b|except Exc" + r"eption\b|except\s*:")
CLASS = re.compile(r"^class ([A-Za-z]\w*)", re.M)
OF_MINDSPORE = set(
    "ASGD Adadelta Adagrad Adam Constant Event Identity Invert Layout Linear Normal OneHot Optimizer Pad "
    "ParameterUpdate Range ReduceLROnPlateau Rprop SGD Symbol Unfold Uniform".split()
)
"""Names that MindSpore has in several modules: initializers, cells, transforms, distributions, `mint`."""
HEAVY = {"xdsl", "numpy", "islpy", "onnx", "click", "rich"}


def sources() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_files_are_short() -> None:
    long = [f"{path}: {n}" for path in sources() if (n := len(path.read_text("utf-8").splitlines())) >= MAXIMUM_LINES]
    assert not long


def test_names_say_something() -> None:
    named = [path for path in sources() if FORBIDDEN_NAMES & {path.stem, *path.relative_to(ROOT).parts}]
    assert not [path for path in named if path.parent != MINDSPORE_COMMON]


def test_class_names_mean_one_thing() -> None:
    """No two files define public classes of one name, except for names that MindSpore's users import."""
    files = (path for path in sources() if path.is_relative_to(ROOT / "msc"))
    found = Counter(name for path in files for name in CLASS.findall(path.read_text("utf-8")))
    assert {name for name, count in found.items() if count > 1} == OF_MINDSPORE


def test_nothing_is_unfinished() -> None:
    assert not [path for path in sources() if UNFINISHED.search(path.read_text("utf-8"))]


@pytest.mark.parametrize("statement", ["import msc", "import msc; msc.MscError"])
def test_importing_msc_loads_nothing_heavy(statement: str) -> None:
    code = f"import sys; {statement}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & set(loaded)
