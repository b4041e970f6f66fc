"""The examples of the documentation: run them, compare, and on request write their outputs anew.

    python tools/document_examples.py README.md docs/*.md docs/*/*.md     # write the outputs as they are now

A `console` block holds commands (`$ ...`) and what they print; the `python` blocks of a document run one after the
other, in one process. Both run in a scratch folder that has the project's `examples`, `samples` and `msc`. Other blocks
are only shown; one with a title, as in ```py title="examples/from_pytorch/encoder.py", shows that file.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SECONDS = 120
_NOT_FOUND = 127
_DONE = "\0done"
_RUN_FILES = f"""
import sys, traceback
for line in sys.stdin:
    path = line.rstrip()
    try:
        with open(path, encoding="utf-8") as file:
            exec(compile(file.read(), path, "exec"), sys.modules["__main__"].__dict__)
        print({_DONE!r}, 0, flush=True)
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        print({_DONE!r}, 1, flush=True)
"""
"""It runs the files named on its standard input in one scope. Each block is a file, from which graph mode reads it."""


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


class _Session:
    """A process in which one python block runs after the other."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder, self._blocks = folder, 0
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-c", _RUN_FILES],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, text: str) -> None:
        """Run a block. Raises RuntimeError, with what it printed, when it fails or takes too long."""
        self._blocks += 1
        name = f"example_{self._blocks}.py"
        (self._folder / name).write_text(text, "utf-8")
        write, read = self._process.stdin, self._process.stdout
        assert write is not None
        assert read is not None
        write.write(f"{name}\n")
        write.flush()
        watch = threading.Timer(_SECONDS, self._process.kill)
        watch.start()
        printed = list[str]()
        for line in read:
            printed.append(line)
            if _DONE in line:
                break
        watch.cancel()
        if not printed or not printed[-1].endswith(f"{_DONE} 0\n"):
            raise RuntimeError("".join(printed))

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


class Shell:
    """Runs the examples of one document, one after another, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("examples", "samples", "msc"):
            (folder / name).symlink_to(ROOT / name)
        programs = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        self._environment = {**os.environ, "PATH": programs, "XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "120"}
        self._session: _Session | None = None

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
        if self._session is None:
            self._session = _Session(self._folder, self._environment)
        self._session.run(text)

    def end(self) -> None:
        """End the process of the python blocks."""
        if self._session is not None:
            self._session.end()

    def _run(self, command: list[str]) -> str:
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
        if done.returncode == _NOT_FOUND:
            raise RuntimeError(done.stdout)
        return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def refreshed(document: str) -> str:
    """A document with its console blocks as they print now; its python blocks have run."""
    parts: list[str] = []
    position = 0
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(Path(folder))
        try:
            for block in blocks(document):
                parts.append(document[position : block.start])
                parts.append(shell.console(block.text) if block.language == "console" else block.text)
                if block.language == "python":
                    shell.python(block.text)
                position = block.stop
        finally:
            shell.end()
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
