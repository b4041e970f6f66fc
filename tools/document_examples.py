"""The examples of the documentation: run them, compare, and on request write their outputs anew.

    python tools/document_examples.py README.md docs/*.md docs/*/*.md     # write the outputs as they are now

A `console` block holds commands (`$ ...`) and what they print; a `python` block runs after those before it in the same
document. Both run in a scratch folder that has the project's `examples`, `samples` and `msc`. Other blocks are only
shown; one with a title, as in ```py title="examples/from_pytorch/encoder.py", shows that file.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SECONDS = 120
_NOT_FOUND = 127


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and where the text lies in the document."""

    language: str
    text: str
    start: int
    stop: int


def blocks(document: str) -> Iterator[Block]:
    """All fenced blocks of a document, in order."""
    for match in _FENCE.finditer(document):
        yield Block(match.group(1), match.group(2), match.start(2), match.end(2))


class Shell:
    """Runs the examples of one document, one after another, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("examples", "samples", "msc"):
            (folder / name).symlink_to(ROOT / name)
        programs = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        self._environment = {**os.environ, "PATH": programs, "XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "120"}
        self._python = ""

    def console(self, text: str) -> str:
        """A console block with the outputs that its commands have here; `> ` goes on with the command before it."""
        commands: list[str] = []
        for line in text.splitlines():
            if line.startswith("$ "):
                commands.append(line[2:])
            elif line.rstrip().startswith(">") and commands:
                commands[-1] += f"\n{line[2:]}"
        return "".join(self._shown(command) for command in commands)

    def _shown(self, command: str) -> str:
        written = "\n".join(line.rstrip() for line in f"$ {command}".replace("\n", "\n> ").split("\n"))
        return f"{written}\n{self._run(['bash', '-o', 'pipefail', '-c', command])}"

    def python(self, text: str) -> None:
        """Run a python block after those before it. Raises RuntimeError when it fails."""
        self._python += text
        program = self._folder / "example.py"  # graph mode reads sources from files
        program.write_text(self._python, "utf-8")
        self._run([sys.executable, program.name], check=True)

    def _run(self, command: list[str], *, check: bool = False) -> str:
        done = subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode == _NOT_FOUND or (check and done.returncode):
            raise RuntimeError(done.stdout)
        return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def refreshed(document: str) -> str:
    """A document with its console blocks as they print now; its python blocks have run."""
    parts: list[str] = []
    position = 0
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(Path(folder))
        for block in blocks(document):
            parts.append(document[position : block.start])
            parts.append(shell.console(block.text) if block.language == "console" else block.text)
            if block.language == "python":
                shell.python(block.text)
            position = block.stop
    return "".join((*parts, document[position:]))


def main() -> None:
    """Rewrite the documents named on the command line, or all."""
    for path in [Path(name) for name in sys.argv[1:]] or DOCUMENTS:
        before = path.read_text("utf-8")
        after = refreshed(before)
        if after != before:
            path.write_text(after, "utf-8")
            print(f"{path}: outputs written anew")


if __name__ == "__main__":
    main()
