"""The package `msc` of the Python index is another program: nothing that a user reads tells them to install it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import msc

ROOT = Path(__file__).parents[3]
READ = ("*.md", "*.py", "*.sh", "*.toml", "*.yml", "*.yaml", "*.ipynb", "*.cfg", "*.txt")
INSTALLS = re.compile(r"\b(?:pipx?|uv)\b[^\n`]*? (?:install|add)\b(?P<what>[^`\n|;&)#]*)")


def texts() -> Iterator[Path]:
    for folder in ("docs", "msc", "examples", "samples", "benchmarks", "scripts", "tools"):
        for pattern in READ:
            yield from (ROOT / folder).rglob(pattern)
    yield from (path for path in ROOT.iterdir() if path.is_file() and not path.name.startswith("."))


def strangers(text: str) -> list[str]:
    """What the commands of a text install that is named msc and is not msc's own distribution."""
    named = (
        re.match(r"[\w.-]*", word.strip("'\"")) for found in INSTALLS.finditer(text) for word in words(found["what"])
    )
    return [name[0] for name in named if name and name[0] == "msc"]


def words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def test_what_is_found() -> None:
    found = ["pip install msc", "python -m pip install -U 'msc[data]'", "`pip install numpy msc==1`", "uv add msc"]
    assert all(strangers(command) == ["msc"] for command in found)
    for fine in (
        "pip install -e '.[onnx]'",
        "pip install msc-compiler",
        "pip install pillow; import msc",
        "pip uninstall msc",
    ):
        assert not strangers(fine)


def test_no_page_installs_a_stranger() -> None:
    wrong = {str(path): found for path in texts() if (found := strangers(path.read_text("utf-8", "replace")))}
    assert not wrong


def test_our_distribution_has_the_name_that_msc_tells() -> None:
    assert f'name = "{msc.DISTRIBUTION}"' in (ROOT / "pyproject.toml").read_text("utf-8")
    assert f'version = "{msc.__version__}"' in (ROOT / "pyproject.toml").read_text("utf-8")


def test_the_first_command_installs_what_the_pages_need() -> None:
    """After it `source .venv/bin/activate` is enough for ONNX models."""
    assert "onnx" in (ROOT / "try-lenet5").read_text("utf-8")
